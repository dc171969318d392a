"""Incremental channels after forks, and the state API in both flavours on one script."""

import operator
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, TypedDict

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from runtime.channels import DeltaChannel
from runtime.errors import InvalidUpdateError
from runtime.graph import START, StateGraph
from runtime.types import Command, StateUpdate
from tests.stories.graphs import CONFIG, chain, history


def extend(state: list[int] | None, writes: Sequence[list[int]]) -> list[int]:
    """Append all writes, in one call or many."""
    return [*(state or []), *(item for one in writes for item in one)]


class Both(TypedDict, total=False):
    full: Annotated[list[int], operator.add]
    delta: Annotated[list[int], DeltaChannel(extend, snapshot_frequency=3)]
    turn: int


def both_graph(saver: Any) -> Any:
    async def n(state: Both) -> dict[str, Any]:
        return {"full": [state["turn"]], "delta": [state["turn"]]}

    builder = StateGraph(Both)
    builder.add_node("n", n)
    builder.add_node("m", n)
    builder.add_edge(START, "n")
    builder.add_edge("n", "m")
    return builder.compile(checkpointer=saver)


ACTIONS = st.tuples(st.sampled_from(["run", "run from", "replay", "update", "update from"]), st.integers(0, 20))


async def play(saver: Any, actions: list[tuple[str, int]]) -> None:
    """Run, fork and edit at random; compare both channels live and reloaded, at every checkpoint."""
    graph = both_graph(saver)
    for turn, (action, pick) in enumerate([("run", 0), *actions], start=1):
        values = {"turn": turn, "full": [-turn], "delta": [-turn]}
        known = await history(graph)
        old = known[pick % len(known)].config if known else CONFIG
        if action == "run":
            live = await graph.ainvoke(values, CONFIG)
        elif action == "run from":
            live = await graph.ainvoke(values, old)
        elif action == "replay":
            live = await graph.ainvoke(None, old)
        else:
            target = old if action == "update from" else CONFIG
            updated = await graph.aupdate_state(target, values, as_node="n")
            live = (await graph.aget_state(updated)).values
        assert live["delta"] == live["full"]
        for snapshot in await history(graph):
            assert snapshot.values.get("delta", []) == snapshot.values.get("full", [])
            reloaded = await both_graph(saver).aget_state(snapshot.config)
            assert reloaded.values.get("delta", []) == reloaded.values.get("full", [])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=15, deadline=None)
@given(actions=st.lists(ACTIONS, max_size=6))
def test_an_incremental_channel_equals_a_full_one_on_every_branch(backend: str, actions: list[tuple[str, int]]) -> None:
    async def run() -> None:
        await play(InMemorySaver(), actions)

    anyio.run(run, backend=backend)


@pytest.mark.anyio
async def test_a_fork_does_not_replay_the_writes_of_the_branch_it_left(saver: Any) -> None:
    graph = both_graph(saver)
    await graph.ainvoke({"turn": 1}, CONFIG)
    base = (await graph.aget_state(CONFIG)).config
    await graph.ainvoke({"turn": 2}, CONFIG)
    left = await graph.aget_state(CONFIG)
    await graph.ainvoke({"turn": 3}, base)
    head = await graph.aget_state(CONFIG)
    assert head.values["delta"] == head.values["full"] == [1, 1, 3, 3]
    assert (await graph.aget_state(left.config)).values["delta"] == [1, 1, 2, 2]


@pytest.mark.anyio
async def test_an_edit_of_an_old_checkpoint_does_not_change_its_siblings(saver: Any) -> None:
    graph = both_graph(saver)
    await graph.ainvoke({"turn": 1}, CONFIG)
    snapshots = await history(graph)
    edited = await graph.aupdate_state(snapshots[1].config, {"full": [9], "delta": [9]}, as_node="n")
    assert (await graph.aget_state(edited)).values["delta"] == [1, 9]
    assert (await graph.aget_state(snapshots[0].config)).values["delta"] == [1, 1]


@pytest.mark.anyio
async def test_pruning_and_copying_keep_incremental_values(saver: Any) -> None:
    if not hasattr(saver, "aprune"):
        pytest.skip("the saver cannot prune")
    graph = both_graph(saver)
    for turn in range(1, 6):
        await graph.ainvoke({"turn": turn}, CONFIG)
    before = (await graph.aget_state(CONFIG)).values
    await saver.acopy_thread("t", "copy")
    copy: dict[str, Any] = {"configurable": {"thread_id": "copy"}}
    assert (await graph.aget_state(copy)).values == before
    await saver.aprune(["t"])
    assert (await graph.aget_state(CONFIG)).values == before
    assert len(await history(graph)) == 1
    assert len(await history(graph, copy)) == 20
    assert (await graph.ainvoke({"turn": 9}, CONFIG))["delta"] == [*before["delta"], 9, 9]


# The same script, blocking and async


SCRIPT: list[tuple[str, tuple[Any, ...]]] = [
    ("update", ({"log": ["as start"]}, START)),
    ("update", ({"log": ["who am I"]}, None)),
    ("state", ()),
    ("invoke", ({"a": 1},)),
    ("update", ({"log": ["head"]}, None)),
    ("update", ({"log": ["as y"]}, "y")),
    ("update", ({"log": ["nope"]}, "nope")),
    ("update", (3, "x")),
    ("update", (Command(update={"a": 5}), "x")),
    ("invoke", (None,)),
    ("bulk", ([[StateUpdate({"log": ["b1"]}, "x")], [StateUpdate({"log": ["b2"]}, "y")]],)),
    ("bulk", ([],)),
    ("state", ()),
    ("history", ()),
]


def plain(value: Any) -> Any:
    """What of a result can be compared between two threads of execution."""
    if isinstance(value, BaseException):
        return type(value).__name__, str(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if hasattr(value, "next"):
        tasks = [(t.name, t.result, t.error) for t in value.tasks]
        return value.values, value.next, tasks, value.metadata and (value.metadata["source"], value.metadata["step"])
    if isinstance(value, dict) and "configurable" in value:
        return sorted(value["configurable"])
    return value


def graph_for_script() -> Any:
    nodes = [(name, lambda _state, name=name: {"log": [name]}) for name in ("x", "y")]
    return chain(*nodes).compile(checkpointer=InMemorySaver())


def blocking_outcomes() -> list[Any]:
    graph = graph_for_script()
    calls = {
        "update": lambda values, node: graph.update_state(CONFIG, values, as_node=node),
        "state": lambda: graph.get_state(CONFIG),
        "invoke": lambda value: graph.invoke(value, CONFIG),
        "bulk": lambda steps: graph.bulk_update_state(CONFIG, steps),
        "history": lambda: list(graph.get_state_history(CONFIG)),
    }
    outcomes = []
    for name, arguments in SCRIPT:
        try:
            outcomes.append(plain(calls[name](*arguments)))
        except (InvalidUpdateError, ValueError) as error:
            outcomes.append(plain(error))
    return outcomes


async def async_outcomes() -> list[Any]:
    graph = graph_for_script()
    calls = {
        "update": lambda values, node: graph.aupdate_state(CONFIG, values, as_node=node),
        "state": lambda: graph.aget_state(CONFIG),
        "invoke": lambda value: graph.ainvoke(value, CONFIG),
        "bulk": lambda steps: graph.abulk_update_state(CONFIG, steps),
        "history": lambda: history(graph),
    }
    outcomes = []
    for name, arguments in SCRIPT:
        try:
            outcomes.append(plain(await calls[name](*arguments)))
        except (InvalidUpdateError, ValueError) as error:
            outcomes.append(plain(error))
    return outcomes


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_blocking_and_the_async_state_api_agree(backend: str) -> None:
    blocking = blocking_outcomes()
    assert blocking == anyio.run(partial(async_outcomes), backend=backend)
    assert blocking[1] == ["checkpoint_id", "checkpoint_ns", "thread_id"]
