"""The hub: what happens in a run, as the modes that somebody listens to, through one bounded buffer.

A run without a listener has no hub, so nothing is made for an observer who is not there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio

from runtime.engine.projecting import node_input, updates_of_task, values_of, values_with, writes_view
from runtime.engine.resuming import waiting
from runtime.errors import StreamOverflowError, UnknownStreamModeError
from runtime.types.constants import INTERRUPT, PUSH, RETURN, START
from runtime.types.streams import STREAM_MODES

if TYPE_CHECKING:
    from runtime.engine.cells import Cells
    from runtime.engine.tasks import Task

CAPACITY: Final = 256
"""Chunks that wait for a slow consumer before the run waits for it. Several supersteps' worth, a few hundred KiB."""

OVERFLOW: Final = 16 * CAPACITY
"""Chunks at which a node that never waits is stopped with an error, because nothing else could slow it."""

END_OF_STREAM: Final = object()


class Stage(Protocol):
    """What the hub needs of the run it reports on."""

    cells: Cells
    ns: str
    step: int
    checkpoint_id: str


class StreamClosedError(Exception):
    """Nobody reads any more; the run ends itself."""


@dataclass(frozen=True, slots=True)
class HubStatistics:
    """How full the buffer is and was."""

    capacity: int
    waiting: int
    peak: int


def check_modes(given: str | Sequence[str]) -> tuple[frozenset[str], bool]:
    """Return the modes and whether a single one was asked for. Raises UnknownStreamModeError."""
    single = isinstance(given, str)
    modes = (given,) if isinstance(given, str) else tuple(given)
    for mode in modes:
        if mode not in STREAM_MODES:
            msg = f"Unknown stream mode {mode!r}. Known modes: {', '.join(STREAM_MODES)}."
            raise UnknownStreamModeError(msg)
    return frozenset(modes), single


class Hub:
    """Turns a run's events into chunks, and keeps them until they are read."""

    def __init__(self, modes: frozenset[str], *, single: bool, subgraphs: bool = False) -> None:
        self.modes = modes
        self._single = single
        self.subgraphs = subgraphs
        """Whether what happens in subgraphs is reported."""
        self._chunks: deque[Any] = deque()
        self._held: list[tuple[str, str, Any]] = []
        """Pauses that are told once they are durable."""
        self._peak = 0
        self._readable = anyio.Event()
        self._writable = anyio.Event()
        self.closed = False
        """Set when the reader leaves."""

    # ---- the buffer --------------------------------------------------------------------------------------------

    async def _put(self, ns: str, mode: str, payload: Any) -> None:
        if self.closed:
            raise StreamClosedError
        await self.room()
        if self.closed:
            raise StreamClosedError
        self.put_nowait(ns, mode, payload)

    def put_nowait(self, ns: str, mode: str, payload: Any) -> None:
        """Add a chunk, whatever waits already."""
        chunk = payload if self._single else (mode, payload)
        if self.subgraphs:
            path = tuple(ns.split("|")) if ns else ()
            chunk = (path, payload) if self._single else (path, mode, payload)
        self._chunks.append(chunk)
        self._peak = max(self._peak, len(self._chunks))
        self._readable.set()

    def finish(self, error: BaseException | None) -> None:
        """Say that nothing more comes, and how the run ended."""
        self._chunks.append((END_OF_STREAM, error))
        self._readable.set()

    async def get(self) -> Any:
        """Return the next chunk, or ``(END_OF_STREAM, error)``."""
        while not self._chunks:
            if self.closed:
                return END_OF_STREAM, None
            if self._readable.is_set():
                self._readable = anyio.Event()
            await self._readable.wait()
        chunk = self._chunks.popleft()
        if len(self._chunks) < CAPACITY:
            self._writable.set()
        return chunk

    def close(self) -> None:
        """Leave: the run's next chunk fails with StreamClosedError."""
        self.closed = True
        self._chunks.clear()
        self._writable.set()
        self._readable.set()

    def statistics(self) -> HubStatistics:
        """Return how full the buffer is and was."""
        return HubStatistics(CAPACITY, len(self._chunks), self._peak)

    # ---- what happens in a run ---------------------------------------------------------------------------------

    async def _emit(self, run: Stage, mode: str, payload: Any) -> None:
        if mode in self.modes:
            await self._put(run.ns, mode, payload)

    async def _debug(self, run: Stage, kind: str, step: int, payload: Any) -> None:
        if "debug" in self.modes:
            await self._put(run.ns, "debug", _stamped(kind, step, payload))

    async def tasks_started(self, run: Any, tasks: Sequence[Task]) -> None:
        """Report tasks about to run."""
        if not self.modes & {"tasks", "debug"}:
            return
        for task in tasks:
            if task.name == START or task.finished:
                continue
            if task.send is not None:
                given = task.send.arg
            elif task.node.source is not None:
                given = node_input(run.cells, task)
            else:
                given = values_of(run.cells, task.node.schema.channels)
            await self._started(run, task, given)

    async def call_started(self, run: Any, task: Task) -> None:
        """Report a @task call about to run, with its arguments."""
        if self.modes & {"tasks", "debug"}:
            await self._started(run, task, task.given)

    async def _started(self, run: Any, task: Task, given: Any) -> None:
        payload = {"id": task.id, "name": task.name, "input": given, "triggers": task.triggers or (PUSH,)}
        if task.node.metadata:
            payload["metadata"] = dict(task.node.metadata)
        await self._emit(run, "tasks", payload)
        await self._debug(run, "task", run.step, payload)

    async def task_finished(self, run: Any, task: Task, *, cached: bool = False) -> None:
        """Report what a task wrote."""
        if task.name == START:
            return
        if "updates" in self.modes:
            payload: dict[str, Any] = {task.name: updates_of_task(run.cells, task, run.call.output_keys)}
            if cached:
                payload["__metadata__"] = {"cached": True}
            await self._emit(run, "updates", payload)
        shown = writes_view(run.cells, task.writes or ())
        single = run.plan.single
        await self._ended(run, task, result=(shown or {}) if single is None else {single: shown})

    async def call_finished(self, run: Any, task: Task, value: Any, *, cached: bool = False) -> None:
        """Report the result of a @task call."""
        if "updates" in self.modes:
            payload: dict[str, Any] = {task.name: value}
            if cached:
                payload["__metadata__"] = {"cached": True}
            await self._emit(run, "updates", payload)
        await self._ended(run, task, result={RETURN: value})

    async def task_failed(self, run: Any, task: Task, error: BaseException) -> None:
        """Report a failure; ``updates`` shows none."""
        await self._ended(run, task, error=error)

    async def _ended(self, run: Any, task: Task, *, result: Any = None, error: Any = None) -> None:
        if task.name == START or not self.modes & {"tasks", "debug"}:
            return
        payload = _end_of(task, result, error, ())
        await self._emit(run, "tasks", payload)
        await self._debug(run, "task_result", run.step, payload)

    async def values(self, run: Any) -> None:
        """Report the state after a superstep, if it changed what the run returns."""
        if "values" not in self.modes:
            return
        keys = run.call.output_keys or run.plan.state
        wanted = ("__root__",) if run.plan.bare else keys
        if run.cells.updated and not run.cells.updated.isdisjoint(wanted):
            await self._emit(run, "values", values_of(run.cells, keys))

    async def resumed(self, run: Any) -> None:
        """Report the state that a resumed run starts from."""
        if "values" in self.modes:
            await self._emit(run, "values", values_of(run.cells, run.call.output_keys or run.plan.state))

    def paused(self, run: Any, questions: Sequence[Any] | None, tasks: Sequence[Task]) -> None:
        """Note which tasks paused, and that the run stops for answers or at a breakpoint (no questions).

        Without ``questions`` it stops for another reason. Told only when released.
        """
        told: list[tuple[str, Any]] = []
        if questions or (questions is not None and run.nested is None):
            told.append(("updates", {INTERRUPT: tuple(questions)}))
        if questions and "values" in self.modes:
            shown: Any = None
            if run.plan.single is None:  # what a workflow function returned last time is no part of this answer
                shown = values_with(run.cells, run.call.output_keys or run.plan.state, run.finished)
            asked = {INTERRUPT: tuple(questions)}
            told.append(("values", {**shown, **asked} if isinstance(shown, dict) else asked))
        for task in tasks:
            payload = _end_of(task, None, None, waiting(task))
            told += [("tasks", payload), ("debug", _stamped("task_result", run.step, payload))]
        self._held += [(run.ns, mode, payload) for mode, payload in told if mode in self.modes]

    async def release(self) -> None:
        """Tell the pauses: all that belongs to them is durable, in this run and in its subgraphs."""
        while self._held:
            await self._put(*self._held.pop(0))

    async def checkpoint(self, run: Any, source: str, step: int, parent: str | None) -> None:
        """Report a checkpoint and what it makes due."""
        if not self.modes & {"checkpoints", "debug"}:
            return
        payload = run.checkpoint_view(source, step, parent)
        await self._emit(run, "checkpoints", payload)
        await self._debug(run, "checkpoint", step, payload)

    def custom(self, run: Any, task: Task, item: Any) -> None:
        """Report what a node wrote to its stream writer, at once.

        The node is slowed when it next waits for something (see ``room``). Raises StreamOverflowError if it writes on
        and on without ever waiting.
        """
        del task
        if "custom" not in self.modes or self.closed:
            return
        if len(self._chunks) >= OVERFLOW:
            msg = (
                f"{OVERFLOW} chunks wait for the stream's consumer and the node writes more without ever waiting. "
                "Await something between writes, for example anyio.lowlevel.checkpoint()."
            )
            raise StreamOverflowError(msg)
        self.put_nowait(run.ns, "custom", item)

    async def put_custom(self, run: Any, task: Task, item: Any) -> None:
        """Report what a sync node wrote, waiting for room."""
        del task
        if "custom" in self.modes and not self.closed:
            await self._put(run.ns, "custom", item)

    @property
    def full(self) -> bool:
        """Whether the run has to wait for the consumer."""
        return len(self._chunks) >= CAPACITY and not self.closed

    async def room(self) -> None:
        """Return once the consumer has made room, or has left."""
        while self.full:
            if self._writable.is_set():  # otherwise others wait for the same
                self._writable = anyio.Event()
            await self._writable.wait()


def _end_of(task: Task, result: Any, error: Any, questions: Sequence[Any]) -> dict[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "error": error,
        "result": result if result is not None else {},
        "interrupts": [
            {"value": question.value, "id": question.id, "response_schema": question.response_schema}
            for question in questions
        ],
    }


def _stamped(kind: str, step: int, payload: Any) -> dict[str, Any]:
    return {"step": step, "timestamp": datetime.now(UTC).isoformat(), "type": kind, "payload": payload}
