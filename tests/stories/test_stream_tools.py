"""The mode ``tools``: which of LangChain's tools a node calls, what they put out, and how they end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from runtime.config import get_tool_writer
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, chain, collect


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def count(to: int) -> str:
    """Count aloud."""
    write = get_tool_writer()
    for number in range(to):
        write(number)
    return "counted"


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@tool
def confirm(what: str) -> str:
    """Ask first."""
    return f"{what}: {interrupt(what)}"


def calling(*calls: tuple[Any, Any], **config: Any) -> Any:
    """Return a sync node that calls tools in a row."""

    def node(_state: Any) -> None:
        for called, given in calls:
            called.invoke(given, config or None)

    return node


async def heard(node: Any, **options: Any) -> list[Any]:
    """Return what the stream of tools tells of a node."""
    return await collect(chain(("n", node)).compile().astream({"a": 1}, stream_mode="tools", **options))


async def test_a_call_is_told_when_it_starts_and_when_it_ends() -> None:
    started, finished = await heard(calling((add, {"a": 1, "b": 2})))
    assert started == {
        "event": "tool-started",
        "tool_call_id": finished["tool_call_id"],
        "tool_name": "add",
        "input": {"a": 1, "b": 2},
    }
    assert finished == {"event": "tool-finished", "tool_call_id": finished["tool_call_id"], "output": 3}


async def test_a_models_call_keeps_its_id() -> None:
    call = {"type": "tool_call", "name": "add", "args": {"a": 1, "b": 2}, "id": "call-1"}
    events = await heard(calling((add, call)))
    assert [event["tool_call_id"] for event in events] == ["call-1", "call-1"]
    assert events[1]["output"].content == "3"


async def test_a_tool_puts_out_parts_while_it_works() -> None:
    events = await heard(calling((count, {"to": 2}), (add, {"a": 1, "b": 1})))
    assert [(event["event"], event.get("delta")) for event in events] == [
        ("tool-started", None),
        ("tool-output-delta", 0),
        ("tool-output-delta", 1),
        ("tool-finished", None),
        ("tool-started", None),
        ("tool-finished", None),
    ]
    assert len({event["tool_call_id"] for event in events}) == 2


async def test_a_tool_called_by_a_tool_has_parts_of_its_own() -> None:
    @tool
    def outer(to: int) -> str:
        """Have it counted."""
        write = get_tool_writer()
        write("before")
        count.invoke({"to": to})
        get_tool_writer()("after")
        return "done"

    events = await heard(calling((outer, {"to": 1})))
    names = {event["tool_call_id"]: event["tool_name"] for event in events if event["event"] == "tool-started"}
    deltas = [(names[event["tool_call_id"]], event["delta"]) for event in events if "delta" in event]
    assert deltas == [("outer", "before"), ("count", 0), ("outer", "after")]


async def test_a_failure_is_told_and_raised() -> None:
    events: list[Any] = []
    with pytest.raises(ValueError, match="no"):
        async for event in chain(("n", calling((fail, {"why": "no"})))).compile().astream({}, stream_mode="tools"):
            events.append(event)
    assert [event["event"] for event in events] == ["tool-started", "tool-error"]
    assert events[1]["message"] == "no"


async def test_a_pause_is_no_failure_and_the_call_is_told_again(saver: Any) -> None:
    node = calling((confirm, {"what": "sure"}))
    graph = chain(("n", node)).compile(saver)
    paused = await collect(graph.astream({"a": 1}, CONFIG, stream_mode="tools"))
    assert [event["event"] for event in paused] == ["tool-started"]
    resumed = await collect(graph.astream(Command(resume="yes"), CONFIG, stream_mode="tools"))
    assert [(event["event"], event.get("output")) for event in resumed] == [
        ("tool-started", None),
        ("tool-finished", "sure: yes"),
    ]


async def test_the_tag_nostream_keeps_calls_out() -> None:
    assert await heard(calling((add, {"a": 1, "b": 2}), (count, {"to": 3}), tags=["nostream"])) == []


async def test_calls_in_subgraphs_come_to_those_who_follow_subgraphs() -> None:
    graph = chain(("sub", chain(("n", calling((count, {"to": 1})))).compile())).compile()
    assert await collect(graph.astream({}, stream_mode="tools")) == []
    events = await collect(graph.astream({}, stream_mode=["tools", "updates"], subgraphs=True, version="v2"))
    assert [(len(part["ns"]), part["type"]) for part in events] == [
        (1, "tools"),
        (1, "tools"),
        (1, "tools"),
        (1, "updates"),
        (0, "updates"),
    ]
    assert events[1]["data"]["event"] == "tool-output-delta"


async def test_tools_and_messages_side_by_side() -> None:
    def node(_state: Any) -> dict[str, Any]:
        return {"log": [AIMessage(str(add.invoke({"a": 1, "b": 2})), id="m")]}

    graph = chain(("n", node)).compile()
    chunks = await collect(graph.astream({}, stream_mode=["messages", "tools"]))
    assert [mode for mode, _ in chunks] == ["tools", "tools", "messages"]


@pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {}), id="asyncio")])
async def test_async_tools_at_once(anyio_backend: Any) -> None:
    """On asyncio alone, which is all that LangChain's async side knows."""

    @tool
    async def wait(name: str) -> str:
        """Wait."""
        write = get_tool_writer()
        for _ in range(2):
            write(name)
            await anyio.lowlevel.checkpoint()
        return name

    async def node(_state: Any) -> None:
        async with anyio.create_task_group() as group:
            for name in ("a", "b"):
                group.start_soon(wait.ainvoke, {"name": name})

    events = await heard(node)
    mine = {event["tool_call_id"]: event["input"]["name"] for event in events if event["event"] == "tool-started"}
    assert sorted(mine.values()) == ["a", "b"]
    assert all(mine[event["tool_call_id"]] == event["delta"] for event in events if "delta" in event)
    assert sum("delta" in event for event in events) == 4


async def test_without_a_listener_what_a_tool_puts_out_is_lost() -> None:
    get_tool_writer()("lost")
    assert await chain(("n", calling((count, {"to": 2})))).compile().ainvoke({"a": 1}) == {"a": 1, "log": []}


async def test_leaving_in_the_middle_of_a_call_ends_the_run() -> None:
    graph = chain(("n", calling((count, {"to": 2000})))).compile()
    with anyio.fail_after(10):
        async with graph.astream({}, stream_mode="tools") as stream:
            async for event in stream:
                if "delta" in event:
                    break
    assert graph.statistics() == ()
