"""Commands given as input: empty ones, and on threads that do not exist yet."""

from typing import Any

import pytest

from runtime.errors import EmptyInputError
from runtime.types import Command
from tests.stories.graphs import CONFIG, chain, history, note

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("command", [Command(), Command(resume=None)])
async def test_an_empty_command_is_empty_input(saver: Any, command: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    with pytest.raises(EmptyInputError):
        await graph.ainvoke(command, CONFIG)
    assert await history(graph) == before


async def test_a_command_on_a_fresh_thread_applies_its_update_once(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    result = await graph.ainvoke(Command(update={"log": ["cmd"], "a": 1}), CONFIG)
    assert result["log"].count("cmd") == 1
    assert (await graph.aget_state(CONFIG)).values["log"].count("cmd") == 1
    assert (await graph.aget_state(CONFIG)).values["a"] == 1


async def test_a_command_on_a_fresh_thread_runs_its_goto_once(saver: Any) -> None:
    builder = chain("x")
    builder.add_node("y", note("y"))
    graph = builder.compile(checkpointer=saver)
    result = await graph.ainvoke(Command(update={"log": ["cmd"]}, goto="y"), CONFIG)
    assert result["log"].count("cmd") == 1
    assert result["log"].count("y") == 1


async def test_a_command_on_a_fresh_thread_without_a_saver() -> None:
    builder = chain("x")
    builder.add_node("y", note("y"))
    result = await builder.compile().ainvoke(Command(update={"log": ["cmd"]}, goto="y"))
    assert result["log"].count("cmd") == 1
    assert result["log"].count("y") == 1
