"""When the checkpoints of subgraphs are written, in every durability, and what is left after failures."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.graph import START, StateGraph
from runtime.types import Command, Durability, RetryPolicy, interrupt
from tests.stories.graphs import CONFIG, Log, chain, fan, thread
from tests.stories.nests import Runs, asked
from tests.stories.recording import RecordingSaver

pytestmark = pytest.mark.anyio

DURABILITIES: list[Durability] = ["sync", "async", "exit"]


async def stored(saver: Any, name: str = "t") -> list[tuple[str, int]]:
    """(namespace without ids, step) of a thread's checkpoints, oldest first."""
    found = [
        (
            "|".join(part.partition(":")[0] for part in one.config["configurable"]["checkpoint_ns"].split("|")),
            one.metadata["step"],
        )
        async for one in saver.alist(thread(name))
    ]
    return sorted(found)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kept", [None, True, False])
async def test_what_a_success_leaves(saver: Any, durability: Durability, kept: Any) -> None:
    graph = chain(("p", chain("s").compile(checkpointer=kept))).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, durability=durability)
    root = [("", step) for step in ([1] if durability == "exit" else [-1, 0, 1])]
    child = [("p", step) for step in ([1] if durability == "exit" else [-1, 0, 1])]
    if kept is False or (kept is None and durability == "exit"):
        child = []
    assert await stored(saver) == root + child


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kept", [None, True])
@pytest.mark.parametrize("ending", ["asks", "fails"])
async def test_what_a_pause_or_failure_leaves(saver: Any, durability: Durability, kept: Any, ending: str) -> None:
    runs = Runs()
    last = runs.asker("n") if ending == "asks" else runs.failer("n")
    graph = chain(("p", chain("s", last).compile(checkpointer=kept))).compile(checkpointer=saver)
    if ending == "asks":
        await graph.ainvoke({}, CONFIG, durability=durability)
    else:
        with pytest.raises(ConnectionError):
            await graph.ainvoke({}, CONFIG, durability=durability)
    steps = [(0, 1)] if durability == "exit" else [(-1, -1), (0, 0), (None, 1)]
    assert await stored(saver) == [("", a) for a, _ in steps if a is not None] + [("p", b) for _, b in steps]
    (head,) = [one async for one in saver.alist({"configurable": {"thread_id": "t"}}, limit=1)]
    assert head.config["configurable"]["checkpoint_ns"].partition(":")[0] == "p"  # before the parent's last word
    channels = {channel for _, channel, _ in head.pending_writes}
    assert ("__interrupt__" if ending == "asks" else "__error__") in channels


async def test_a_pause_is_saved_inside_out() -> None:
    saver = RecordingSaver()
    graph = chain(("p", chain("s", Runs().asker("n")).compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, durability="exit")
    written = [event for event in saver.events if not event.endswith("done")]
    assert sorted(written[:2]) == ["put 1", "writes n"]
    assert sorted(written[2:]) == ["put 0", "writes p"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_the_trace_of_an_answer(durability: Durability) -> None:
    saver = RecordingSaver()
    graph = chain(("p", chain("s", Runs().asker("n")).compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, durability=durability)
    saver.events.clear()
    await graph.ainvoke(Command(resume="yes"), CONFIG, durability=durability)
    puts = [event for event in saver.events if event.startswith("put") and not event.endswith("done")]
    assert puts == (["put 1"] if durability == "exit" else ["put 2", "put 1"])


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kept", [None, True])
async def test_a_failure_inside_is_resumed_where_it_happened(saver: Any, durability: Durability, kept: Any) -> None:
    runs = Runs()
    child = chain(runs.step("a"), runs.failer("b"), runs.step("c")).compile(checkpointer=kept)
    graph = chain(("p", child), runs.step("end")).compile(checkpointer=saver)
    with pytest.raises(ConnectionError) as caught:
        await graph.ainvoke({}, CONFIG, durability=durability)
    notes = "\n".join(caught.value.__notes__)
    assert "'b'" in notes
    assert "'p'" in notes
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    assert snapshot.next == ("p",)
    assert "ConnectionError" in snapshot.tasks[0].error
    assert snapshot.tasks[0].state.next == ("b",)
    assert "ConnectionError" in snapshot.tasks[0].state.tasks[0].error
    assert await graph.ainvoke(None, CONFIG, durability=durability) == {"log": ["a", "b", "c", "end"]}
    assert runs == {"a": 1, "b": 2, "c": 1, "end": 1}


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_three_deep(saver: Any, durability: Durability) -> None:
    runs = Runs()
    inner = chain(runs.step("a"), runs.failer("b")).compile()
    middle = chain(runs.step("m"), ("q", inner)).compile()
    graph = chain(runs.step("r"), ("p", middle)).compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        await graph.ainvoke({}, CONFIG, durability=durability)
    await graph.ainvoke(None, CONFIG, durability=durability)
    assert runs == {"r": 1, "m": 1, "a": 1, "b": 2}


async def test_a_stateless_one_starts_over() -> None:
    runs = Runs()
    child = chain(runs.step("a"), runs.failer("b")).compile(checkpointer=False)
    graph = chain(("p", child)).compile(checkpointer=RecordingSaver())
    with pytest.raises(ConnectionError):
        await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(None, CONFIG)
    assert runs == {"a": 2, "b": 2}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kept", [None, True])
@pytest.mark.parametrize("form", ["node", "function"])
async def test_a_retry_of_the_parent_resumes_the_child(
    saver: Any, durability: Durability, kept: Any, form: str
) -> None:
    runs = Runs()
    child = chain(runs.step("a"), runs.failer("b", times=2), runs.step("c")).compile(checkpointer=kept)

    async def node(_state: Log) -> dict[str, Any]:
        return {"log": (await child.ainvoke({"log": []}))["log"]}

    builder = StateGraph(Log)
    policy = RetryPolicy(initial_interval=0.001, jitter=False)
    builder.add_node("p", child if form == "node" else node, retry_policy=policy)
    builder.add_edge(START, "p")
    graph = builder.compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG, durability=durability) == {"log": ["a", "b", "c"]}
    assert runs == {"a": 1, "b": 3, "c": 1}
    assert {name for name, _ in await stored(saver)} <= {"", "p"}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kept", [None, True])
async def test_a_retry_does_not_run_again_what_had_finished(saver: Any, durability: Durability, kept: Any) -> None:
    runs = Runs()
    child = chain(runs.step("a")).compile(checkpointer=kept)

    async def node(_state: Log) -> dict[str, Any]:
        runs["node"] += 1
        noted: list[str] = (await child.ainvoke({"log": []}))["log"]
        if runs["node"] < 3:
            raise ConnectionError
        return {"log": noted}

    builder = StateGraph(Log)
    builder.add_node("f", node, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    builder.add_edge(START, "f")
    graph = builder.compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG, durability=durability) == {"log": ["a"]}
    assert runs == {"node": 3, "a": 1}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("ending", ["asks", "fails"])
async def test_what_a_function_had_run_to_its_end_is_not_run_again(
    saver: Any, durability: Durability, ending: str
) -> None:
    runs = Runs()
    child = chain(runs.step("a")).compile()

    async def node(_state: Log) -> dict[str, Any]:
        runs["node"] += 1
        noted: list[str] = (await child.ainvoke({"log": []}))["log"]
        if ending == "asks":
            return {"log": [*noted, interrupt("q")]}
        if runs["node"] == 1:
            raise ConnectionError
        return {"log": [*noted, "yes"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    if ending == "asks":
        assert asked(await graph.ainvoke({}, CONFIG, durability=durability)) == ["q"]
        result = await graph.ainvoke(Command(resume="yes"), CONFIG, durability=durability)
    else:
        with pytest.raises(ConnectionError):
            await graph.ainvoke({}, CONFIG, durability=durability)
        result = await graph.ainvoke(None, CONFIG, durability=durability)
    assert result == {"log": ["a", "yes"]}
    assert runs == {"node": 2, "a": 1}


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_finished_subgraph_beside_a_failed_node_is_not_run_again(saver: Any, durability: Durability) -> None:
    runs = Runs()
    seen = anyio.Event()

    async def bad(_state: Log) -> dict[str, Any]:
        runs["bad"] += 1
        if runs["bad"] == 1:
            await seen.wait()
            raise ConnectionError
        return {"log": ["bad"]}

    graph = fan(("p", chain(runs.step("s")).compile()), ("bad", bad), first=None).compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        async for update in graph.astream({}, CONFIG, durability=durability):
            if "p" in update:
                seen.set()
    assert await graph.ainvoke(None, CONFIG, durability=durability) == {"log": ["bad", "s", "join"]}
    assert runs == {"bad": 2, "s": 1}


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_restarts_of_the_program_between_failures(database: str, durability: Durability) -> None:
    runs = Runs()
    inner = chain(runs.step("a"), runs.failer("b", times=2), runs.step("c")).compile()
    result = None
    for number in range(3):
        async with SqliteSaver.from_conn_string(database) as saver:
            graph = chain(("p", chain(runs.step("m"), ("q", inner)).compile())).compile(checkpointer=saver)
            try:
                result = await graph.ainvoke({} if number == 0 else None, CONFIG, durability=durability)
            except ConnectionError:
                assert number < 2
    assert result is not None
    assert runs == {"m": 1, "a": 1, "b": 3, "c": 1}


async def test_a_cancelled_run_is_resumed_inside_the_subgraph(saver: Any) -> None:
    runs = Runs()
    reached = anyio.Event()
    released = anyio.Event()

    async def slow(_state: Log) -> dict[str, Any]:
        runs["slow"] += 1
        reached.set()
        await released.wait()
        return {"log": ["slow"]}

    graph = chain(("p", chain(runs.step("a"), ("slow", slow)).compile())).compile(checkpointer=saver)
    async with anyio.create_task_group() as group:
        group.start_soon(graph.ainvoke, {}, CONFIG)
        await reached.wait()
        group.cancel_scope.cancel()
    assert (await graph.aget_state(CONFIG, subgraphs=True)).tasks[0].state.next == ("slow",)
    released.set()
    assert await graph.ainvoke(None, CONFIG) == {"log": ["a", "slow"]}
    assert runs == {"a": 1, "slow": 2}


@pytest.mark.parametrize("how", ["cancel", "sibling", "timeout", "stream"])
async def test_nothing_is_left_running(saver: Any, how: str) -> None:
    ended: list[str] = []
    reached = anyio.Event()

    async def slow(_state: Log) -> dict[str, Any]:
        try:
            reached.set()
            await anyio.sleep_forever()
        finally:
            ended.append("slow")
        return {}

    async def bad(_state: Log) -> dict[str, Any]:
        if how != "sibling":
            return {}
        await reached.wait()
        raise ConnectionError

    child = chain(("q", chain(("slow", slow)).compile())).compile()
    graph = fan(("p", child), ("bad", bad), first=None).compile(checkpointer=saver)
    if how == "sibling":
        with pytest.raises(ConnectionError):
            await graph.ainvoke({}, CONFIG)
    elif how == "timeout":
        graph.step_timeout = 0.05
        with pytest.raises(TimeoutError):
            await graph.ainvoke({}, CONFIG)
    elif how == "stream":
        async with graph.astream({}, CONFIG, stream_mode="tasks", subgraphs=True) as stream:
            async for _, chunk in stream:
                if chunk["name"] == "slow":
                    await reached.wait()
                    break
    else:
        async with anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, {}, CONFIG)
            await reached.wait()
            group.cancel_scope.cancel()
    assert ended == ["slow"]
    assert (graph.statistics(), child.statistics()) == ((), ())


async def test_deleting_a_thread_deletes_all_of_it(saver: Any) -> None:
    kept = chain("k").compile(checkpointer=True)
    inner = chain("s", Runs().asker("n")).compile()
    graph = chain(("k", kept), ("p", chain(("q", inner)).compile())).compile(checkpointer=saver)
    for name in ("t", "other"):
        await graph.ainvoke({}, thread(name))
    assert {name for name, _ in await stored(saver)} == {"", "k", "p", "p|q"}
    before = await stored(saver, "other")
    await saver.adelete_thread("t")
    assert await stored(saver) == []
    assert await stored(saver, "other") == before
    assert (await graph.aget_state(CONFIG)).values == {}
    assert asked(await graph.ainvoke({}, CONFIG)) == ["n?"]
