"""What a stored checkpoint contains, its metadata, ids, parents and pending writes."""

import datetime as dt
import uuid
from typing import Any

import pytest

from runtime.errors import InvalidUpdateError
from runtime.types import Command, Send
from tests.stories.graphs import CONFIG, Gate, at, chain, fan, history, note, steps, thread

pytestmark = pytest.mark.anyio


async def rows(saver: Any, config: Any = CONFIG) -> list[Any]:
    """All stored checkpoints of a thread, oldest first."""
    return [one async for one in saver.alist(config)][::-1]


async def test_a_checkpoint_has_these_fields(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    for one in await rows(saver):
        stored = one.checkpoint
        assert set(stored) >= {"v", "id", "ts", "channel_values", "channel_versions", "versions_seen"}
        assert stored["v"] == 4
        assert stored["id"] == one.config["configurable"]["checkpoint_id"]
        assert dt.datetime.fromisoformat(stored["ts"]).utcoffset() == dt.timedelta(0)


async def test_empty_channels_are_absent_and_triggers_are_cleared(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    values = [one.checkpoint["channel_values"] for one in await rows(saver)]
    assert [sorted(one) for one in values[1:]] == [
        ["a", "branch:to:n1"],
        ["a", "branch:to:n2", "log"],
        ["a", "log"],
    ]
    assert values[0]["__start__"] == {"a": 1}


async def test_updated_channels_are_listed_sorted(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    updated = [one.checkpoint["updated_channels"] for one in await rows(saver)]
    assert updated[1:] == [["a", "branch:to:n1"], ["branch:to:n2", "log"], ["log"]]


async def test_versions_rise_for_changed_channels_only(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    versions = [one.checkpoint["channel_versions"] for one in await rows(saver)]
    assert versions[1]["a"] == versions[2]["a"] == versions[3]["a"]
    assert versions[2]["log"] < versions[3]["log"]


async def test_a_trigger_has_a_version_while_its_node_is_due(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    versions = [one.checkpoint["channel_versions"] for one in await rows(saver)]
    assert "branch:to:n1" in versions[1]
    assert "branch:to:n2" in versions[2]


async def test_checkpoint_ids_are_time_ordered_uuids_that_show_the_step(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke({}, CONFIG)
    ids = [s.config["configurable"]["checkpoint_id"] for s in await history(graph)]
    assert ids == sorted(set(ids), reverse=True)
    assert {uuid.UUID(one).version for one in ids} == {6}
    assert [one.split("-")[3] for one in ids[::-1]] == [
        "bfff", "8000", "8001", "8002", "8003", "8004", "8005", "8006",
    ]  # fmt: skip


async def test_metadata_carries_source_step_parents_and_scalars_of_the_config(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    config = {
        "configurable": {"thread_id": "t", "tenant": "acme", "deep": {"no": 1}, "__internal": "no"},
        "metadata": {"user": "eve", "score": 1.5, "ok": True, "many": [1]},
    }
    await graph.ainvoke({}, config)
    for snapshot in await history(graph):
        extra = {k: v for k, v in snapshot.metadata.items() if k not in ("source", "step", "parents")}
        assert extra == {"tenant": "acme", "user": "eve", "score": 1.5, "ok": True}
        assert snapshot.metadata["parents"] == {}


async def test_what_the_runtime_says_comes_first_and_is_not_overridden(saver: Any) -> None:
    config = {"configurable": {"thread_id": "t"}, "metadata": {"user": "eve", "step": "mine", "source": "mine"}}
    await chain("n").compile(checkpointer=saver).ainvoke({}, config)
    async for stored in saver.alist(config):
        assert list(stored.metadata) == ["source", "step", "parents", "user"]
        assert (stored.metadata["source"], type(stored.metadata["step"])) != ("mine", str)
        assert isinstance(stored.metadata["step"], int)


async def test_a_run_id_is_stored_when_it_is_metadata(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({}, {**CONFIG, "metadata": {"run_id": "r-1"}})
    assert (await graph.aget_state(CONFIG)).metadata["run_id"] == "r-1"


async def test_a_second_input_continues_the_step_count(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke({}, CONFIG)
    assert [step[:2] for step in steps(await history(graph))][::-1] == [
        (-1, "input"), (0, "loop"), (1, "loop"), (2, "loop"),
        (3, "input"), (4, "loop"), (5, "loop"), (6, "loop"),
    ]  # fmt: skip


async def test_every_checkpoint_but_the_first_names_its_parent(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke({}, CONFIG)
    snapshots = await history(graph)
    assert [s.parent_config for s in snapshots] == [s.config for s in snapshots[1:]] + [None]


async def test_task_ids_depend_on_the_checkpoint_only(saver: Any) -> None:
    graph = fan("x", "y").compile(checkpointer=saver, interrupt_before=["x"])
    await graph.ainvoke({}, CONFIG)
    before = {t.name: t.id for t in (await graph.aget_state(CONFIG)).tasks}
    again = {t.name: t.id for t in (await graph.aget_state(CONFIG)).tasks}
    assert before == again
    assert {str(uuid.UUID(one)) for one in before.values()} == set(before.values())
    await graph.ainvoke(None, CONFIG)
    recorded = {t.name: t.id for t in at(await history(graph), "x", "y").tasks}
    assert recorded == before


async def test_a_new_checkpoint_means_new_task_ids(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver, interrupt_before=["y"])
    await graph.ainvoke({}, CONFIG)
    before = (await graph.aget_state(CONFIG)).tasks[0].id
    await graph.aupdate_state(CONFIG, {"a": 1})
    assert (await graph.aget_state(CONFIG)).tasks[0].id != before


async def test_a_finished_task_without_output_is_recorded_as_finished(saver: Any) -> None:
    runs: list[str] = []
    gate = Gate("silent")
    graph = fan(("silent", lambda _state: runs.append("silent")), ("bad", gate.fail), last=None).compile(
        checkpointer=saver
    )
    with pytest.raises(ValueError, match="boom"):
        await gate.run(graph, {}, CONFIG)
    silent, bad = (await graph.aget_state(CONFIG)).tasks
    assert (silent.name, silent.result, silent.error) == ("silent", {}, None)
    writes = (await saver.aget_tuple(CONFIG)).pending_writes
    assert {(task, channel) for task, channel, _value in writes} == {
        (silent.id, "__no_writes__"),
        (bad.id, "__error__"),
    }
    gate.mended = True
    await graph.ainvoke(None, CONFIG)
    assert runs == ["silent"]


async def test_pending_writes_are_stored_against_the_checkpoint_their_step_started_from(saver: Any) -> None:
    graph = chain("n1", ("n2", lambda _state: Command(update={"a": 7}, goto=Send("n3", {}))), "n3").compile(
        checkpointer=saver
    )
    await graph.ainvoke({}, CONFIG)
    stored = [(one.metadata["step"], sorted(w[1] for w in one.pending_writes)) for one in await rows(saver)]
    assert stored[1] == (0, ["branch:to:n2", "log"])
    assert stored[2] == (1, ["__pregel_tasks", "a", "branch:to:n3"])
    assert stored[-1][1] == []


async def test_errors_are_stored_as_text(saver: Any) -> None:
    async def bad(_state: Any) -> None:
        message = "boom"
        raise ValueError(message)

    graph = chain(("bad", bad)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    (task,) = (await graph.aget_state(CONFIG)).tasks
    assert task.error == "ValueError('boom')"
    assert task.result is None


async def test_a_thread_is_deleted_whole(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke({}, thread("other"))
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(CONFIG) is None
    assert await rows(saver) == []
    assert (await graph.aget_state(CONFIG)).values == {}
    assert (await graph.aget_state(thread("other"))).values == {"log": ["n"]}


async def test_a_deleted_thread_starts_afresh(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({"log": ["old"]}, CONFIG)
    await saver.adelete_thread("t")
    assert await graph.ainvoke({}, CONFIG) == {"log": ["n"]}
    assert [s.metadata["step"] for s in await history(graph)] == [1, 0, -1]


async def test_a_saver_lists_newest_first_with_filters(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke({}, thread("other"))
    everything = [one async for one in saver.alist(None)]
    assert len(everything) == 8
    listed = [one async for one in saver.alist(CONFIG, limit=2)]
    assert [one.metadata["step"] for one in listed] == [2, 1]
    older = [one async for one in saver.alist(CONFIG, before=listed[1].config)]
    assert [one.metadata["step"] for one in older] == [0, -1]
    inputs = [one async for one in saver.alist(CONFIG, filter={"source": "input"})]
    assert [one.metadata["step"] for one in inputs] == [-1]


async def test_a_saver_returns_none_for_what_it_does_not_have(saver: Any) -> None:
    assert await saver.aget_tuple(CONFIG) is None
    await chain("n").compile(checkpointer=saver).ainvoke({}, CONFIG)
    missing = {"configurable": {"thread_id": "t", "checkpoint_id": str(uuid.uuid4())}}
    assert await saver.aget_tuple(missing) is None


async def test_a_failed_node_leaves_no_writes_of_its_own(saver: Any) -> None:
    graph = fan(("x", note("x")), ("wrong", lambda _state: 3)).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError):
        await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    wrong = next(t for t in snapshot.tasks if t.name == "wrong")
    writes = (await saver.aget_tuple(CONFIG)).pending_writes
    assert [channel for task, channel, _value in writes if task == wrong.id] == ["__error__"]
