"""Carrying threads over: each whole or not at all, resumable, and never over something that went on meanwhile.

A thread is looked through before anything of it is stored, so what cannot be carried leaves nothing half done. Its
subgraphs' namespaces go first and the root's last, each from the oldest checkpoint to the newest; a checkpoint and the
writes against it are one transaction. So whatever ends the work, the newest id in each namespace says how far it got.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from persistence.contracts.checkpoint import CheckpointTuple, Unit
from persistence.contracts.saver import Ack, Config, UnitSaver
from persistence.errors import CheckpointConflictError, SerializationError, StoredDataError
from persistence.migration.checkpoints import Reading, decoded
from persistence.migration.decoding import ForeignDecoder
from persistence.migration.records import Adopter, DecodedWrite, ForeignThread, Problem, Source, Uncarried, WritesOf

PAGE: Final = 64
"""Checkpoints read at once."""
KEPT: Final = 16 * 2**20
"""Bytes of a thread that are kept from looking it through; a larger one is read twice."""
UNDER_WAY: Final = 256
"""Units sent before their receipts are waited for."""
_SEPARATOR: Final = "|"


class Target(UnitSaver, Protocol):
    """What threads are carried to: a saver of this project."""

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return the newest checkpoint of a thread and namespace."""
        ...


@dataclass(slots=True)
class Tally:
    """What was carried, or would be."""

    threads: int = 0
    checkpoints: int = 0
    writes: int = 0
    items: int = 0
    present: int = 0
    """Threads and items that were there already."""
    problems: list[Problem] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    """Threads that stay behind."""


class ThreadMover:
    """Carries the threads of one source."""

    def __init__(
        self,
        source: Source,
        target: Target,
        decoder: ForeignDecoder,
        make_adopter: Callable[[], Adopter],
        *,
        dry: bool = False,
    ) -> None:
        """Carry from a source to a saver; ``dry`` only looks, and leaves the saver closed."""
        self._source = source
        self._target = target
        self._decoder = decoder
        self._make_adopter = make_adopter
        self._dry = dry
        self.tally = Tally()

    async def move(self, thread: ForeignThread) -> None:
        """Carry one thread over, or note why it stays behind."""
        heads = await self._source.heads(thread.thread_id)
        try:
            there = {} if self._dry else await self._heads_there(thread.thread_id, heads)
        except (StoredDataError, ValueError) as error:
            self._leave(Problem(thread.thread_id, "", "", "the thread", str(error)))
            return
        if heads and there == heads:
            self.tally.present += 1
            return
        try:
            found = await self._looked_through(thread.thread_id, heads, there)
        except _Left as reason:
            self._leave(*reason.problems)
            return
        if not self._dry and not await self._sent(thread.thread_id, heads, there, found):
            return
        self.tally.threads += 1
        self.tally.checkpoints += found.checkpoints
        self.tally.writes += found.writes

    async def _heads_there(self, thread_id: str, heads: dict[str, str]) -> dict[str, str]:
        """Return the newest checkpoint ids that the target has; only the root's if that is all there is to know."""
        root = await self._head(thread_id, "")
        if root is not None and heads.get("") == root:
            return heads  # it is stored last
        found = {ns: await self._head(thread_id, ns) for ns in heads}
        return {ns: head for ns, head in {**found, "": root}.items() if head is not None}

    async def _head(self, thread_id: str, ns: str) -> str | None:
        found = await self._target.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}})
        return None if found is None else found.checkpoint["id"]

    async def _looked_through(self, thread_id: str, heads: dict[str, str], there: dict[str, str]) -> _Found:
        """Read a thread once. Raises _Left if anything speaks against carrying it."""
        found = _Found()
        problems: list[Problem] = []
        unseen = dict(there)
        async with aclosing(self._units(thread_id, heads)) as units:
            async for unit, wrong in units:
                problems += wrong
                if unit is None or unit.checkpoint is None:
                    continue
                if unseen.get(unit.checkpoint_ns) == unit.checkpoint["id"]:
                    del unseen[unit.checkpoint_ns]
                if not problems:
                    problems += self._encoded(unit, unit.checkpoint["id"], found)
        problems += [
            Problem(thread_id, ns, head, "the thread", "the target has this thread already, and it went on there")
            for ns, head in unseen.items()
        ]
        if problems:
            raise _Left(_each_once(problems))
        return found

    def _encoded(self, unit: Unit, checkpoint_id: str, found: _Found) -> list[Problem]:
        """Encode a unit and add it to what was found; return what speaks against that."""
        try:
            found.add(unit, checkpoint_id, self._target.encode(unit))
        except (SerializationError, TypeError, ValueError) as error:
            return [Problem(unit.thread_id, unit.checkpoint_ns, checkpoint_id, "the checkpoint", str(error))]
        return []

    async def _sent(self, thread_id: str, heads: dict[str, str], there: dict[str, str], found: _Found) -> bool:
        """Store a thread; return whether that went well."""
        sending = _Sending(self._target, there)
        try:
            if found.kept is None:
                await self._send_anew(thread_id, heads, sending)
            for ns, checkpoint_id, request in found.kept or ():
                await sending.send(ns, checkpoint_id, request)
            await sending.settle()
        except CheckpointConflictError as error:
            self._leave(Problem(thread_id, "", "", "the thread", f"somebody else writes to it: {error}"))
            return False
        except _Left as reason:
            self._leave(*reason.problems)
            return False
        return True

    async def _send_anew(self, thread_id: str, heads: dict[str, str], sending: _Sending) -> None:
        """Read a thread again and send it. Raises _Left if it is not as it was: somebody changes the source."""
        async with aclosing(self._units(thread_id, heads)) as units:
            async for unit, wrong in units:
                if unit is None or unit.checkpoint is None:
                    raise _Left(wrong)
                await sending.send(unit.checkpoint_ns, unit.checkpoint["id"], self._target.encode(unit))

    async def _units(
        self, thread_id: str, heads: dict[str, str]
    ) -> AsyncGenerator[tuple[Unit | None, list[Problem]], None]:
        """Yield a thread's checkpoints as units, in the order in which they are to be stored."""

        async def writes_of(ns: str, checkpoint_id: str) -> list[DecodedWrite]:
            return decoded(self._decoder, await self._source.writes(thread_id, ns, checkpoint_id))

        for ns in sorted(heads, key=lambda each: (each == "", -each.count(_SEPARATOR), each)):
            adopter = self._make_adopter()
            held: set[tuple[str, str]] = set()
            before = after = ""
            while page := await self._source.checkpoints(thread_id, ns, after, PAGE):
                for foreign in page:
                    reading = Reading(self._decoder, foreign)
                    unit = reading.unit()
                    if unit is not None:
                        with reading.about("the checkpoint"):
                            await _adopted(adopter, unit, writes_of)
                    if unit is None or reading.problems:
                        yield None, reading.problems
                        continue
                    _tell_changes(unit, held)
                    unit.expected_head, before = before, foreign.checkpoint_id
                    yield unit, []
                after = page[-1].checkpoint_id

    def _leave(self, *problems: Problem) -> None:
        self.tally.problems += problems
        self.tally.left.update(problem.thread_id for problem in problems if problem.thread_id is not None)


Read: TypeAlias = tuple[Unit | None, list[Problem]]
"""A checkpoint, or what speaks against it."""


class _Left(Exception):  # noqa: N818 - a finding
    """A thread stays behind."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__()
        self.problems = problems


class _Found:
    """What a look through a thread found: how much it is and, unless that is too much, the thread itself."""

    def __init__(self) -> None:
        self.checkpoints = 0
        self.writes = 0
        self.kept: list[tuple[str, str, Any]] | None = []
        """Encoded units, each with its namespace and id."""
        self._size = 0

    def add(self, unit: Unit, checkpoint_id: str, request: Any) -> None:
        self.checkpoints += 1
        self.writes += sum(len(task.writes) for task in unit.writes)
        self._size += request.size
        if self._size > KEPT:
            self.kept = None
        elif self.kept is not None:
            self.kept.append((unit.checkpoint_ns, checkpoint_id, request))


class _Sending:
    """Sends the units of one thread that the target does not have, in order."""

    def __init__(self, target: Target, there: dict[str, str]) -> None:
        self._target = target
        self._there = there
        self._acks: list[Ack] = []

    async def send(self, ns: str, checkpoint_id: str, request: Any) -> None:
        if checkpoint_id <= self._there.get(ns, ""):
            return
        self._acks.append(await self._target.send(request))
        if len(self._acks) >= UNDER_WAY:
            await self.settle()

    async def settle(self) -> None:
        """Wait until everything sent is stored. Raises what kept it from being so."""
        acks, self._acks = self._acks, []
        for ack in acks:
            await ack.wait()


async def _adopted(adopter: Adopter, unit: Unit, writes_of: WritesOf) -> None:
    try:
        await adopter.adopt(unit, writes_of)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        msg = f"it is not as LangGraph stores it: {type(error).__name__}: {error}"
        raise Uncarried(msg) from error


def _tell_changes(unit: Unit, held: set[tuple[str, str]]) -> None:
    """Note in a unit the values that no earlier one of its namespace has brought."""
    checkpoint = unit.checkpoint
    assert checkpoint is not None  # noqa: S101 - each of them holds one
    changed: dict[str, Any] = {}
    for channel, value in checkpoint["channel_values"].items():
        key = (channel, str(checkpoint["channel_versions"][channel]))
        if key not in held:
            held.add(key)
            changed[channel] = value
    unit.changed = changed


def _each_once(problems: Iterable[Problem]) -> list[Problem]:
    """Leave out what is said of an earlier checkpoint too: a value that cannot be carried stands in many of them."""
    first: dict[tuple[str, str, str], Problem] = {}
    for problem in problems:
        first.setdefault((problem.checkpoint_ns, problem.where, problem.reason), problem)
    return list(first.values())
