"""Runs of graphs on Redis: one call a superstep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.persistence.backends.graphs import chain, thread
from tests.persistence.redis.test_commits import calls

if TYPE_CHECKING:
    from persistence.redis import RedisSaver
    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio


async def test_a_superstep_is_one_call(saver: RedisSaver, redis_server: RedisServer) -> None:
    graph = chain(saver, 12)
    await graph.ainvoke({"trail": []}, thread("warm"), durability="sync")
    before = calls(redis_server)
    assert (await graph.ainvoke({"trail": []}, thread("t"), durability="sync"))["trail"] == list(range(12))
    assert calls(redis_server) - before <= 14  # the head, the input, twelve supersteps
