"""Leases of runs that are at work when their saver closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from tests.stories.graphs import CONFIG, chain


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Any) -> Callable[[], Any]:
    """Return a function that makes savers on one database."""
    if request.param == "sqlite":
        return lambda: SqliteSaver(tmp_path / "shared.sqlite")
    url = request.getfixturevalue("postgres_url")
    return lambda: PostgresSaver(url, pool_size=2)


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_saver_that_closes_lets_go_for_runs_that_are_ending(make: Any, durability: Any) -> None:
    """They cannot do so any more, and who comes next need not wait until their owner seems dead."""
    async with make() as saver:
        stream = chain("one", "two").compile(saver).astream({}, CONFIG, durability=durability)
        assert await anext(stream) == {"one": {"log": ["one"]}}
        del stream
    async with make() as saver:
        assert await saver.aheld_leases() == []
        with anyio.fail_after(10):
            await chain("one", "two").compile(saver).ainvoke({"log": ["again"]}, CONFIG, multitask_strategy="reject")


def test_a_blocking_saver_that_closes_lets_go_for_runs_that_are_ending(tmp_path: Any) -> None:
    for _turn in range(2):
        with SqliteSaver(tmp_path / "shared.sqlite") as saver:
            stream = chain("one", "two").compile(saver).stream({}, CONFIG, multitask_strategy="reject")
            assert next(stream) == {"one": {"log": ["one"]}}
            del stream
