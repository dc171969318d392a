"""Runs of graphs on Redis: one call a superstep; and a server that forgot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runtime.errors import ThreadConflictError
from runtime.graph import START, StateGraph
from tests.persistence.backends.graphs import Trail, chain, thread
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


async def test_a_server_that_lost_what_came_last(saver: RedisSaver, redis_server: RedisServer, redis_keys: str) -> None:
    """As after a failover: a run that is under way is told, and the thread goes on from what is there."""
    past: dict[bytes, bytes] = {}
    ran: list[int] = []

    def step(number: int) -> Any:
        async def node(_: Trail) -> dict[str, Any]:
            ran.append(number)
            if number == 2:
                past.update({key: redis_server.client.dump(key) for key in redis_server.keys(redis_keys)})
            elif number == 4 and ran.count(4) == 1:
                for key in redis_server.keys(redis_keys):
                    redis_server.client.delete(key)
                for key, value in past.items():
                    redis_server.client.restore(key, 0, value)
            return {"trail": [number]}

        return node

    builder = StateGraph(Trail)
    for number in range(6):
        builder.add_node(f"n{number}", step(number))
        builder.add_edge(f"n{number - 1}" if number else START, f"n{number}")
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(ThreadConflictError):
        await graph.ainvoke({"trail": []}, thread("t"), durability="sync")
    assert ran == [0, 1, 2, 3, 4]
    state = await graph.aget_state(thread("t"))
    assert (state.values, state.next) == ({"trail": [0, 1]}, ("n2",))
    assert await graph.ainvoke(None, thread("t")) == {"trail": [0, 1, 2, 3, 4, 5]}
    assert ran == [0, 1, 2, 3, 4, 2, 3, 4, 5]
