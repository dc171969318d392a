"""The order in which a run becomes durable, seen from a saver that knows nothing of this project's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.errors import BackendError
from persistence.writer.saver import GroupCommitSaver
from runtime.graph import END, START, CompiledStateGraph, StateGraph
from runtime.types import Command
from tests.crash.programs import CHAIN, CONFIG, JOKES, QUESTION, Program, State
from tests.crash.slow_backend import SlowBackend
from tests.crash.third_party import Event, PlainSaver
from tests.crash.virtual_time import both_loops, run

every_mode = pytest.mark.parametrize("durability", ["sync", "async", "exit"])
both_programs = pytest.mark.parametrize("program", [JOKES, CHAIN], ids=lambda program: program.name)


def compiled(program: Program, saver: PlainSaver) -> CompiledStateGraph:
    return program.build(saver).compile(checkpointer=saver)


# What the contract asks for is enough


def test_the_saver_has_what_the_contract_asks_for_and_no_more() -> None:
    own = {name for name, value in vars(PlainSaver).items() if name.startswith("a") and callable(value)}
    assert own == {"aget_tuple", "alist", "aput", "aput_writes", "adelete_thread"}


@both_loops
@every_mode
def test_five_methods_are_enough_to_run_ask_answer_read_edit_and_delete(loop: str, durability: Any) -> None:
    async def story() -> None:
        saver = PlainSaver(lambda: 1.0)
        graph = compiled(QUESTION, saver)
        paused = await graph.ainvoke(QUESTION.given, CONFIG, durability=durability)
        assert [question.value for question in paused["__interrupt__"]] == ["Which colour?"]
        assert (await graph.aget_state(CONFIG)).next == ("ask",)
        assert await graph.ainvoke(QUESTION.answer, CONFIG, durability=durability) == QUESTION.result
        history = [one async for one in graph.aget_state_history(CONFIG)]
        assert (history[0].values, history[0].next) == (QUESTION.result, ())
        assert [one.metadata["step"] for one in history] == ([3, 1] if durability == "exit" else [3, 2, 1, 0, -1])
        await graph.aupdate_state(CONFIG, {"topic": "red"}, as_node="ask")
        assert (await graph.aget_state(CONFIG)).next == ("after",)
        assert (await graph.ainvoke(None, CONFIG, durability=durability))["log"][-1] == "after red"
        (asking,) = [one for one in history if one.next == ("ask",)]
        again = await graph.ainvoke(None, asking.config, durability=durability)
        assert "__interrupt__" in again
        await saver.adelete_thread("t")
        assert (await graph.aget_state(CONFIG)).values == {}

    run(loop, story)


# Writes before the checkpoint that they make; the checkpoint before what builds on it


@both_loops
@both_programs
@pytest.mark.parametrize("durability", ["sync", "async"])
@settings(max_examples=40)
@given(waits=st.lists(st.floats(0, 60), max_size=30))
def test_whatever_calls_take_writes_come_before_the_checkpoint_that_they_make(
    loop: str, program: Program, durability: Any, waits: list[float]
) -> None:
    times = chain(waits, repeat(0.0))
    saver = PlainSaver(lambda: next(times))

    async def story() -> None:
        result = await compiled(program, saver).ainvoke(program.given, CONFIG, durability=durability)
        assert result == program.result

    run(loop, story)
    steps = range(-1, program.last_step + 1)
    moments = [saver.position(kind, step) for step in steps for kind in ("put", "put done")]
    assert moments == sorted(moments)
    for node, step in {"__start__": 0, **program.nodes}.items():
        assert saver.position("writes done", node) < saver.position("put", step)
    for node, step in program.nodes.items():
        if durability == "sync":
            assert saver.position("put done", step - 1) < saver.position("node", node)


@both_loops
@both_programs
def test_exit_stores_one_checkpoint_after_the_last_node(loop: str, program: Program) -> None:
    saver = PlainSaver(lambda: 1.0)

    async def story() -> None:
        assert await compiled(program, saver).ainvoke(program.given, CONFIG, durability="exit") == program.result

    run(loop, story)
    assert [kind for kind, _ in saver.events] == ["node"] * len(program.nodes) + ["put", "put done"]


# In sync, what a run starts from is durable before any of the user's code runs


def routed(look: Callable[[], None]) -> StateGraph[Any]:
    """A graph whose first user code is a router."""

    async def router(state: State) -> str:
        look()
        return "node"

    async def node(state: State) -> None:
        look()

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_conditional_edges(START, router, ["node"])
    builder.add_edge("node", END)
    return builder


async def durable_when_user_code_runs(given: Any) -> list[list[int]]:
    """Run a graph in sync mode on a fresh thread; return the steps on disk whenever the user's code began."""
    backend, seen = SlowBackend(1.0), list[list[int]]()
    async with GroupCommitSaver(backend) as saver:
        graph = routed(lambda: seen.append(backend.steps())).compile(checkpointer=saver)
        await graph.ainvoke(given, CONFIG, durability="sync")
    return seen


@both_loops
def test_sync_stores_the_input_before_a_router_of_it_runs(loop: str) -> None:
    assert run(loop, partial(durable_when_user_code_runs, {"topic": "x"})) == [[-1], [-1, 0]]


@both_loops
def test_sync_stores_a_command_before_the_node_that_it_names_runs(loop: str) -> None:
    command: Any = Command(goto="node", update={"topic": "x"})
    assert run(loop, partial(durable_when_user_code_runs, command)) == [[-1]]


@both_loops
def test_sync_stores_a_fork_before_its_nodes_run(loop: str) -> None:
    async def story() -> None:
        backend, seen = SlowBackend(1.0), list[int]()
        async with GroupCommitSaver(backend) as saver:
            graph = routed(lambda: seen.append(len(backend.steps()))).compile(checkpointer=saver)
            await graph.ainvoke({"topic": "x"}, CONFIG)
            (start,) = [one async for one in graph.aget_state_history(CONFIG) if one.next == ("node",)]
            seen.clear()
            await graph.ainvoke(None, start.config, durability="sync")
        # Three checkpoints of the first run, and the fork.
        assert seen == [4]

    run(loop, story)


@both_loops
def test_sync_stores_an_answer_before_the_node_sees_it(loop: str) -> None:
    async def story() -> None:
        backend, seen = SlowBackend(1.0), list[Any]()

        class Looking:
            def note(self, *words: object) -> None:
                if words[0] == "answered":
                    writes = backend.tables.load("t", "", None).writes
                    seen.extend(row[5] for rows in writes.values() for row in rows)

            async def recorded(self, node: str) -> None:
                """Wait for nothing."""

        async with GroupCommitSaver(backend) as saver:
            graph = QUESTION.build(Looking()).compile(checkpointer=saver)
            await graph.ainvoke(QUESTION.given, CONFIG, durability="sync")
            await graph.ainvoke(QUESTION.answer, CONFIG, durability="sync")
        assert "__resume__" in seen

    run(loop, story)


# A saver that fails


def failing_events(program: Program) -> list[Event]:
    """Return every call that a run makes."""
    puts: list[Event] = [("put", step) for step in range(-1, program.last_step + 1)]
    writes: list[Event] = [("writes", node) for node in ("__start__", *program.nodes)]
    return puts + writes


def step_of(event: Event, program: Program) -> int:
    """Return the superstep whose record fails with an event: the step of the checkpoint it belongs to."""
    kind, what = event
    steps = {"__start__": 0, **program.nodes}
    return what if kind == "put" and isinstance(what, int) else steps[str(what)]


@both_loops
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("event", failing_events(JOKES), ids=lambda event: f"{event[0]} {event[1]}")
def test_a_call_that_fails_ends_the_run_and_nothing_is_stored_on_top_of_it(
    loop: str, durability: Any, event: Event
) -> None:
    saver = PlainSaver(lambda: 1.0, refused=lambda one: one == event)
    failed_at = step_of(event, JOKES)

    async def story() -> None:
        graph = compiled(JOKES, saver)
        with pytest.raises(OSError, match=f"refused: {event[0]} {event[1]}"):
            await graph.ainvoke(JOKES.given, CONFIG, durability=durability)
        stored = [one.metadata["step"] async for one in saver.alist(CONFIG)]
        assert stored == list(reversed(range(-1, failed_at)))
        if durability == "sync":
            ran = [what for kind, what in saver.events if kind == "node"]
            assert all(JOKES.nodes[str(node)] <= failed_at for node in ran)
        saver.refused = lambda _event: False
        given = None if stored else JOKES.given
        assert await graph.ainvoke(given, CONFIG, durability=durability) == JOKES.result

    run(loop, story)


@both_loops
def test_exit_reports_a_failed_save_and_keeps_what_was_there(loop: str) -> None:
    saver = PlainSaver(refused=lambda one: one == ("put", 3))

    async def story() -> None:
        graph = compiled(JOKES, saver)
        with pytest.raises(OSError, match="refused: put 3"):
            await graph.ainvoke(JOKES.given, CONFIG, durability="exit")
        assert [one async for one in saver.alist(CONFIG)] == []

    run(loop, story)


@both_loops
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("failed_at", range(-1, 4))
def test_a_commit_that_fails_ends_the_run_and_nothing_is_stored_on_top_of_it(
    loop: str, durability: Any, failed_at: int
) -> None:
    """The same on this project's own savers, whose units wait in a channel while the run goes on."""

    async def story() -> None:
        backend = SlowBackend(1.0, refuses=failed_at)
        started: list[str] = []
        async with GroupCommitSaver(backend) as saver:
            graph = JOKES.build(Noting(started)).compile(checkpointer=saver)
            with pytest.raises(BackendError, match=f"refused: put {failed_at}"):
                await graph.ainvoke(JOKES.given, CONFIG, durability=durability)
            assert backend.steps() == list(range(-1, failed_at))
            if durability == "sync":
                assert all(JOKES.nodes[node] <= failed_at for node in started)
            backend.refuses = None
            given = None if backend.steps() else JOKES.given
            assert await graph.ainvoke(given, CONFIG, durability=durability) == JOKES.result
        assert backend.steps() == list(range(-1, 4))

    run(loop, story)


class Noting:
    """A witness that notes which nodes start."""

    def __init__(self, started: list[str]) -> None:
        self.started = started

    def note(self, *words: object) -> None:
        if words[0] == "start":
            self.started.append(str(words[1]))

    async def recorded(self, node: str) -> None:
        """Wait for nothing."""
