"""DBOS: a workflow of steps that are each stored before the next one begins, which is this project's ``sync``."""

from __future__ import annotations

import importlib
import logging
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import anyio

from benchmarks.durability.stepping import together
from benchmarks.harness import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.chains import Load
    from benchmarks.durability.places import Place
    from benchmarks.results import Sample

LABEL = "DBOS"


def settings() -> list[str]:
    """Return how it takes part; empty where it is not installed."""
    if find_spec("dbos") is None:
        return []
    return [
        f"dbos {metadata.version('dbos')}, asyncio: async workflows and steps, launched once per sample",
        "its defaults, without the admin server; a checkpoint a step, as it recommends",
        "SQLite as it sets it up (a rollback journal, IMMEDIATE); its guide recommends PostgreSQL for production",
    ]


def sample(place: Place, load: Load) -> Sample:
    """Time workflows in a place, after one that is not timed; microseconds per step."""
    return anyio.run(_timed, config(place), load)


def config(place: Place) -> dict[str, Any]:
    """Return the configuration for a place."""
    common = {"name": "benchmarks", "run_admin_server": False, "log_level": "ERROR"}
    if place.backend == "sqlite":
        return {**common, "system_database_url": f"sqlite:///{place.address}"}
    parts = urlsplit(place.address)
    wanted = parse_qs(parts.query)
    schema = wanted.pop("search_path")[0].partition(",")[0]
    query = "&".join(f"{name}={values[0]}" for name, values in wanted.items())
    server = urlunsplit((parts.scheme, parts.netloc.replace(":@", "@"), parts.path, query, ""))
    return {**common, "system_database_url": server, "dbos_system_schema": schema}


@cache
def workflow() -> Callable[[int], Awaitable[int]]:
    """Return the workflow; it is registered once, for the engine is one to a process."""
    dbos: Any = importlib.import_module("dbos").DBOS

    async def advance(count: int) -> int:
        return count + 1

    step = dbos.step(name="advance")(advance)

    async def steps(number: int) -> int:
        count = 0
        for _ in range(number):
            count = await step(count)
        return count

    made: Callable[[int], Awaitable[int]] = dbos.workflow(name="steps")(steps)
    return made


async def _timed(settings_: dict[str, Any], load: Load) -> Sample:
    dbos: Any = importlib.import_module("dbos").DBOS
    chain = workflow()
    logging.getLogger("dbos").setLevel(logging.ERROR)
    dbos(config=settings_)
    dbos.launch()

    async def run() -> None:
        if await chain(load.nodes) != load.nodes:
            message = f"a workflow of {load.nodes} steps returned something else"
            raise RuntimeError(message)

    try:
        await run()
        with Stopwatch() as watch:
            if load.together:
                await together(run, load.runs)
            else:
                for _ in range(load.runs):
                    await run()
        return watch.micros.per(load.steps)
    finally:
        dbos.destroy()
