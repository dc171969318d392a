"""A saver with keys of its own, a started server for those who kill it, and a wire to it for those who cut it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio.from_thread import start_blocking_portal

from persistence.redis import RedisSaver
from persistence.writer.limits import Limits
from tests.persistence.postgres.proxy import Wire
from tests.persistence.redis.server import RedisServer, StartedRedis

if TYPE_CHECKING:
    import asyncio


@pytest.fixture
async def saver(redis_server: RedisServer, redis_keys: str) -> AsyncIterator[RedisSaver]:
    async with RedisSaver(redis_server.url, prefix=redis_keys, limits=Limits(attempts=3, first_delay=0.001)) as opened:
        yield opened


@pytest.fixture
def started(redis_server: RedisServer) -> StartedRedis:
    """The server, if the tests started it."""
    if not isinstance(redis_server, StartedRedis):
        pytest.skip("the environment names the server")
    return redis_server


@pytest.fixture
def wired(started: StartedRedis) -> Iterator[tuple[Wire, str]]:
    """A wire to the server, and the URL of the server through it."""
    import asyncio  # noqa: PLC0415 - the wire's own loop

    with tempfile.TemporaryDirectory(prefix="wire") as folder, start_blocking_portal("asyncio") as portal:
        made = Wire(started.socket)
        made.portal = portal
        path = str(Path(folder) / "wire.sock")

        async def listen() -> asyncio.AbstractServer:
            return await asyncio.start_unix_server(made.serve, path)

        listener = portal.call(listen)
        try:
            yield made, f"unix://{path}"
        finally:
            made.sever()
            portal.call(listener.close)
            portal.call(made.settle)
