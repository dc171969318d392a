"""Clients: each calls again and again, at random, on threads that all of them share, and logs what it hears."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint

from tests.torture.appending.graphs import PARTS, Kit, State, build
from tests.torture.appending.operations import Kind, Log, Operation, Outcome

EVERYTHING: Final[Mapping[Kind, int]] = {
    "invoke": 8,
    "ask": 3,
    "resume": 4,
    "go_on": 2,
    "update": 3,
    "fork": 3,
    "cancel": 3,
    "prune": 1,
    "delete": 1,
}
"""How often each kind is called, against the others."""

PLAIN: Final[Mapping[Kind, int]] = {"invoke": 4, "update": 1}
"""What every runtime has."""

REFUSALS: Final = frozenset({"CheckpointNotFoundError", "EmptyInputError", "ThreadBusyError", "UnknownInterruptError"})
"""Errors that say that nothing happened."""

LOSSES: Final = frozenset({"FencedError", "ThreadConflictError"})
"""What the loser of a race for a thread is told: what was not saved by then is not saved."""

FAULTS: Final = frozenset({"BackendError", "TransientBackendError", "PersistenceClosedError"})
"""What a run is told when storage fails under it."""


@dataclass(frozen=True)
class Work:
    """What clients do."""

    seed: int
    durability: str
    clients: int = 3
    threads: int = 3
    operations: int = 14
    """Calls of each client."""
    kinds: Mapping[Kind, int] = field(default_factory=lambda: dict(EVERYTHING))
    process: int = 0
    """Tells this process's numbers from those of others."""
    faults: bool = False
    """Whether storage may fail; an error of storage is a finding otherwise."""
    prefix: str = "t"
    """Begins the names of the threads."""

    def names(self) -> list[str]:
        return [f"{self.prefix}{number}" for number in range(self.threads)]


def graph_of(kit: Kit, saver: Any) -> Any:
    """Return the graph, for whoever only reads."""
    return build(kit, lambda _node: None).compile(checkpointer=saver)


class Clients:
    """All clients of one process."""

    def __init__(self, work: Work, kit: Kit, saver: Any, log: Log) -> None:
        self.work = work
        self.saver = saver
        self.log = log
        self.kit = kit
        self.unexpected: list[str] = []
        """Errors that no client should meet."""
        self._watched: Callable[[], None] | None = None
        self.graph = build(kit, self._reached).compile(checkpointer=saver)
        self._numbers = work.process * 1_000_000
        self.reached: Callable[[str], None] = lambda _node: None
        """Called as each node starts."""

    async def run(self) -> None:
        """Do all the work."""
        async with anyio.create_task_group() as nursery:
            for number in range(self.work.clients):
                dice = random.Random(f"{self.work.seed} {self.work.process} {number}")
                nursery.start_soon(self._client, dice)

    async def finish(self, tries: int = 1) -> None:
        """Append to each thread once more: now that nothing is wrong, or will be soon, it must take it."""
        for thread in self.work.names():
            error: Exception | None = None
            for _ in range(tries):
                error = await self._appended(thread)
                if error is None or type(error).__name__ not in FAULTS:
                    break
            if error is not None:
                self.unexpected.append(f"thread {thread} goes on no more: {type(error).__name__}: {error}")

    async def _appended(self, thread: str) -> Exception | None:
        first = self._number()
        number = self.log.invoked(Operation("invoke", thread, tuple(range(first, first + PARTS))))
        try:
            await self._invoked(self._given(first, asks=False), thread)
        except Exception as error:  # noqa: BLE001 - the caller judges it
            self.log.ended(number, "unknown", f"{type(error).__name__}: {error}"[:300])
            return error
        self.log.ended(number, "acknowledged")
        return None

    async def _client(self, dice: random.Random) -> None:
        kinds, weights = list(self.work.kinds), list(self.work.kinds.values())
        for _ in range(self.work.operations):
            [kind] = dice.choices(kinds, weights)
            thread = dice.choice(self.work.names())
            await _CALLS[kind](self, kind, thread, dice)
            if kind == "ask" and dice.random() < 0.5:  # else somebody else's call comes first
                await self._resume("resume", thread, dice)
            await checkpoint()

    def _reached(self, node: str) -> None:
        self.reached(node)
        if self._watched is not None:
            self._watched()

    def _number(self) -> int:
        self._numbers += 10
        return self._numbers

    async def _tried(self, operation: Operation, call: Callable[[], Awaitable[Outcome | None]]) -> None:
        """Call, and log what came of it."""
        number = self.log.invoked(operation)
        try:
            outcome = await call()
        except Exception as error:  # noqa: BLE001 - which it was is what the log is for
            self.log.ended(number, self._meaning(operation, error), f"{type(error).__name__}: {error}"[:300])
        else:
            self.log.ended(number, outcome or "acknowledged")

    def _meaning(self, operation: Operation, error: Exception) -> Outcome:
        name = type(error).__name__
        if name in REFUSALS or (name in LOSSES and operation.kind == "update"):
            return "refused"
        if name not in LOSSES and not (self.work.faults and name in FAULTS):
            self.unexpected.append(f"{operation}: {name}: {error}")
        return "unknown"

    def _config(self, thread: str, base: str | None = None) -> dict[str, Any]:
        at = {} if base is None else {"checkpoint_id": base}
        return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **at}}

    async def _invoked(self, given: Any, thread: str, base: str | None = None) -> None:
        config = self._config(thread, base)
        await self.graph.ainvoke(given, config, durability=self.work.durability)

    def _given(self, first: int, *, asks: bool) -> State:
        return {"items": [first], "first": first, "asks": asks}

    async def _run(self, kind: Kind, thread: str, _dice: random.Random) -> None:
        first = self._number()
        items = tuple(range(first, first + PARTS - (kind == "ask")))
        given = self._given(first, asks=kind == "ask")
        await self._tried(Operation(kind, thread, items), lambda: self._invoked(given, thread))

    async def _resume(self, kind: Kind, thread: str, _dice: random.Random) -> None:
        asked = await self._questions(thread)
        if not asked:
            return
        answer = self._number()
        given = self.kit.command(resume={asked[0]: answer})
        await self._tried(Operation(kind, thread, (answer,)), lambda: self._invoked(given, thread))

    async def _questions(self, thread: str) -> list[str]:
        try:
            found = await self.graph.aget_state(self._config(thread))
        except Exception as error:  # noqa: BLE001 - reading may fail where storage does
            self._meaning(Operation("resume", thread), error)
            return []
        return [each.id for each in found.interrupts]

    async def _go_on(self, kind: Kind, thread: str, _dice: random.Random) -> None:
        await self._tried(Operation(kind, thread), lambda: self._invoked(None, thread))

    async def _update(self, kind: Kind, thread: str, _dice: random.Random) -> None:
        number = self._number()
        await self._tried(Operation(kind, thread, (number,)), lambda: self._updated(number, thread))

    async def _updated(self, number: int, thread: str, base: str | None = None) -> None:
        await self.graph.aupdate_state(self._config(thread, base), {"items": [number]}, as_node="last")

    async def _fork(self, kind: Kind, thread: str, dice: random.Random) -> None:
        try:
            ids = [one.config["configurable"]["checkpoint_id"] async for one in self._history(thread)]
        except Exception as error:  # noqa: BLE001 - likewise
            self._meaning(Operation(kind, thread), error)
            return
        if not ids:
            return
        base, how, first = dice.choice(ids), dice.choice(("update", "input", "again")), self._number()
        if how == "update":
            await self._tried(Operation(kind, thread, (first,), base), lambda: self._updated(first, thread, base))
        elif how == "input":
            items, given = tuple(range(first, first + PARTS)), self._given(first, asks=False)
            await self._tried(Operation(kind, thread, items, base), lambda: self._invoked(given, thread, base))
        else:
            await self._tried(Operation(kind, thread, (), base), lambda: self._invoked(None, thread, base))

    def _history(self, thread: str) -> Any:
        return self.graph.aget_state_history(self._config(thread), limit=8)

    async def _cancel(self, kind: Kind, thread: str, dice: random.Random) -> None:
        first, left = self._number(), dice.randrange(12)

        def passed() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                scope.cancel()

        async def invoke() -> Outcome:
            with scope:
                passed()
                self._watched = passed
                await self._invoked(self._given(first, asks=False), thread)
                return "acknowledged"
            return "unknown"

        scope = anyio.CancelScope()
        await self._tried(Operation(kind, thread, tuple(range(first, first + PARTS))), invoke)

    async def _prune(self, kind: Kind, thread: str, _dice: random.Random) -> None:
        await self._tried(Operation(kind, thread), lambda: self.saver.aprune([thread], strategy="keep_latest"))

    async def _delete(self, kind: Kind, thread: str, _dice: random.Random) -> None:
        await self._tried(Operation(kind, thread), lambda: self.saver.adelete_thread(thread))


_Call = Callable[[Clients, Kind, str, random.Random], Awaitable[None]]
_CALLS: Final[Mapping[Kind, _Call]] = {
    "invoke": Clients._run,
    "ask": Clients._run,
    "resume": Clients._resume,
    "go_on": Clients._go_on,
    "update": Clients._update,
    "fork": Clients._fork,
    "cancel": Clients._cancel,
    "prune": Clients._prune,
    "delete": Clients._delete,
}
