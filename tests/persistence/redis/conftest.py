"""A saver with keys of its own, and a started server for those who set it otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from persistence.redis import RedisSaver
from persistence.writer.limits import Limits
from tests.persistence.redis.server import RedisServer, StartedRedis


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
