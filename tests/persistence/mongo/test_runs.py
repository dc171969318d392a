"""Runs of graphs on MongoDB: few commands a superstep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from persistence.mongo import MongoDBSaver
from tests.persistence.backends.graphs import chain, thread
from tests.persistence.mongo.test_commits import Commands

if TYPE_CHECKING:
    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio


async def test_a_superstep_is_two_commands_and_their_commit(mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    commands = Commands()
    async with MongoDBSaver(**mongo, connect_arguments={"event_listeners": [commands]}) as saver:
        graph = chain(saver, 8)
        await graph.ainvoke({"trail": []}, thread("warm"), durability="sync")
        commands.taken()
        assert (await graph.ainvoke({"trail": []}, thread("t"), durability="sync"))["trail"] == list(range(8))
        each = 3 if mongo_server.settings.get("transactions") is None else 2
        assert len(commands.taken()) <= 1 + 9 * each  # the head, then the input and eight supersteps
