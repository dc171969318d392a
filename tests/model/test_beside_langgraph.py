"""What can be seen of a thread is what LangGraph shows of it, whatever graph, whatever is done."""

from __future__ import annotations

from random import Random

import anyio
import pytest

from tests.model.beside import LANGGRAPH, OURS, Thread, comparable, deeds_by
from tests.model.shapes import shape_by


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 120, 20))
def test_the_two_show_the_same(start: int) -> None:
    """On asyncio, where LangGraph is at home; that trio does the same is for the other laws."""
    for seed in range(start, start + 20):
        anyio.run(compared, seed)


async def compared(seed: int) -> None:
    chance = Random(seed)
    shape = comparable(shape_by(chance))
    deeds = deeds_by(chance, shape)
    here, there = Thread(OURS, shape), Thread(LANGGRAPH, shape)
    for deed in deeds:
        seen, expected = await here.do(deed), await there.do(deed)
        if "limit" in seen or "limit" in expected:
            return
        assert seen.keys() == expected.keys(), (seed, deed, shape)
        for what, value in expected.items():
            assert seen[what] == value, (seed, what, deed, shape)
