"""The hub: what happens in a run, as the modes that somebody listens to, through one bounded buffer.

A run without a listener has no hub, so nothing is made for an observer who is not there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio

from runtime.engine.projecting import updates_of_task, values_of, values_with
from runtime.engine.resuming import waiting
from runtime.errors import ConfigError, StreamOverflowError, UnknownStreamModeError
from runtime.streaming.change import Change
from runtime.streaming.langchain import HEARD, handlers
from runtime.streaming.messages import id_of, identified, messages_in, messages_of
from runtime.streaming.payloads import about, alone, by_task, end_of, input_of, result_view, stamped
from runtime.streaming.progress import Progress
from runtime.streaming.showing import show
from runtime.types.constants import INTERRUPT, METADATA, PUSH, RETURN, START
from runtime.types.streams import STREAM_MODES, STREAM_VERSIONS, GraphOutput

if TYPE_CHECKING:
    from runtime.engine.cells import Cells
    from runtime.engine.plan import Plan
    from runtime.engine.tasks import Task
    from runtime.schema.introspect import Schema
    from runtime.streaming.tools import Teller
    from runtime.types.streams import StreamVersion

CAPACITY: Final = 256
"""Chunks that wait for a slow consumer before the run waits for it. Several supersteps' worth, a few hundred KiB."""

OVERFLOW: Final = 16 * CAPACITY
"""Chunks at which a node that never waits is stopped with an error, because nothing else could slow it."""

PATIENCE: Final = OVERFLOW // 2
"""Chunks that a consumer may leave unread who waits for the disk, or while another waits for the run's thread."""

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
    modes: tuple[Any, ...] = tuple(given) if isinstance(given, Iterable) and not single else (given,)
    for mode in modes:
        if mode not in STREAM_MODES:
            msg = f"Unknown stream mode {mode!r}. Known modes: {', '.join(STREAM_MODES)}."
            raise UnknownStreamModeError(msg)
    return frozenset(modes), single


def check_version(version: str) -> bool:
    """Return whether chunks are parts, as in ``v2``. Raises ConfigError for a version that does not exist."""
    if version not in STREAM_VERSIONS:
        msg = f"version must be one of {', '.join(map(repr, STREAM_VERSIONS))}, got {version!r}."
        raise ConfigError(msg)
    return version == "v2"


def typed(schema: Schema | None, state: Schema | None, values: Any) -> Any:
    """Return values as an instance of a schema that builds instances; where they do not make one, as they are."""
    if schema is None or schema.build is None or not isinstance(values, dict):
        return values
    checked = state is not None and schema.type is state.type and schema.rebuild is not None
    build: Any = schema.rebuild if checked else schema.build
    try:
        return build(values)
    except Exception:  # noqa: BLE001 - a state that is not complete yet; the schema's library raises what it likes
        return values


def parted(plan: Plan, output: Any, *, bare: bool = False) -> GraphOutput[Any]:
    """Return a run's output with the questions apart from it; ``bare``: it is one key's value, not a state."""
    questions: Sequence[Any] = ()
    if isinstance(output, dict) and INTERRUPT in output:
        questions = output[INTERRUPT]
        output = {key: value for key, value in output.items() if key != INTERRUPT}
    return GraphOutput(output if bare else typed(plan.output_schema, plan.state_schema, output), tuple(questions))


class Hub:
    """Turns a run's events into chunks, and keeps them until they are read."""

    def __init__(
        self,
        modes: frozenset[str],
        *,
        single: bool,
        subgraphs: bool = False,
        version: StreamVersion = "v1",
        printed: frozenset[str] = frozenset(),
    ) -> None:
        self.modes = modes | printed
        self._unasked = printed - modes
        """What is printed, but not handed out."""
        self._printed = printed
        self._single = single
        self._parts = check_version(version)
        """Whether chunks are ``StreamPart``."""
        self.subgraphs = subgraphs
        """Whether what happens in subgraphs is reported."""
        self.progress = Progress()
        """How far the run is on disk."""
        self.due: int | None = None
        """How many checkpoints cover what was read last; None before anything was."""
        self._chunks: deque[tuple[int | None, Any]] = deque()
        """Each with how many checkpoints must be on disk before what it tells is."""
        self._told: set[str] = set()
        """Ids of messages that were told, or that nodes were given."""
        self._read = bool(modes)
        """Whether a reader is to come; what is only printed has none."""
        self._readers = 0
        """How many wait for a chunk."""
        self._asked = Change()
        self._hurried = False
        self._reader = 0
        """The task that reads, or did last."""
        self._stuck: set[int] = set()
        """Tasks that wait for the run's thread, and so may not read on before it has ended."""
        self._patient: set[anyio.CancelScope] = set()
        """Waits of the consumer for the disk."""
        self._held: list[tuple[str, str, Any]] = []
        """Pauses that are told once they are durable."""
        self._peak = 0
        self.told = False
        """Whether anything was: a run can begin again only before that."""
        self._readable = Change()
        self._writable = Change()
        self.closed = False
        """Set when the reader leaves, or has read to the end."""

    # ---- the buffer --------------------------------------------------------------------------------------------

    async def _put(self, ns: str, mode: str, payload: Any, due: int | None = None) -> None:
        if self.closed:
            raise StreamClosedError
        await self.room()
        if self.closed:
            raise StreamClosedError
        self.put_nowait(ns, mode, payload, due)

    def put_nowait(self, ns: str, mode: str, payload: Any, due: int | None = None) -> None:
        """Add a chunk, whatever waits already."""
        self.told = True
        if mode in self._printed:
            show(ns, mode, payload[0] if self._parts and mode == "values" else payload)
            if mode in self._unasked:
                return
        self._chunks.append((self.progress.due() if due is None else due, self._shaped(ns, mode, payload)))
        self._peak = max(self._peak, len(self._chunks))
        self._readable.tell()
        if self._patient and len(self._chunks) >= PATIENCE:
            for scope in self._patient:
                scope.cancel()

    def _shaped(self, ns: str, mode: str, payload: Any) -> Any:
        path = tuple(ns.split("|")) if ns else ()
        if self._parts:
            if mode != "values":
                return {"type": mode, "ns": path, "data": payload}
            return {"type": mode, "ns": path, "data": payload[0], "interrupts": payload[1]}
        if self.subgraphs:
            return (path, payload) if self._single else (path, mode, payload)
        return payload if self._single else (mode, payload)

    def finish(self, error: BaseException | None) -> None:
        """Say that nothing more comes, and how the run ended."""
        self.progress.end()
        self._chunks.append((None, (END_OF_STREAM, error)))
        self._readable.tell()

    async def get(self) -> Any:
        """Return the next chunk, or ``(END_OF_STREAM, error)``; the error goes to one reader, the end to all."""
        self._reader = anyio.get_current_task().id
        self._stuck.discard(self._reader)
        while not self._chunks:
            if self.closed:
                return END_OF_STREAM, None
            self._readers += 1
            self._asked.tell()
            try:
                await self._readable.wait()
            finally:
                self._readers -= 1
        due, chunk = self._chunks.popleft()
        if type(chunk) is tuple and chunk and chunk[0] is END_OF_STREAM:
            self.close()
            return chunk
        if due is not None:
            self.due = due
        if len(self._chunks) < CAPACITY:
            self._writable.tell()
        if self._parts and type(chunk) is dict:
            chunk["durable_upto"] = self.progress.upto
        return chunk

    async def asked(self) -> None:
        """Return once the reader has read everything and wants more, or need not be waited for.

        A superstep begins when it is asked for, so who leaves a stream after a chunk knows what has not begun.
        Raises StreamClosedError if the reader has left.
        """
        while self._read and not self.closed and not self._hurried and not self._patient:
            if self._readers and not self._chunks:
                return
            await self._asked.wait()
        if self.closed and self._read:
            raise StreamClosedError

    def hurry(self, task: int) -> None:
        """Have the run no longer wait for the reader between supersteps: a task waits for its end."""
        self._hurried = True
        self._stuck.add(task)
        self._asked.tell()
        self._writable.tell()

    async def durable(self) -> None:
        """Return once what was read last, and all before it, is on disk. Meanwhile the run does not wait for a reader.

        Raises ConfigError where nothing is kept, StreamOverflowError if too many chunks come meanwhile, and what kept a
        checkpoint from being stored.
        """
        if self.due is None:
            return
        if not self.progress.follows:
            msg = (
                "Nothing of this run comes to disk by itself, so there is nothing to wait for: compile the graph with "
                "a checkpointer, or wait on the stream of the graph that this one is nested in."
            )
            raise ConfigError(msg)
        scope = anyio.CancelScope()
        self._patient.add(scope)
        self._writable.tell()
        self._asked.tell()
        try:
            with scope:
                await self.progress.reach(self.due)
        finally:
            self._patient.discard(scope)
        if scope.cancelled_caught:
            msg = (
                f"{PATIENCE} chunks came while their reader waited for what it had read to be on disk. Read on, and "
                "ask later: in the mode 'exit' only the run's end is saved."
            )
            raise StreamOverflowError(msg)

    def close(self) -> None:
        """Leave: the run's next chunk fails with StreamClosedError, and nobody waits for one."""
        self.closed = True
        self._chunks.clear()
        for change in (self._writable, self._readable, self._asked):
            change.tell()

    def statistics(self) -> HubStatistics:
        """Return how full the buffer is and was."""
        return HubStatistics(CAPACITY, len(self._chunks), self._peak)

    # ---- what happens in a run ---------------------------------------------------------------------------------

    async def _emit(self, run: Stage, mode: str, payload: Any, due: int | None = None) -> None:
        if mode in self.modes:
            await self._put(run.ns, mode, payload, due)

    async def _debug(self, run: Stage, kind: str, step: int, payload: Any, due: int | None = None) -> None:
        if "debug" in self.modes:
            await self._put(run.ns, "debug", stamped(kind, step, payload), due)

    def _recorded(self, run: Any) -> int:
        """Return how many checkpoints must be on disk before the state of a run is, that it has just recorded."""
        return self.progress.due(recorded=run.call.hub is self)

    def _state(self, run: Any, values: Any, questions: Sequence[Any] = ()) -> Any:
        """Return a payload of ``values``."""
        bare = run.call.output_key is not None
        if bare:
            values = None if questions else values.get(run.call.output_key)
        if self._parts:
            shown = {} if values is None and questions else values
            return shown if bare else typed(run.plan.output_schema, run.plan.state_schema, shown), tuple(questions)
        if not questions:
            return values
        asked = {INTERRUPT: tuple(questions)}
        return {**values, **asked} if isinstance(values, dict) else asked

    async def tasks_started(self, run: Any, tasks: Sequence[Task]) -> None:
        """Report the tasks of a superstep, also those whose result is known."""
        if not self.modes & {"tasks", "debug"}:
            return
        for task in tasks:
            if task.name == START:
                continue
            await self._started(run, task, task.send.arg if task.send is not None else input_of(run.cells, task))

    async def call_started(self, run: Any, task: Task) -> None:
        """Report a @task call about to run, with its arguments."""
        if self.modes & {"tasks", "debug"}:
            await self._started(run, task, task.given)

    async def _started(self, run: Any, task: Task, given: Any) -> None:
        payload = {"id": task.id, "name": task.name, "input": given, "triggers": task.triggers or (PUSH,)}
        if told := about(run.config.raw, task.node.metadata):
            payload["metadata"] = told
        await self._emit(run, "tasks", payload)
        await self._debug(run, "task", run.step, payload)

    async def task_finished(self, run: Any, task: Task, *, cached: bool = False) -> None:
        """Report what a task wrote; ``cached``: without running, so ``tasks`` shows no end."""
        if task.name == START:
            return
        if "updates" in self.modes:
            update = updates_of_task(run.cells, task, run.call.output_keys)
            payload: dict[str, Any] = {task.name: alone(update, run.call.output_key)}
            if cached:
                payload[METADATA] = {"cached": True}
            await self._emit(run, "updates", payload)
        if not cached:
            await self._ended(run, task, result=result_view(run.cells, task))

    async def call_finished(self, run: Any, task: Task, value: Any, *, cached: bool = False) -> None:
        """Report the result of a @task call; ``cached``: likewise."""
        if "updates" in self.modes:
            payload: dict[str, Any] = {task.name: value}
            if cached:
                payload[METADATA] = {"cached": True}
            await self._emit(run, "updates", payload)
        if not cached:
            await self._ended(run, task, result={RETURN: value})

    async def task_failed(self, run: Any, task: Task, error: BaseException) -> None:
        """Report a failure; ``updates`` shows none."""
        await self._ended(run, task, error=error)

    async def _ended(self, run: Any, task: Task, *, result: Any = None, error: Any = None) -> None:
        if task.name == START or not self.modes & {"tasks", "debug"}:
            return
        payload = end_of(task, result, error, ())
        await self._emit(run, "tasks", payload)
        await self._debug(run, "task_result", run.step, payload)

    async def advanced(self, run: Any) -> None:
        """Report the state after a superstep, if it changed what the run returns, and the checkpoint that has it."""
        if "values" in self.modes:
            keys = run.call.output_keys or run.plan.state
            wanted = ("__root__",) if run.plan.bare else keys
            if run.cells.updated and not run.cells.updated.isdisjoint(wanted):
                await self._emit(run, "values", self._state(run, values_of(run.cells, keys)), self._recorded(run))
        await self.checkpoint(run)

    async def resumed(self, run: Any) -> None:
        """Report the state that a resumed run starts from, and its checkpoint."""
        if "values" in self.modes:
            shown = values_of(run.cells, run.call.output_keys or run.plan.state)
            await self._emit(run, "values", self._state(run, shown), self._recorded(run))
        await self.checkpoint(run)

    def paused(self, run: Any, questions: Sequence[Any] | None, tasks: Sequence[Task]) -> None:
        """Note which tasks paused, and that the run stops for answers or at a breakpoint (no questions).

        Where it fails, ``questions`` are those put beside the failure, or None. Told only when released.
        """
        told: list[tuple[str, Any]] = []
        if questions or (questions is not None and run.nested is None):
            told += [("updates", {INTERRUPT: asked}) for asked in by_task(questions, tasks)]
        if questions and "values" in self.modes:
            shown: Any = None
            if run.plan.single is None:  # what a workflow function returned last time is no part of this answer
                shown = values_with(run.cells, run.call.output_keys or run.plan.state, run.finished)
            told.append(("values", self._state(run, shown, questions)))
        for task in tasks:
            if not waiting(task) or task.around is not None:
                continue  # a subgraph of it stopped at a breakpoint; or its questions are told as its caller's
            payload = end_of(task, None, None, waiting(task))
            told += [("tasks", payload), ("debug", stamped("task_result", run.step, payload))]
        self._held += [(run.ns, mode, payload) for mode, payload in told if mode in self.modes]

    async def release(self) -> None:
        """Tell the pauses: all that belongs to them is durable, in this run and in its subgraphs."""
        while self._held:
            await self._put(*self._held.pop(0), 0)

    @property
    def tells_checkpoints(self) -> bool:
        """Whether it reports checkpoints."""
        return not self.modes.isdisjoint(("checkpoints", "debug"))

    async def checkpoint(self, run: Any) -> None:
        """Report the newest checkpoint and what it makes due."""
        if not self.tells_checkpoints or run.recorded is None:
            return
        payload = run.checkpoint_view()
        if (
            self._parts and run.recorded.source != "input"
        ):  # before the input was written, the state is not what it is to be
            payload["values"] = typed(run.plan.state_schema, run.plan.state_schema, payload["values"])
        due = self._recorded(run)
        await self._emit(run, "checkpoints", payload, due)
        await self._debug(run, "checkpoint", run.recorded.step, payload, due)

    # ---- what nodes tell while they work -----------------------------------------------------------------------

    @property
    def hears(self) -> bool:
        """Whether it listens to the models or tools that nodes call."""
        return bool(self.modes & HEARD)

    def handlers(self, ns: str, tell: Teller) -> list[Any]:
        """Return what listens to the models and tools that a task calls; ``tell`` passes on what it hears."""
        return handlers(self.modes, ns, tell) if self.hears else []

    def given(self, value: Any) -> None:
        """Note the messages that a node is given: they are no news if it returns them."""
        if "messages" in self.modes:
            self._told.update(identity for message in messages_of(value) if (identity := id_of(message)) is not None)

    async def returned(self, run: Any, metadata: Any, result: Any) -> None:
        """Report the messages that a node returned and that were not told before; ``metadata()`` says of the node."""
        if "messages" not in self.modes:
            return
        for message in messages_in(result):
            await self.put_custom(run, (identified(message), metadata()), "messages", once=True)

    def _admits(self, mode: str, item: Any, *, once: bool) -> bool:
        """Tell whether an item is to be told; ``once``: unless its message was told before."""
        if mode not in self.modes or self.closed:
            return False
        if mode == "messages":
            identity = id_of(item[0])
            if once and identity in self._told:
                return False
            if identity is not None:
                self._told.add(identity)
        return True

    def custom(self, run: Any, item: Any, mode: str = "custom", *, once: bool = False, ns: str | None = None) -> None:
        """Report what a node wrote to its stream writer, at once; ``ns``: where, if not right in the run.

        The node is slowed when it next waits for something (see ``room``). Raises StreamOverflowError if it writes on
        and on without ever waiting.
        """
        if not self._admits(mode, item, once=once):
            return
        if len(self._chunks) >= OVERFLOW:
            msg = (
                f"{OVERFLOW} chunks wait for the stream's consumer and the node writes more without ever waiting. "
                "Await something between writes, for example anyio.lowlevel.checkpoint()."
            )
            raise StreamOverflowError(msg)
        self.put_nowait(run.ns if ns is None else ns, mode, item)

    async def put_custom(
        self, run: Any, item: Any, mode: str = "custom", *, once: bool = False, ns: str | None = None
    ) -> None:
        """Report what a sync node wrote, waiting for room."""
        if self._admits(mode, item, once=once):
            await self.room()
            if not self.closed:  # that the reader has left is no fault of the node
                self.put_nowait(run.ns if ns is None else ns, mode, item)

    @property
    def full(self) -> bool:
        """Whether the run has to wait for the consumer."""
        return len(self._chunks) >= (PATIENCE if self._patient or self._hurried else CAPACITY) and not self.closed

    async def room(self) -> None:
        """Return once the consumer has made room, or has left. Raises StreamOverflowError if it waits for the run."""
        while self.full:
            if self._reader in self._stuck:
                msg = f"{PATIENCE} chunks wait for a reader who waits for this run's end. Read on or leave, then wait."
                raise StreamOverflowError(msg)
            await self._writable.wait()
