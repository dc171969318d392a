"""Calls to be cancelled, each with what must hold wherever that happened."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from persistence.sqlite import SqliteSaver
from persistence.writer.bridge import BRIDGE
from runtime.errors import EmptyInputError
from runtime.graph import StateGraph
from runtime.types import Command
from tests.cancellation.cancelling import outcome, without_a_hole
from tests.cancellation.working import Work

Build = Callable[[Work], StateGraph[Any]]


class Run:
    """A run from its input."""

    config: Any
    result: Any
    """What the call returned, or what was there when its stream ended; None if it was cut short."""
    durable: str | None
    """The newest checkpoint that the caller was told to be on disk."""

    def __init__(self, build: Build, durability: Any, saver: Any) -> None:
        self.build = build
        self.durability = durability
        self.work = Work()
        self.graph = build(self.work).compile(checkpointer=saver)

    async def prepare(self, config: Any) -> None:
        self.config = config
        self.work.begin()
        self.result = self.durable = None

    async def call(self) -> None:
        self.result = await self.graph.ainvoke({}, self.config, durability=self.durability)

    async def check(self, where: str) -> None:
        """The thread is free, its history has no hole, what had returned counts, the run comes to its end."""
        returned = set(self.work.returned)
        assert self.result in (None, await outcome(self.build, {})), f"{where}: half a result was returned for a whole"
        await self.check_history(where)
        result = await self._go_on(returned, where)
        assert result == await outcome(self.build, {}), where
        assert set(self.work.returned.values()) == {1}, f"{where}; in the end: {self.work.returned}"
        assert all(self.work.started[name] == 1 for name in returned), where

    async def check_history(self, where: str) -> None:
        """What was told to be on disk is there, with all that comes before it."""
        history = [one async for one in self.graph.aget_state_history(self.config)]
        steps: list[int] = [one.metadata["step"] for one in history]
        assert self.durability == "exit" or without_a_hole(steps), where
        ids = [one.config["configurable"]["checkpoint_id"] for one in history]
        assert self.durable is None or self.durable in ids, f"{where}: {self.durable} was acknowledged and is lost"

    async def _go_on(self, returned: set[str], where: str) -> Any:
        options: dict[str, Any] = {"durability": self.durability, "multitask_strategy": "reject"}
        try:
            return await self.graph.ainvoke(None, self.config, **options)
        except EmptyInputError:
            assert not returned, where
            return await self.graph.ainvoke({}, self.config, **options)


class Streamed(Run):
    """A run that is read as a stream to its end."""

    chunks: int | None = None
    """After how many chunks the reader leaves."""

    async def call(self) -> None:
        modes = ["updates", "values", "tasks"]
        options: dict[str, Any] = {"durability": self.durability, "stream_mode": modes, "subgraphs": True}
        read = 0
        async with self.graph.astream({}, self.config, **options) as stream:
            async for _chunk in stream:
                self.durable, read = stream.durable_upto, read + 1
                if read == self.chunks:
                    return
        self.result = (await self.graph.aget_state(self.config)).values


class Left(Streamed):
    """A run whose reader leaves amid its first nodes, so that the cancels meet the closing of the stream."""

    chunks = 4


class Asked(Run):
    """A run up to the questions of its nodes, one of them in a subgraph."""

    async def check(self, where: str) -> None:
        """The run goes on to the questions; what had returned before them does not run again."""
        await self.check_history(where)
        returned = set(self.work.returned)
        asked = await self._go_on(returned, where)
        assert sorted(question.value for question in asked["__interrupt__"]) == ["inner?", "outer?"], where
        answers = {question.id: f"{question.value}!" for question in asked["__interrupt__"]}
        result = await self.graph.ainvoke(Command(resume=answers), self.config, durability=self.durability)
        # The subgraph returns what it was given, too.
        assert sorted(result["log"]) == ["first", "first", "inner?!", "last", "outer?!"], where
        assert set(self.work.returned.values()) == {1}, where
        assert all(self.work.started[name] == 1 for name in returned), where


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


class Update(Answer):
    """An update of a paused thread's state."""

    async def call(self) -> None:
        await self.graph.aupdate_state(self.config, {"log": ["updated"]}, as_node="first")

    async def check(self, where: str) -> None:
        """All of it is there, or nothing."""
        await self.check_history(where)
        state = await self.graph.aget_state(self.config)
        if "updated" in state.values["log"]:
            assert state.metadata["source"] == "update", where
            assert set(state.next) == {"ask", "middle"}, where
        else:
            assert state.metadata["source"] == "loop", where
            assert state.next == ("ask",), where


class Session:
    """A saver that is opened, used by a run and closed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "session.sqlite"
        self.work = Work()
        self.threads = set(threading.enumerate())
        self.thread = ""

    async def prepare(self, config: Any) -> None:
        self.thread = config["configurable"]["thread_id"]
        self.work.begin()

    async def call(self) -> None:
        async with SqliteSaver(self.path, synchronous="NORMAL") as saver:
            graph = self.work.fan().compile(checkpointer=saver)
            await graph.ainvoke({}, {"configurable": {"thread_id": self.thread}}, durability="sync")

    async def check(self, where: str) -> None:
        """No thread and no lock is left, the file can be opened again, and the run goes on."""
        assert set(threading.enumerate()) <= self.threads, where  # an idle one of earlier work may end meanwhile
        assert BRIDGE.users == 0, where
        if self.path.exists():
            with closing(sqlite3.connect(self.path, timeout=0)) as other:
                assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                other.execute("BEGIN IMMEDIATE")
        await self._check_run(where)

    async def _check_run(self, where: str) -> None:
        returned = set(self.work.returned)
        config = {"configurable": {"thread_id": self.thread}}
        async with SqliteSaver(self.path, synchronous="NORMAL") as saver:
            graph = self.work.fan().compile(checkpointer=saver)
            given: dict[str, Any] | None = None if await saver.aget_tuple(config) else {}
            assert returned == set() or given is None, where
            assert (await graph.ainvoke(given, config))["log"] == ["first", "left", "middle", "right", "last"], where
        assert set(self.work.returned.values()) == {1}, where
