"""Commands given as input: empty ones, and on threads that do not exist yet."""

from typing import Any

import pytest

from runtime.errors import EmptyInputError
from runtime.types import Command, Send, interrupt
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


async def test_a_second_command_takes_nothing_of_the_first_away(saver: Any) -> None:
    """Keys that keep the last value too: both Commands stand against one checkpoint."""
    graph = chain("x").compile(checkpointer=saver)
    await graph.ainvoke({"log": ["in"], "a": 0}, CONFIG)
    for number in (1, 2, 3):
        update = {"log": [f"cmd{number}"], "a": number}
        assert (await graph.ainvoke(Command(update=update), CONFIG))["a"] == number
        state = await graph.aget_state(CONFIG)
        assert (state.values["log"][-1], state.values["a"]) == (f"cmd{number}", number)
    assert (await graph.aget_state(CONFIG)).values["log"] == ["in", "x", "cmd1", "cmd2", "cmd3"]
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["in", "x", "cmd1", "cmd2", "cmd3"]


async def test_a_second_command_keeps_what_had_finished_and_what_was_asked(saver: Any) -> None:
    ran = list[str]()
    builder = chain("x")
    builder.add_node("beside", lambda _state: ran.append("beside") or {"log": ["beside"]})
    builder.add_node("ask", lambda _state: {"log": [interrupt("?")]})
    builder.add_edge("x", "beside")
    builder.add_edge("x", "ask")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": ["in"]}, CONFIG)
    for number in (1, 2):
        await graph.ainvoke(Command(update={"log": [f"cmd{number}"]}), CONFIG)
    assert [question.value for question in (await graph.aget_state(CONFIG)).interrupts] == ["?"]
    result = await graph.ainvoke(Command(resume="!"), CONFIG)
    assert result["log"] == ["in", "x", "cmd1", "cmd2", "!", "beside"]
    assert ran == ["beside"]


async def test_a_command_to_a_deferred_node_runs_it(saver: Any) -> None:
    builder = chain("x")
    builder.add_node("last", lambda _state: {"log": ["last"]}, defer=True)
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": ["in"]}, CONFIG)
    assert (await graph.ainvoke(Command(goto="last"), CONFIG))["log"] == ["in", "x", "last"]


async def test_a_deferred_node_waits_for_what_the_command_sends(saver: Any) -> None:
    builder = chain("x")
    builder.add_node("part", note("part")).add_node("last", note("last"), defer=True)
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": ["in"]}, CONFIG)
    command: Command[Any] = Command(goto=[Send("part", {}), "last"])
    assert (await graph.ainvoke(command, CONFIG))["log"] == ["in", "x", "part", "last"]


async def test_a_command_to_a_deferred_node_that_asks_leaves_it_where_it_is(saver: Any) -> None:
    builder = chain("x")
    builder.add_node("last", lambda _state: {"log": [interrupt("?")]}, defer=True)
    builder.add_edge("x", "last")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": ["in"]}, CONFIG)
    await graph.ainvoke(Command(goto="last"), CONFIG)
    assert [question.value for question in (await graph.aget_state(CONFIG)).interrupts] == ["?"]
    assert (await graph.ainvoke(Command(resume="!"), CONFIG))["log"] == ["in", "x", "!"]


async def test_a_command_to_a_deferred_node_whose_join_is_complete_runs_it_once(saver: Any) -> None:
    builder = chain("x")
    builder.add_node("y", note("y"))
    builder.add_edge("x", "y")
    builder.add_node("last", lambda _state: {"log": ["last"]}, defer=True)
    builder.add_edge(["x", "y"], "last")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": ["in"]}, CONFIG, interrupt_before=["last"])
    assert (await graph.ainvoke(Command(goto="last"), CONFIG))["log"].count("last") == 1
