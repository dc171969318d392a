"""Watching a run: chunks that are printed, whatever is handed out."""

from __future__ import annotations

from typing import Any

import pytest

from persistence.memory import InMemorySaver
from runtime.errors import UnknownStreamModeError
from runtime.graph import StateGraph
from tests.stories.graphs import CONFIG, chain

UPDATES = ["\x1b[1m[updates]\x1b[0m {'a': {'log': ['a']}}", "\x1b[1m[updates]\x1b[0m {'b': {'log': ['b']}}"]
VALUES = [f"\x1b[1m[values]\x1b[0m {{'log': {log}}}" for log in ([], ["a"], ["a", "b"])]


async def test_a_runs_chunks_are_printed_beside_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    graph = chain("a", "b").compile(InMemorySaver())
    assert await graph.ainvoke({}, CONFIG, print_mode="updates") == {"log": ["a", "b"]}
    assert capsys.readouterr().out.splitlines() == UPDATES


async def test_what_is_printed_is_not_handed_out_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    graph = chain("a", "b").compile()
    stream = graph.astream({"log": []}, stream_mode="updates", print_mode=["values", "updates"])
    assert [list(chunk) async for chunk in stream] == [["a"], ["b"]]
    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed) == sorted(UPDATES + VALUES)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_debug_prints_updates_and_values(version: Any, capsys: pytest.CaptureFixture[str]) -> None:
    await chain("a", "b").compile().ainvoke({"log": []}, debug=True, version=version)
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(UPDATES + VALUES)


async def test_what_happens_in_subgraphs_is_printed_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    graph: Any = chain(("sub", chain("a").compile())).compile()
    async for _ in graph.astream({}, subgraphs=True, print_mode="updates", stream_mode="custom"):
        pass
    inner, outer = capsys.readouterr().out.splitlines()
    assert inner.startswith("\x1b[1m[sub:")
    assert inner.endswith("][updates]\x1b[0m {'a': {'log': ['a']}}")
    assert outer == "\x1b[1m[updates]\x1b[0m {'sub': {'log': ['a']}}"


async def test_nothing_is_printed_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    await chain("a").compile(debug=True).ainvoke({}, print_mode=(), debug=False)
    assert capsys.readouterr().out == ""


async def test_a_mode_that_does_not_exist_cannot_be_printed() -> None:
    graph: StateGraph = chain("a")
    with pytest.raises(UnknownStreamModeError, match="'valuse'"):
        await graph.compile().ainvoke({}, print_mode="valuse")
