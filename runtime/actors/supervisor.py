"""The supervisor of a run: gives tasks to node actors, has workers handle their mail, decides what failure means.

An actor is a mailbox and a rule, not a task of its own: workers are tasks of the run's nursery, started when mail waits
and no worker is free, and reused by whichever actor has mail next. A superstep of one task is handled by the
conductor's own task, the run's first worker, so that a chain of nodes spawns nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from persistence.outlasting import outlast
from runtime.actors.cancelling import is_cancel
from runtime.actors.mailbox import MailboxStatistics
from runtime.actors.node import NodeActor, Stage
from runtime.actors.outcomes import CANCELLED, Failed, Outcome
from runtime.errors import NodeCancelledError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from runtime.engine.tasks import Task

BREATH: Final = 16
"""Messages that a worker handles before it lets others run, if none of them waited."""

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
        self.nursery = nursery
        self._limit = limit
        self._actors: dict[str, NodeActor] = {}
        self._mail: deque[NodeActor] = deque()
        """Actors with unread mail, once per message."""
        self._idle: list[anyio.Event] = []
        self._workers = 0
        self._awake = 0
        """Workers that neither idle nor wait for their node."""
        self._busy: set[_Worker] = set()
        """Workers with a task."""
        self._unsent: deque[Task] = deque()
        """Tasks for which their actor's mailbox has no room yet."""
        self._outcomes: deque[tuple[Task, Outcome]] = deque()
        self._arrived: anyio.Event | None = None
        """Set at the next outcome, while somebody waits for it."""
        self._left = 0
        """Tasks of the superstep whose outcome has not been reported."""
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
            try:
                await report(task, outcome, 0)
            finally:
                del outcome  # a failure's traceback refers to this frame
            return
        await self._perform_many(tasks, report)

    async def _last_words(self, task: Task, error: BaseException, report: Report) -> None:
        outcome = CANCELLED if is_cancel(error) else Failed(error)
        with anyio.CancelScope(shield=True):
            await report(task, outcome, 0)

    async def _perform_many(self, tasks: Sequence[Task], report: Report) -> None:
        self._stopping = False
        self._left = len(tasks)
        self._unsent.extend(tasks)
        cut_short = False
        try:
            while self._left:
                self._send()
                if not self._outcomes:
                    self._arrived = anyio.Event()
                    await self._arrived.wait()
                while self._outcomes:
                    task, outcome = self._outcomes.popleft()
                    self._left -= 1
                    if isinstance(outcome, Failed) and not self._stopping:
                        self._stop_others()
                    elif outcome is CANCELLED and not self._stopping:
                        cut_short = True
                    await report(task, outcome, self._left)
            if cut_short:
                # On asyncio the workers may have heard of a cancel before this task, which it is meant for too: without
                # it the superstep would look finished, and the cancelled nodes would never run again.
                await anyio.sleep_forever()
        except BaseException:
            self._stop_others()
            await outlast(partial(self._drain, report))
            raise

    async def _drain(self, report: Report) -> None:
        """Wait until every task has its outcome, and report it.

        A report that fails does not keep the others from being made: what has finished is to be recorded, whoever has
        stopped listening. The caller hears of what went wrong first.
        """
        while self._left:
            if not self._outcomes:
                self._arrived = anyio.Event()
                await self._arrived.wait()
            task, outcome = self._outcomes.popleft()
            self._left -= 1
            with suppress(Exception):
                await report(task, outcome, self._left)

    def _send(self) -> None:
        unsent = self._unsent
        while unsent:
            actor = self.actor(unsent[0])
            try:
                actor.mailbox.put_nowait(unsent[0])
            except anyio.WouldBlock:
                break
            unsent.popleft()
            self._mail.append(actor)
        self._see_to_mail()

    def _see_to_mail(self) -> None:
        """If mail waits and every worker waits for its node, put one more to work.

        One at a time: a worker whose node never waits handles the next message itself, so that many small nodes cost
        one worker, and many that wait get one each.
        """
        if not self._mail or self._awake:
            return
        if self._idle:
            self._awake += 1
            self._idle.pop().set()
        elif self._limit is None or self._workers < self._limit:
            self._awake += 1
            self._workers += 1
            self.nursery.start_soon(_Worker(self).work, name="actorgraph worker")

    def _stop_others(self) -> None:
        """Cancel what is at work and answer what is unread."""
        self._stopping = True
        for task in self._unsent:
            self._settle(task, CANCELLED)
        self._unsent.clear()
        while self._mail:
            self._settle(self._mail.popleft().mailbox.take_nowait(), CANCELLED)
        for worker in tuple(self._busy):
            worker.cancel()

    def _settle(self, task: Task, outcome: Outcome) -> None:
        self._outcomes.append((task, outcome))
        if self._arrived is not None:
            self._arrived.set()

    def close(self) -> None:
        """Let the workers end; unread mail is answered as cancelled."""
        self._closed = True
        for actor in self._actors.values():
            for task in actor.close():
                self._settle(task, CANCELLED)
        while self._idle:
            self._idle.pop().set()

    def stray_cancel(self) -> NodeCancelledError | None:
        """Return the error of a run whose worker was cancelled by somebody who had not started it.

        Asked after the nursery has ended: it swallows that cancel, so that the run would look finished.
        """
        if not self.nursery.cancel_scope.cancel_called:
            return None
        msg = "A worker task of the run was cancelled by somebody who had not started it. Resume with None."
        return NodeCancelledError(None, msg)

    def statistics(self) -> SupervisorStatistics:
        """Return how the run's actors and workers stand."""
        return SupervisorStatistics(
            {name: actor.mailbox.statistics() for name, actor in self._actors.items()},
            self._workers,
            len(self._idle),
            self._limit,
        )


class _Worker:
    """A task of the nursery that handles mail until the run closes, or until its task is cancelled."""

    __slots__ = ("_scope", "_supervisor", "_waiting")

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._scope = anyio.CancelScope()
        self._waiting = False
        """Whether its node waits for something."""

    def cancel(self) -> None:
        """End it, with the task it has."""
        self._scope.cancel()

    async def work(self) -> None:
        """Handle mail."""
        owner = self._supervisor
        handled = 0
        try:
            with self._scope:
                while not owner._closed:  # noqa: SLF001 - the two are one thing
                    if not owner._mail:  # noqa: SLF001
                        await self._idle()
                        continue
                    actor = owner._mail.popleft()  # noqa: SLF001
                    task = actor.mailbox.take_nowait()
                    if owner._unsent:  # noqa: SLF001 - there is room now
                        owner._send()  # noqa: SLF001
                    await self._handle(actor, task)
                    handled += 1
                    if handled % BREATH == 0:
                        await anyio.lowlevel.checkpoint()
        finally:
            owner._workers -= 1  # noqa: SLF001
            if not self._waiting:
                owner._awake -= 1  # noqa: SLF001

    async def _idle(self) -> None:
        owner = self._supervisor
        woken = anyio.Event()
        owner._idle.append(woken)  # noqa: SLF001
        owner._awake -= 1  # noqa: SLF001
        self._waiting = True
        try:
            await woken.wait()
            self._waiting = False
        finally:
            if woken in owner._idle:  # noqa: SLF001
                owner._idle.remove(woken)  # noqa: SLF001
            elif self._waiting and woken.is_set():
                self._waiting = False  # woken and cancelled at once: it counts as awake, and ends so

    def node_waits(self) -> None:
        """Let another worker see to the mail: this one's node waits for something."""
        if not self._waiting:
            self._waiting = True
            self._supervisor._awake -= 1  # noqa: SLF001
            self._supervisor._see_to_mail()  # noqa: SLF001

    async def _handle(self, actor: NodeActor, task: Task) -> None:
        owner = self._supervisor
        owner._busy.add(self)  # noqa: SLF001
        outcome: Outcome = CANCELLED
        try:
            outcome = await actor.handle(task, self.node_waits)
        except BaseException as error:
            if is_cancel(error):
                raise
            outcome = Failed(error)  # the conductor raises it to the caller
        finally:
            owner._busy.discard(self)  # noqa: SLF001
            if self._waiting:
                self._waiting = False
                owner._awake += 1  # noqa: SLF001
            owner._settle(task, outcome)  # noqa: SLF001
