"""The supervisor of a run: gives tasks to node actors, has workers handle their mail, and decides what failure means.

An actor is a mailbox and a rule, not a task of its own: workers are tasks of the run's nursery, started when mail waits
and no worker is free, and reused by whichever actor has mail next. A superstep of one task is handled by the conductor's
own task, the run's first worker, so that a chain of nodes spawns nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from runtime.actors.cancelling import cancelled_class
from runtime.actors.mailbox import MailboxStatistics
from runtime.actors.node import NodeActor, Stage
from runtime.actors.outcomes import CANCELLED, Failed, Outcome

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from runtime.engine.tasks import Task

Report = Callable[["Task", Outcome, int], Awaitable[None]]
"""Told of each outcome as it comes, with the number of tasks still at work."""


@dataclass(frozen=True, slots=True)
class SupervisorStatistics:
    """Actors and workers of one run."""

    actors: dict[str, MailboxStatistics]
    workers: int
    """Worker tasks started and not ended."""
    idle: int
    limit: int | None
    """``max_concurrency``: how many nodes may be at work at once."""


class Supervisor:
    """Owns the run's workers."""

    def __init__(self, stage: Stage, nursery: TaskGroup, limit: int | None) -> None:
        self._stage = stage
        self._nursery = nursery
        self._limit = limit
        self._actors: dict[str, NodeActor] = {}
        self._mail: deque[NodeActor] = deque()
        """Actors with unread mail, once per message."""
        self._idle: list[anyio.Event] = []
        self._workers = 0
        self._active: dict[Task, anyio.CancelScope] = {}
        self._outcomes: deque[tuple[Task, Outcome]] = deque()
        self._arrived = anyio.Event()
        self._stopping = False
        self._closed = False

    def actor(self, task: Task) -> NodeActor:
        """Return the task's actor, started at its first message."""
        actor = self._actors.get(task.name)
        if actor is None:
            actor = self._actors[task.name] = NodeActor(task.node, self._stage)
        return actor

    async def perform(self, tasks: Sequence[Task], report: Report) -> None:
        """Run a superstep's tasks; ``report`` is awaited for each outcome, in the order of completion.

        The first failure cancels what is still at work; every task gets an outcome all the same.
        """
        if len(tasks) == 1:
            task = tasks[0]
            try:
                outcome = await self.actor(task).handle(task)
            except BaseException as error:
                await self._last_words(task, error, report)
                raise
            await report(task, outcome, 0)
            return
        await self._perform_many(tasks, report)

    async def _last_words(self, task: Task, error: BaseException, report: Report) -> None:
        outcome = CANCELLED if isinstance(error, cancelled_class()) else Failed(error)
        with anyio.CancelScope(shield=True):
            await report(task, outcome, 0)

    async def _perform_many(self, tasks: Sequence[Task], report: Report) -> None:
        self._stopping = False
        left = len(tasks)
        unsent = deque(tasks)
        try:
            while left:
                self._send(unsent)
                if not self._outcomes:
                    self._arrived = anyio.Event()
                    await self._arrived.wait()
                while self._outcomes:
                    task, outcome = self._outcomes.popleft()
                    left -= 1
                    if isinstance(outcome, Failed) and not self._stopping:
                        self._stop_others(unsent)
                    await report(task, outcome, left)
        except BaseException:
            with anyio.CancelScope(shield=True):
                self._stop_others(unsent)
                await self._drain(left, report)
            raise

    async def _drain(self, left: int, report: Report) -> None:
        """Wait until every task has its outcome, and report it."""
        while left:
            if not self._outcomes:
                self._arrived = anyio.Event()
                await self._arrived.wait()
            task, outcome = self._outcomes.popleft()
            left -= 1
            await report(task, outcome, left)

    def _send(self, unsent: deque[Task]) -> None:
        while unsent:
            actor = self.actor(unsent[0])
            try:
                actor.mailbox.put_nowait(unsent[0])
            except anyio.WouldBlock:
                return
            unsent.popleft()
            self._mail.append(actor)
            self._wake()

    def _wake(self) -> None:
        if self._idle:
            self._idle.pop().set()
        elif self._limit is None or self._workers < self._limit:
            self._workers += 1
            self._nursery.start_soon(self._work, name="actorgraph worker")

    def _stop_others(self, unsent: deque[Task]) -> None:
        """Cancel what is at work and answer what is unread."""
        self._stopping = True
        for task in unsent:
            self._settle(task, CANCELLED)
        unsent.clear()
        while self._mail:
            self._settle(self._mail.popleft().mailbox.take_nowait(), CANCELLED)
        for scope in self._active.values():
            scope.cancel()

    def _settle(self, task: Task, outcome: Outcome) -> None:
        self._outcomes.append((task, outcome))
        self._arrived.set()

    async def _work(self) -> None:
        """Handle mail until the run closes."""
        try:
            while not self._closed:
                if self._mail:
                    actor = self._mail.popleft()
                    await self._handle(actor, actor.mailbox.take_nowait())
                else:
                    woken = anyio.Event()
                    self._idle.append(woken)
                    try:
                        await woken.wait()
                    finally:
                        if woken in self._idle:
                            self._idle.remove(woken)
        finally:
            self._workers -= 1

    async def _handle(self, actor: NodeActor, task: Task) -> None:
        outcome: Outcome = CANCELLED
        try:
            with anyio.CancelScope() as scope:
                self._active[task] = scope
                outcome = await actor.handle(task)
        except cancelled_class():
            raise
        except BaseException as error:  # noqa: BLE001 - the conductor raises it to the caller
            outcome = Failed(error)
        finally:
            del self._active[task]
            self._settle(task, outcome)

    def close(self) -> None:
        """Let the workers end; unread mail is answered as cancelled."""
        self._closed = True
        for actor in self._actors.values():
            for task in actor.close():
                self._settle(task, CANCELLED)
        while self._idle:
            self._idle.pop().set()

    def statistics(self) -> SupervisorStatistics:
        """Return how the run's actors and workers stand."""
        return SupervisorStatistics(
            {name: actor.mailbox.statistics() for name, actor in self._actors.items()},
            self._workers,
            len(self._idle),
            self._limit,
        )
