"""What each stream mode shows, in shape and order."""

import datetime as dt
from typing import Any

import anyio
import pytest

from runtime.config import get_stream_writer
from runtime.errors import UnknownStreamModeError
from runtime.types import Command, StreamWriter, interrupt
from tests.stories.graphs import CONFIG, Gate, Log, chain, collect, fan, history

pytestmark = pytest.mark.anyio


async def test_updates_is_the_default_mode(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    assert await collect(graph.astream({}, CONFIG)) == [{"x": {"log": ["x"]}}, {"y": {"log": ["y"]}}]


async def test_values_shows_the_state_after_the_input_and_each_superstep(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    assert await collect(graph.astream({"a": 1}, CONFIG, stream_mode="values")) == [
        {"a": 1, "log": []},
        {"a": 1, "log": ["x"]},
        {"a": 1, "log": ["x", "y"]},
    ]


async def test_updates_of_a_node_that_changed_nothing_is_none() -> None:
    graph = chain(("n", lambda _state: None), ("m", lambda _state: {})).compile()
    assert await collect(graph.astream({"a": 1}, stream_mode="updates")) == [{"n": None}, {"m": None}]


async def test_updates_with_several_writes_to_one_key_is_a_list() -> None:
    graph = chain(("n", lambda _state: [Command(update={"log": ["1"]}), {"log": ["2"]}])).compile()
    assert await collect(graph.astream({}, stream_mode="updates")) == [{"n": [{"log": ["1"]}, {"log": ["2"]}]}]


async def test_updates_come_in_completion_order_though_state_folds_by_name() -> None:
    done = anyio.Event()

    async def alpha(_state: Any) -> dict[str, Any]:
        await done.wait()
        return {"log": ["alpha"]}

    async def zeta(_state: Any) -> dict[str, Any]:
        return {"log": ["zeta"]}

    graph = fan(("alpha", alpha), ("zeta", zeta), first=None, last=None).compile()
    seen = []
    with anyio.fail_after(10):
        async for mode, chunk in graph.astream({"a": 1}, stream_mode=["updates", "values"]):
            seen.append((mode, chunk))
            if mode == "updates":
                done.set()
    assert seen[1:] == [
        ("updates", {"zeta": {"log": ["zeta"]}}),
        ("updates", {"alpha": {"log": ["alpha"]}}),
        ("values", {"a": 1, "log": ["alpha", "zeta"]}),
    ]


async def test_custom_shows_what_nodes_write() -> None:
    async def by_parameter(_state: Log, writer: StreamWriter) -> None:
        writer("one")
        writer({"two": 2})

    async def by_function(_state: Log) -> None:
        get_stream_writer()("three")

    def sync_node(_state: Log, writer: StreamWriter) -> None:
        writer("four")

    graph = chain(("p", by_parameter), ("f", by_function), ("s", sync_node)).compile()
    with anyio.fail_after(10):
        chunks = await collect(graph.astream({}, stream_mode="custom"))
    assert chunks == ["one", {"two": 2}, "three", "four"]


async def test_custom_arrives_while_the_node_still_runs() -> None:
    seen = anyio.Event()

    async def n(_state: Log, writer: StreamWriter) -> dict[str, Any]:
        writer("working")
        await seen.wait()
        return {"log": ["n"]}

    graph = chain(("n", n)).compile()
    with anyio.fail_after(10):
        async for mode, _chunk in graph.astream({}, stream_mode=["custom", "updates"]):
            if mode == "custom":
                seen.set()


async def test_a_writer_without_a_listener_is_harmless() -> None:
    async def n(_state: Log, writer: StreamWriter) -> dict[str, Any]:
        writer("nobody listens")
        return {"log": ["n"]}

    assert (await chain(("n", n)).compile().ainvoke({}))["log"] == ["n"]


async def test_tasks_shows_the_start_and_the_end_of_each_task(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    start, end = await collect(graph.astream({"a": 1}, CONFIG, stream_mode="tasks"))
    (task,) = (await history(graph))[1].tasks
    assert {**start, "triggers": tuple(start["triggers"])} == {
        "id": task.id,
        "name": "x",
        "input": {"a": 1, "log": []},
        "triggers": ("branch:to:x",),
    }
    assert end == {"id": task.id, "name": "x", "error": None, "result": {"log": ["x"]}, "interrupts": []}


async def test_tasks_shows_a_failure_with_its_exception(saver: Any) -> None:
    gate = Gate()
    gate.open.set()
    graph = chain(("bad", gate.fail)).compile(checkpointer=saver)
    seen: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        async for chunk in graph.astream({}, CONFIG, stream_mode="tasks"):
            seen.append(chunk)
    assert [one["name"] for one in seen] == ["bad", "bad"]
    assert seen[1]["error"] is gate.error


async def test_tasks_shows_interrupts_as_dicts(saver: Any) -> None:
    async def ask(_state: Log) -> None:
        interrupt("q")

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    _start, end = await collect(graph.astream({}, CONFIG, stream_mode="tasks"))
    (question,) = (await graph.aget_state(CONFIG)).interrupts
    assert end["interrupts"] == [{"value": "q", "id": question.id, "response_schema": None}]
    assert (end["error"], end["result"]) == (None, {})


async def test_checkpoints_shows_each_checkpoint(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    chunks = await collect(graph.astream({"a": 1}, CONFIG, stream_mode="checkpoints"))
    snapshots = (await history(graph))[::-1]
    assert [one["config"]["configurable"]["checkpoint_id"] for one in chunks] == [
        s.config["configurable"]["checkpoint_id"] for s in snapshots
    ]
    assert [one["values"] for one in chunks] == [s.values for s in snapshots]
    assert [tuple(one["next"]) for one in chunks] == [s.next for s in snapshots]
    assert [one["metadata"] for one in chunks] == [s.metadata for s in snapshots]
    assert [[t["name"] for t in one["tasks"]] for one in chunks] == [["__start__"], ["x"], ["y"], []]
    assert chunks[0]["parent_config"] is None
    assert [one["parent_config"]["configurable"]["checkpoint_id"] for one in chunks[1:]] == [
        one["config"]["configurable"]["checkpoint_id"] for one in chunks[:-1]
    ]
    for one in chunks:
        assert set(one) == {"config", "parent_config", "values", "metadata", "next", "tasks"}
        assert all(task.keys() >= {"id", "name", "interrupts", "state"} for task in one["tasks"])


async def test_debug_wraps_tasks_and_checkpoints(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode="debug"))
    assert [(one["type"], one["step"]) for one in chunks] == [
        ("checkpoint", -1),
        ("checkpoint", 0),
        ("task", 1),
        ("task_result", 1),
        ("checkpoint", 1),
    ]
    assert all(set(one) == {"step", "timestamp", "type", "payload"} for one in chunks)
    assert all(dt.datetime.fromisoformat(one["timestamp"]).tzinfo for one in chunks)
    assert chunks[3]["payload"]["result"] == {"log": ["x"]}


async def test_several_modes_name_the_mode_of_each_chunk_in_order(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    chunks = await collect(graph.astream({"a": 1}, CONFIG, stream_mode=["values", "updates", "tasks"]))
    assert [mode for mode, _chunk in chunks] == ["values", "tasks", "updates", "tasks", "values"]


async def test_a_list_with_one_mode_still_names_it() -> None:
    assert await collect(chain("x").compile().astream({}, stream_mode=["updates"])) == [
        ("updates", {"x": {"log": ["x"]}})
    ]


@pytest.mark.parametrize("mode", ["nope", ["values", "nope"], "Values"])
async def test_an_unknown_mode_is_refused_before_anything_is_saved(saver: Any, mode: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    with pytest.raises(UnknownStreamModeError, match="values"):
        await collect(graph.astream({}, CONFIG, stream_mode=mode))
    assert await history(graph) == []


async def test_a_failure_ends_the_stream_after_what_had_finished(saver: Any) -> None:
    gate = Gate("ok")
    graph = fan("ok", ("bad", gate.fail), first=None, last=None).compile(checkpointer=saver)
    seen: list[Any] = []
    with anyio.fail_after(10), pytest.raises(ValueError, match="boom") as caught:
        async for chunk in graph.astream({}, CONFIG):
            seen.append(chunk)
            gate.open.set()
    assert seen == [{"ok": {"log": ["ok"]}}]
    assert caught.value is gate.error


async def test_output_keys_restrict_values_and_updates() -> None:
    graph = chain(("n", lambda _state: {"a": 2, "log": ["n"]})).compile()
    assert await collect(graph.astream({"a": 1}, stream_mode="values", output_keys=["a"])) == [{"a": 1}, {"a": 2}]
    assert await collect(graph.astream({"a": 1}, stream_mode="updates", output_keys=["a"])) == [{"n": {"a": 2}}]
    assert await graph.ainvoke({"a": 1}, output_keys=["log"]) == {"log": ["n"]}


async def test_invoke_with_another_mode_returns_the_chunks() -> None:
    assert await chain("x", "y").compile().ainvoke({}, stream_mode="updates") == [
        {"x": {"log": ["x"]}},
        {"y": {"log": ["y"]}},
    ]


async def test_a_resumed_stream_starts_with_the_values_it_resumes_from(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver, interrupt_before=["y"])
    await graph.ainvoke({}, CONFIG)
    assert await collect(graph.astream(None, CONFIG, stream_mode="values")) == [{"log": ["x"]}, {"log": ["x", "y"]}]


async def test_what_a_consumer_does_to_a_chunk_stays_with_the_consumer(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    async for chunk in graph.astream({}, CONFIG, stream_mode="values"):
        chunk["log"].append("mine")
    assert (await graph.aget_state(CONFIG)).values["log"] == ["x", "y"]


def test_the_blocking_stream_shows_the_same(blocking_saver: Any) -> None:
    nodes = [(name, lambda _state, name=name: {"log": [name]}) for name in ("x", "y")]
    graph = chain(*nodes).compile(checkpointer=blocking_saver)
    assert list(graph.stream({"a": 1}, CONFIG, stream_mode=["values", "updates"])) == [
        ("values", {"a": 1, "log": []}),
        ("updates", {"x": {"log": ["x"]}}),
        ("values", {"a": 1, "log": ["x"]}),
        ("updates", {"y": {"log": ["y"]}}),
        ("values", {"a": 1, "log": ["x", "y"]}),
    ]
