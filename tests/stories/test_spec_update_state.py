"""Editing a thread: update_state and bulk_update_state."""

import operator
from typing import Annotated, Any, TypedDict

import pytest

from runtime.errors import InvalidUpdateError
from runtime.func import entrypoint
from runtime.graph import END, START, StateGraph
from runtime.types import Command, Send, StateUpdate, interrupt
from tests.stories.graphs import CONFIG, Gate, Log, at, chain, fan, history, note, steps, thread

pytestmark = pytest.mark.anyio


async def paused(saver: Any, runs: list[str] | None = None) -> Any:
    """``x -> y -> z``, paused before ``y``."""

    def node(name: str) -> Any:
        async def run(_state: Any) -> dict[str, Any]:
            if runs is not None:
                runs.append(name)
            return {"log": [name]}

        return run

    builder = chain(*[(name, node(name)) for name in ("x", "y", "z")])
    graph = builder.compile(checkpointer=saver, interrupt_before=["y"])
    await graph.ainvoke({"a": 1}, CONFIG)
    return graph


async def test_an_update_makes_a_child_of_the_head_and_returns_its_address(saver: Any) -> None:
    graph = await paused(saver)
    before = await history(graph)
    updated = await graph.aupdate_state(CONFIG, {"a": 2, "log": ["edit"]})
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.config == updated
    assert set(updated["configurable"]) == {"thread_id", "checkpoint_ns", "checkpoint_id"}
    assert snapshot.parent_config == before[0].config
    assert snapshot.metadata == {"source": "update", "step": 2, "parents": {}}
    assert snapshot.values == {"a": 2, "log": ["x", "edit"]}
    assert (await history(graph))[1:] != []
    assert [s.config for s in (await history(graph))[1:]] == [s.config for s in before]


@pytest.mark.parametrize(
    ("as_node", "expected"),
    [(None, ("y",)), ("x", ("y",)), ("y", ("z",)), ("z", ()), (START, ("x",))],
)
async def test_the_node_an_update_is_made_as_decides_what_is_next(
    saver: Any, as_node: str | None, expected: tuple[str, ...]
) -> None:
    graph = await paused(saver)
    await graph.aupdate_state(CONFIG, {"a": 2}, as_node=as_node)
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == expected
    assert snapshot.values == {"a": 2, "log": ["x"]}


async def test_an_update_as_a_node_skips_that_node(saver: Any) -> None:
    runs: list[str] = []
    graph = await paused(saver, runs)
    await graph.aupdate_state(CONFIG, {"log": ["played y"]}, as_node="y")
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "played y", "z"]
    assert runs == ["x", "z"]


async def test_an_update_may_be_none_and_still_route(saver: Any) -> None:
    graph = await paused(saver)
    await graph.aupdate_state(CONFIG, None, as_node="y")
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.values) == (("z",), {"a": 1, "log": ["x"]})


async def test_the_record_shows_a_played_result(saver: Any) -> None:
    graph = await paused(saver)
    await graph.aupdate_state(CONFIG, {"log": ["played y"]}, as_node="y")
    (task,) = at(await history(graph), "y").tasks
    assert (task.name, task.result) == ("y", {"log": ["played y"]})


async def test_an_unknown_node_is_refused(saver: Any) -> None:
    graph = await paused(saver)
    before = await history(graph)
    with pytest.raises(InvalidUpdateError, match="nope"):
        await graph.aupdate_state(CONFIG, {"a": 2}, as_node="nope")
    assert await history(graph) == before


async def test_a_wrong_type_of_update_is_refused(saver: Any) -> None:
    graph = await paused(saver)
    before = await history(graph)
    with pytest.raises(InvalidUpdateError):
        await graph.aupdate_state(CONFIG, 3)
    assert await history(graph) == before


async def test_an_update_as_end_finishes_the_thread_with_what_is_done(saver: Any) -> None:
    gate = Gate("ok")
    graph = fan("ok", ("bad", gate.fail)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await gate.run(graph, {}, CONFIG)
    await graph.aupdate_state(CONFIG, None, as_node=END)
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.values["log"]) == ((), ["st", "ok"])


async def test_an_update_as_end_takes_no_values(saver: Any) -> None:
    graph = await paused(saver)
    with pytest.raises(InvalidUpdateError):
        await graph.aupdate_state(CONFIG, {"a": 2}, as_node=END)


async def test_an_update_drops_the_other_pending_tasks_of_its_step(saver: Any) -> None:
    gate = Gate("ok")
    graph = fan("ok", ("bad", gate.fail)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await gate.run(graph, {}, CONFIG)
    await graph.aupdate_state(CONFIG, {"log": ["played bad"]}, as_node="bad")
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.values["log"]) == ((), ["st", "played bad"])


async def test_an_update_of_a_graph_with_one_node_leaves_the_node_due_that_has_not_run(saver: Any) -> None:
    graph = chain("only").compile(checkpointer=saver)
    await graph.aupdate_state(CONFIG, {"a": 1})
    assert (await graph.aget_state(CONFIG)).next == ("only",)
    await graph.ainvoke(None, CONFIG, interrupt_before=["only"])
    await graph.aupdate_state(CONFIG, {"a": 2})
    assert await graph.ainvoke(None, CONFIG) == {"a": 2, "log": ["only"]}
    await graph.aupdate_state(CONFIG, {"a": 3})
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.values) == ((), {"a": 3, "log": ["only"]})


async def test_the_function_of_a_workflow_is_inferred(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def twice(number: int) -> int:
        return number * 2

    assert await twice.ainvoke(2, CONFIG) == 4
    await twice.aupdate_state(CONFIG, 5)
    assert (await twice.aget_state(CONFIG)).values == 5


async def test_an_update_of_parallel_work_is_ambiguous(saver: Any) -> None:
    graph = fan("x", "y", first=None, last=None).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(InvalidUpdateError, match="(?i)ambiguous"):
        await graph.aupdate_state(CONFIG, {"a": 1})
    await graph.aupdate_state(CONFIG, {"a": 1}, as_node="x")
    assert (await graph.aget_state(CONFIG)).values["a"] == 1


async def test_a_fresh_thread_can_be_seeded_by_an_update(saver: Any) -> None:
    runs: list[str] = []
    graph = chain("x", ("y", lambda _s: runs.append("y") or {"log": ["y"]})).compile(checkpointer=saver)
    await graph.aupdate_state(CONFIG, {"a": 1, "log": ["seed"]}, as_node="x")
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("y",)
    assert snapshot.metadata["source"] == "update"
    assert await graph.ainvoke(None, CONFIG) == {"a": 1, "log": ["seed", "y"]}
    assert runs == ["y"]


async def test_conditional_edges_run_on_the_updated_state(saver: Any) -> None:
    class State(TypedDict, total=False):
        way: str
        log: Annotated[list[str], operator.add]

    builder = StateGraph(State)
    for name in ("x", "y", "z"):
        builder.add_node(name, note(name))
    builder.add_edge(START, "x")
    builder.add_conditional_edges("x", lambda state: state["way"], ["y", "z"])
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"way": "y"}, CONFIG)
    old = at(await history(graph), "y")
    updated = await graph.aupdate_state(old.config, {"way": "z"}, as_node="x")
    assert (await graph.aget_state(updated)).next == ("z",)
    assert (await graph.ainvoke(None, updated))["log"] == ["x", "z"]


async def test_reducers_apply_to_updates(saver: Any) -> None:
    graph = await paused(saver)
    await graph.aupdate_state(CONFIG, {"log": ["one"]}, as_node="x")
    await graph.aupdate_state(CONFIG, {"log": ["two"]}, as_node="x")
    assert (await graph.aget_state(CONFIG)).values["log"] == ["x", "one", "two"]


async def test_a_command_is_an_update(saver: Any) -> None:
    graph = await paused(saver)
    await graph.aupdate_state(CONFIG, Command(update={"a": 9}, goto="z"), as_node="x")
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.values["a"] == 9
    assert set(snapshot.next) == {"y", "z"}


async def test_sends_of_an_update_are_pending_on_the_new_checkpoint(saver: Any) -> None:
    builder = StateGraph(Log)
    builder.add_node("src", note("src"))
    builder.add_node("work", lambda item: {"log": [f"w{item}"]})
    builder.add_edge(START, "src")
    builder.add_conditional_edges("src", lambda state: [Send("work", state["a"])], ["work"])
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    old = at(await history(graph), "src")
    updated = await graph.aupdate_state(old.config, {"a": 7}, as_node="src")
    assert (await graph.aget_state(updated)).next == ("work",)
    assert (await graph.ainvoke(None, updated))["log"] == ["w7"]


# The special names __input__ and __copy__


async def test_an_update_as_input_acts_like_fresh_input(saver: Any) -> None:
    graph = await paused(saver)
    await graph.aupdate_state(CONFIG, {"log": ["fresh"]}, as_node="__input__")
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.metadata["source"] == "input"
    assert snapshot.next == ("__start__", "y")


async def test_a_copy_is_a_sibling_of_the_original(saver: Any) -> None:
    graph = await paused(saver)
    original = await graph.aget_state(CONFIG)
    await graph.aupdate_state(CONFIG, None, as_node="__copy__")
    copied = await graph.aget_state(CONFIG)
    assert copied.values == original.values
    assert copied.next == original.next
    assert copied.metadata["source"] == "fork"
    assert copied.parent_config == original.parent_config
    assert copied.config != original.config


async def test_a_copy_of_an_empty_thread_is_refused(saver: Any) -> None:
    with pytest.raises(InvalidUpdateError):
        await chain("n").compile(checkpointer=saver).aupdate_state(CONFIG, None, as_node="__copy__")


# bulk


async def test_bulk_updates_make_one_checkpoint_per_superstep(saver: Any) -> None:
    graph = chain("x", "y", "z").compile(checkpointer=saver)
    last = await graph.abulk_update_state(
        CONFIG,
        [
            [StateUpdate({"a": 1}, "__input__")],
            [StateUpdate(None, START)],
            [StateUpdate({"log": ["bulk x"]}, "x")],
            [StateUpdate({"log": ["bulk y"]}, "y")],
        ],
    )
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.config == last
    assert snapshot.next == ("z",)
    assert snapshot.values["log"] == ["bulk x", "bulk y"]
    assert [s[0] for s in steps(await history(graph))] == [2, 1, 0, -1]
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["bulk x", "bulk y", "z"]


async def test_several_updates_of_one_superstep_need_their_nodes(saver: Any) -> None:
    graph = fan("x", "y").compile(checkpointer=saver, interrupt_before=["x"])
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(InvalidUpdateError):
        await graph.abulk_update_state(CONFIG, [[StateUpdate({"a": 1}), StateUpdate({"a": 2})]])
    await graph.abulk_update_state(CONFIG, [[StateUpdate({"log": ["px"]}, "x"), StateUpdate({"log": ["py"]}, "y")]])
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("join",)
    assert snapshot.values["log"] == ["st", "px", "py"]


@pytest.mark.parametrize("supersteps", [[], [[]], [[StateUpdate({"a": 1}, "x")], []]])
async def test_empty_bulk_updates_are_refused(saver: Any, supersteps: Any) -> None:
    graph = await paused(saver)
    with pytest.raises(ValueError, match=r".+"):
        await graph.abulk_update_state(CONFIG, supersteps)


# Interrupted nodes


async def test_an_update_of_an_interrupted_thread_plans_the_node_again(saver: Any) -> None:
    async def ask(state: Log) -> dict[str, Any]:
        return {"log": [f"a={state['a']} {interrupt('q')}"]}

    graph = chain("x", ("ask", ask)).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    before = (await graph.aget_state(CONFIG)).tasks[0].id
    await graph.aupdate_state(CONFIG, {"a": 2})
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("ask",)
    assert snapshot.tasks[0].id != before
    assert snapshot.interrupts == ()
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["x", "a=2 yes"]


async def test_the_state_of_one_thread_is_not_another(saver: Any) -> None:
    graph = await paused(saver)
    await graph.aupdate_state(thread("other"), {"a": 5}, as_node="x")
    assert (await graph.aget_state(CONFIG)).values["a"] == 1
    assert (await graph.aget_state(thread("other"))).values == {"a": 5, "log": []}


async def test_what_a_send_ran_gives_way_to_the_node_beside_it(saver: Any) -> None:
    """Which node an update is made as, if nobody says."""
    builder = StateGraph(Log).add_node("a", note("a")).add_node("sent", note("sent")).add_node("b", note("b"))
    builder.add_edge(START, "a").add_conditional_edges("a", lambda _s: [Send("sent", {}), "b"], ["sent", "b"])
    graph = builder.compile(saver)
    await graph.ainvoke({}, CONFIG)
    await graph.aupdate_state(CONFIG, {"log": ["edit"]})
    assert (await graph.aget_state(CONFIG)).values["log"] == ["a", "b", "sent", "edit"]


@pytest.mark.parametrize(
    ("command", "log", "number"),
    [
        (Command(update={"a": 50}), ["x", "y", "z"], 52),
        (Command(update={"a": 50}, goto="y"), ["x", "y", "z"], 52),
        (Command(update={"a": 50}, goto="z"), ["x", "y", "z", "z"], 52),
        (Command(goto="z"), ["x", "y", "z", "z"], 3),
    ],
)
async def test_what_a_command_writes_at_a_point_that_is_past_reaches_what_follows(
    saver: Any, command: Any, log: list[str], number: int
) -> None:
    """The nodes run anew: their stored results know nothing of it."""

    def node(name: str) -> Any:
        return lambda state: (
            {"log": [name], "a": state["a"] + 1} if name != "z" or "y" in state["log"] else {"log": ["z"]}
        )

    graph = chain(*[(name, node(name)) for name in ("x", "y", "z")]).compile(saver)
    await graph.ainvoke({"a": 0}, CONFIG)
    before = await history(graph)
    point = next(each for each in before if each.next == ("y",))
    result = await graph.ainvoke(command, point.config)
    assert (result["log"], result["a"]) == (log, number)
    assert (await history(graph))[-len(before) :] == before


async def test_what_had_finished_stays_finished_if_the_command_comes_at_the_head(saver: Any) -> None:
    runs: list[str] = []

    def good(_state: Any) -> dict[str, Any]:
        runs.append("good")
        return {"log": ["good"]}

    def ask(_state: Any) -> dict[str, Any]:
        return {"log": [interrupt("?")]}

    builder = StateGraph(Log).add_node("good", good).add_node("ask", ask).add_edge(START, "good").add_edge(START, "ask")
    graph = builder.compile(saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(update={"a": 5}), (await graph.aget_state(CONFIG)).config)
    assert await graph.ainvoke(Command(resume="!"), CONFIG) == {"a": 5, "log": ["!", "good"]}
    assert runs == ["good"]
