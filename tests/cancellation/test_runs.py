"""Runs are cancelled before every step of the event loop: nothing leaks, and nothing that had finished is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import EmptyInputError
from runtime.graph import StateGraph
from runtime.types import Command
from tests.cancellation.cancelling import (
    Way,
    every_mode,
    every_saver,
    every_way,
    outcome,
    steps_of_history,
    sweep,
    twice,
    without_a_hole,
)
from tests.cancellation.working import Work

Build = Callable[[Work], StateGraph[Any]]


class Run:
    """A run from its input, awaited or read as a stream."""

    config: Any
    result: Any
    """What the call returned, or what was there when its stream ended; None if it was cut short."""

    def __init__(self, build: Build, durability: Any, saver: Any, *, streamed: bool = False) -> None:
        self.build = build
        self.durability = durability
        self.streamed = streamed
        self.work = Work()
        self.graph = build(self.work).compile(checkpointer=saver)

    async def prepare(self, config: Any) -> None:
        self.config = config
        self.work.begin()
        self.result = None

    async def call(self) -> None:
        if not self.streamed:
            self.result = await self.graph.ainvoke({}, self.config, durability=self.durability)
            return
        modes = ["updates", "values", "tasks"]
        async for _ in self.graph.astream(
            {}, self.config, durability=self.durability, stream_mode=modes, subgraphs=True
        ):
            pass
        self.result = (await self.graph.aget_state(self.config)).values

    async def check(self, where: str) -> None:
        """The thread is free, its history has no hole, what had returned counts, the run comes to its end."""
        returned = set(self.work.returned)
        assert self.result in (None, await outcome(self.build, {})), f"{where}: half a result was returned for a whole"
        assert self.durability == "exit" or without_a_hole(await steps_of_history(self.graph, self.config)), where
        result = await self._go_on(returned, where)
        assert result == await outcome(self.build, {}), where
        assert set(self.work.returned.values()) == {1}, f"{where}; in the end: {self.work.returned}"
        assert all(self.work.started[name] == 1 for name in returned), where

    async def _go_on(self, returned: set[str], where: str) -> Any:
        options: dict[str, Any] = {"durability": self.durability, "multitask_strategy": "reject"}
        try:
            return await self.graph.ainvoke(None, self.config, **options)
        except EmptyInputError:
            assert not returned, where
            return await self.graph.ainvoke({}, self.config, **options)


awaited_or_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["awaited", "streamed"])


def runs(build: Build, durability: Any, *, streamed: bool = False) -> Callable[[Any], Run]:
    """Return what makes the trial of a sweep."""
    return lambda saver: Run(build, durability, saver, streamed=streamed)


@every_way
@every_saver
@every_mode
@awaited_or_streamed
def test_a_run_can_be_cancelled_anywhere(way: Way, kind: str, durability: str, streamed: bool, folder: Path) -> None:
    assert sweep(way, kind, folder, runs(Work.fan, durability, streamed=streamed)) > 10


@every_way
@pytest.mark.parametrize("kind", ["memory", pytest.param("sqlite", marks=pytest.mark.slow), "narrow"])
@every_mode
@awaited_or_streamed
def test_a_run_with_a_subgraph_can_be_cancelled_anywhere(
    way: Way, kind: str, durability: str, streamed: bool, folder: Path
) -> None:
    assert sweep(way, kind, folder, runs(Work.nest, durability, streamed=streamed)) > 10


@every_way
@every_mode
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_with_nodes_in_threads_can_be_cancelled_anywhere(
    way: Way, kind: str, durability: str, folder: Path
) -> None:
    assert sweep(way, kind, folder, runs(Work.threads, durability)) > 10


@every_saver
@every_mode
@awaited_or_streamed
def test_a_run_can_be_cancelled_while_it_is_being_cancelled(
    kind: str, durability: str, streamed: bool, folder: Path
) -> None:
    assert sweep(twice, kind, folder, runs(Work.fan, durability, streamed=streamed)) > 10


class Answer(Run):
    """A run that answers the question of a paused thread."""

    async def prepare(self, config: Any) -> None:
        await super().prepare(config)
        await self.graph.ainvoke({}, self.config, durability=self.durability)
        assert self.work.returned.keys() == {"first", "middle"}

    async def call(self) -> None:
        self.result = await self.graph.ainvoke(Command(resume="this"), self.config, durability=self.durability)

    async def check(self, where: str) -> None:
        """The answer was taken, or the question is still there; never neither."""
        whole = await outcome(self.build, {}, Command(resume="this"))
        assert self.result in (None, whole), f"{where}: half a result was returned for a whole"
        state = await self.graph.aget_state(self.config)
        answered = self.work.answered
        if state.interrupts:
            assert not answered, f"{where}: the node had its answer, and it is lost"
            assert state.next == ("ask",), where
            given: Any = Command(resume="this")
        else:
            given = None
        result = await self.graph.ainvoke(given, self.config, durability=self.durability, multitask_strategy="reject")
        assert result == whole, where
        assert set(self.work.returned.values()) == {1}, where


@every_way
@every_saver
@every_mode
def test_an_answer_is_taken_or_the_question_stays(way: Way, kind: str, durability: str, folder: Path) -> None:
    assert sweep(way, kind, folder, lambda saver: Answer(Work.ask, durability, saver)) > 3


class Update(Answer):
    """An update of a paused thread's state."""

    async def call(self) -> None:
        await self.graph.aupdate_state(self.config, {"log": ["updated"]}, as_node="first")

    async def check(self, where: str) -> None:
        """All of it is there, or nothing."""
        history = await steps_of_history(self.graph, self.config)
        assert self.durability == "exit" or without_a_hole(history), where
        state = await self.graph.aget_state(self.config)
        if "updated" in state.values["log"]:
            assert state.metadata["source"] == "update", where
            assert set(state.next) == {"ask", "middle"}, where
        else:
            assert state.metadata["source"] == "loop", where
            assert state.next == ("ask",), where


@every_way
@every_saver
def test_an_update_is_there_or_it_is_not(way: Way, kind: str, folder: Path) -> None:
    taken = sweep(way, kind, folder, lambda saver: Update(Work.ask, "sync", saver))
    # In memory there is nothing to wait for, and so no step between.
    assert taken > 1 or kind == "memory"
