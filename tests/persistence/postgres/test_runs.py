"""Runs of graphs on PostgreSQL: one round trip a superstep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from persistence.postgres import PostgresSaver
from tests.persistence.backends.graphs import chain, thread

if TYPE_CHECKING:
    from tests.persistence.postgres.proxy import Wire

pytestmark = pytest.mark.anyio


async def test_a_superstep_is_one_round_trip(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url) as saver:
        graph = chain(saver, 12)
        await graph.ainvoke({"trail": []}, thread("warm"), durability="sync")
        before = wire.answers
        assert (await graph.ainvoke({"trail": []}, thread("t"), durability="sync"))["trail"] == list(range(12))
        assert wire.answers - before <= 14  # the head, the input, twelve supersteps


async def test_a_graphs_state_is_one_round_trip_and_so_is_a_page_of_its_history(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url) as saver:
        graph = chain(saver, 12)
        for _ in range(2):
            await graph.ainvoke({"trail": []}, thread("t"))

        async def look(limit: int | None) -> int:
            before = wire.answers
            assert (await graph.aget_state(thread("t"))).next == ()
            assert wire.answers == before + 1
            assert len([one async for one in graph.aget_state_history(thread("t"), limit=limit)]) == (limit or 28)
            return wire.answers - before - 1

        for limit, trips in ((20, 1), (28, 1), (None, 2)):
            await look(limit)
            assert await look(limit) == trips
