"""Restate: a handler whose steps are journalled by a server of its own, called over HTTP as its clients do.

The server is a program that no Python package holds: ``restate-server`` on the path, or the one that the environment
names. It is started for each sample on free ports of this machine, with a new folder, outside of the timing.
"""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import subprocess
from contextlib import asynccontextmanager
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks.durability.stepping import together
from benchmarks.files import fresh_path
from benchmarks.harness import Stopwatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from benchmarks.chains import Load
    from benchmarks.results import Sample

LABEL = "Restate, its own log"
NAMED = "ACTORGRAPH_BENCH_RESTATE_SERVER"
HERE = "127.0.0.1"
PATIENCE = 30.0
"""Seconds that the server has to come up, and that a call may take."""


def settings() -> list[str]:
    """Return how it takes part; empty where its server or SDK is missing."""
    if server() is None or any(find_spec(name) is None for name in ("restate", "hypercorn", "httpx")):
        return []
    return [
        f"restate-sdk {metadata.version('restate-sdk')} on hypercorn, asyncio; a handler with a ctx.run a step",
        "restate-server with its defaults, a single node that was just started; called over HTTP",
    ]


def server() -> str | None:
    """Return the server's program, if it is here."""
    return os.environ.get(NAMED) or shutil.which("restate-server")


def sample(directory: Path, load: Load) -> Sample:
    """Time calls of the handler, after one that is not timed; microseconds per step."""
    return anyio.run(_timed, directory, load)


async def _timed(directory: Path, load: Load) -> Sample:
    httpx: Any = importlib.import_module("httpx")
    service, ingress, admin, node = _free_ports(4)
    async with (
        _serving(service),
        _server(directory, ingress, admin, node),
        httpx.AsyncClient(timeout=PATIENCE) as client,
    ):
        await _registered(client, admin, service)

        async def run() -> None:
            answer = await client.post(f"http://{HERE}:{ingress}/benchmarks/chain", json=load.nodes)
            if answer.json() != load.nodes:
                message = f"a handler of {load.nodes} steps returned {answer.text:.200}"
                raise RuntimeError(message)

        await run()
        with Stopwatch() as watch:
            if load.together:
                await together(run, load.runs)
            else:
                for _ in range(load.runs):
                    await run()
        return watch.micros.per(load.steps)


def application() -> Any:
    """Return the service's ASGI application."""
    restate: Any = importlib.import_module("restate")
    service = restate.Service("benchmarks")

    async def advance(count: int) -> int:
        return count + 1

    async def chain(context: Any, nodes: int) -> int:
        count = 0
        for _ in range(nodes):
            count = await context.run_typed("advance", advance, count=count)
        return count

    # Its types are read from the annotations, which are texts here.
    chain.__annotations__ = {"context": restate.Context, "nodes": int, "return": int}
    service.handler("chain")(chain)
    return restate.app([service])


@asynccontextmanager
async def _serving(port: int) -> AsyncIterator[None]:
    """Serve the application while open, on the server that its guide recommends."""
    hypercorn: Any = importlib.import_module("hypercorn.asyncio")
    config: Any = importlib.import_module("hypercorn.config").Config()
    config.bind = [f"{HERE}:{port}"]
    config.errorlog = None
    config.h2_max_concurrent_streams = 2**31 - 1
    stop = anyio.Event()
    async with anyio.create_task_group() as group:

        async def serve() -> None:
            await hypercorn.serve(application(), config, shutdown_trigger=stop.wait)

        group.start_soon(serve)
        try:
            yield
        finally:
            stop.set()


@asynccontextmanager
async def _server(directory: Path, ingress: int, admin: int, node: int) -> AsyncIterator[None]:
    """Run the server while open."""
    folder = fresh_path(directory)
    environment = {
        **os.environ,
        "RESTATE_INGRESS__BIND_ADDRESS": f"{HERE}:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"{HERE}:{admin}",
        "RESTATE_BIND_ADDRESS": f"{HERE}:{node}",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
    }
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - nothing else is under way; the program that was asked for
        [str(server()), "--base-dir", folder],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        yield
    finally:
        process.terminate()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(process.wait)
        shutil.rmtree(folder, ignore_errors=True)


async def _registered(client: Any, admin: int, service: int) -> None:
    """Wait until the server answers and knows the service. Raises TimeoutError if it does not come up."""
    httpx: Any = importlib.import_module("httpx")
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                told = await client.post(f"http://{HERE}:{admin}/deployments", json={"uri": f"http://{HERE}:{service}"})
                if told.is_success:
                    return
            except httpx.HTTPError:
                pass
            await anyio.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind((HERE, 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()
