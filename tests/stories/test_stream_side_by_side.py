"""Two readers of one subgraph: the node that streams it, and whoever follows the run around it, hear the same."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.config import get_stream_writer
from runtime.types import Command, interrupt
from runtime.types.streams import STREAM_MODES
from tests.stories.graphs import CONFIG, Log, chain, collect

ALL = list(STREAM_MODES)


def write(_state: Log) -> dict[str, Any]:
    """Write an item, and note it."""
    get_stream_writer()("item")
    return {"log": ["wrote"]}


def ask(_state: Log) -> dict[str, Any]:
    """Ask, and note the answer."""
    return {"log": [interrupt("?")]}


def fail(_state: Log) -> None:
    """Fail."""
    msg = "boom"
    raise ValueError(msg)


def streaming(child: Any, inner: list[Any]) -> Any:
    """Return a node that streams a graph and keeps what it hears."""

    async def node(_state: Log) -> None:
        async for part in child.astream({"a": 1}, stream_mode=ALL, version="v2"):
            inner.append(part)

    return node


def alike(parts: list[Any]) -> list[tuple[str, Any]]:
    """Return what two readers must have in common: a debug event has its own time."""
    return [(part["type"], part["data"]) for part in parts if part["type"] != "debug"]


async def test_both_hear_all_modes(saver: Any) -> None:
    inner: list[Any] = []
    graph = chain(("outer", streaming(chain(("write", write), "two").compile(), inner))).compile(saver)
    outer = await collect(graph.astream({"a": 1}, CONFIG, stream_mode=ALL, subgraphs=True, version="v2"))
    assert {mode for mode, _ in alike(inner)} == {"values", "updates", "custom", "tasks", "checkpoints"}
    assert alike(inner) == alike([part for part in outer if part["ns"]])
    assert len(inner) == len([part for part in outer if part["ns"]])


async def test_both_hear_a_pause_and_what_follows_it(saver: Any) -> None:
    inner: list[Any] = []
    graph = chain(("outer", streaming(chain(("ask", ask)).compile(), inner))).compile(saver)
    steps: list[Any] = [{"a": 1}, Command(resume="yes")]
    for given in steps:
        inner.clear()
        outer = await collect(graph.astream(given, CONFIG, stream_mode=ALL, subgraphs=True, version="v2"))
        below = alike([part for part in outer if part["ns"]])
        assert [one for one in alike(inner) if one in below] == alike(inner)
    assert ("updates", {"ask": {"log": ["yes"]}}) in alike(inner)


async def test_both_hear_a_failure(saver: Any) -> None:
    inner: list[Any] = []
    graph = chain(("outer", streaming(chain(("fail", fail)).compile(), inner))).compile(saver)
    outer: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        async for part in graph.astream({"a": 1}, CONFIG, stream_mode=ALL, subgraphs=True, version="v2"):
            outer.append(part)
    assert alike(inner) == alike([part for part in outer if part["ns"]])
    assert str(alike(inner)[-1][1]["error"]) == "boom"
