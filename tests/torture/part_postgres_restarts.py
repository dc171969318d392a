"""PostgreSQL crashes and comes back, again and again, while graphs run on it."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from persistence.contracts.backend import Request, Rows
from persistence.errors import PersistenceError
from persistence.postgres import PostgresSaver
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from tests.persistence.backends.graphs import chain, thread
from tests.persistence.postgres.server import StartedServer, starting
from tests.torture.catalog import Report, part

if TYPE_CHECKING:
    from persistence.writer.receipts import Receipt

LOOPS: Final = ("asyncio", "trio")
NODES: Final = 8
WORKERS: Final = 6
"""Of each saver: each runs one thread after the other."""
BUSY: Final = 0.02
"""Seconds that a node takes, so that every crash finds runs in all states."""
PATIENT: Final = DEFAULT_LIMITS
"""Longer than the server is away: with it no run may fail."""
HASTY: Final = Limits(attempts=2, first_delay=0.01)
"""Shorter than the server is away: with it runs fail, and have to go on."""

Key = tuple[Any, ...]
CHECKPOINTS: Final = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
WRITES: Final = "SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx FROM checkpoint_writes"


class Noting(PostgresSaver):
    """A saver that remembers which rows it acknowledged."""

    acknowledged: set[Key]
    _sent: list[tuple[list[Key], Receipt]]

    def send_nowait(self, request: Request) -> Receipt:
        """Queue a unit, and note it."""
        return self._noted(request, super().send_nowait(request))

    async def send(self, request: Request) -> Receipt:
        """Queue a unit, waiting for room, and note it."""
        return self._noted(request, await super().send(request))

    def take(self) -> set[Key]:
        """Return the rows that were acknowledged by now."""
        waiting = []
        for keys, receipt in self._sent:
            if not receipt.done:
                waiting.append((keys, receipt))
            elif receipt.error is None:
                self.acknowledged.update(keys)
        self._sent = waiting
        return self.acknowledged

    def _noted(self, request: Request, receipt: Receipt) -> Receipt:
        if isinstance(request, Rows):
            rows = [row[:3] for row in (request.checkpoint,) if row is not None]
            self._sent.append(([*rows, *(row[:5] for row in (*request.writes, *request.upserts))], receipt))
        return receipt


def noting(url: str, limits: Limits) -> Noting:
    """Return a closed saver that remembers."""
    saver = Noting(url, limits=limits)
    saver.acknowledged, saver._sent = set(), []
    return saver


class Trial:
    """Runs on one event loop, and what was seen of them."""

    def __init__(self, server: StartedServer, url: str, crashes: int, dice: random.Random) -> None:
        self._server = server
        self._url = url
        self._crashes = crashes
        self._dice = dice
        self._over = anyio.Event()
        self.done: Counter[str] = Counter()
        self.refused = 0
        self.violations: list[str] = []

    async def run(self) -> None:
        """Crash the server as often as asked for, while runs go on; then look at every thread."""
        patient, hasty = noting(self._url, PATIENT), noting(self._url, HASTY)
        async with patient, hasty:
            async with anyio.create_task_group() as nursery:
                for number in range(WORKERS):
                    nursery.start_soon(self._work, patient, f"patient {number}", number)
                    nursery.start_soon(self._work, hasty, f"hasty {number}", number)
                for _ in range(self._crashes):
                    await anyio.sleep(self._dice.uniform(0.5, 1.5) * self._pause())
                    await self._crash([patient, hasty])
                self._over.set()
            self._require(patient.take() | hasty.take(), "at the end")
            for name, count in self.done.items():
                for number in range(count):
                    await self._look(patient, f"{name} {number}")

    def _pause(self) -> float:
        """Return the seconds between two crashes: three, in a run of a minute; less, in a short one."""
        return 3.0 if self._crashes >= 10 else 0.7

    async def _crash(self, savers: list[Noting]) -> None:
        """A crash, and the rows that had been acknowledged before it."""
        told = set().union(*(saver.take() for saver in savers))
        await anyio.to_thread.run_sync(self._server.stop)
        await anyio.to_thread.run_sync(self._server.start)
        self._require(told, "after a crash")

    def _require(self, told: set[Key], when: str) -> None:
        there = {key for sql in (CHECKPOINTS, WRITES) for key in self._server.rows(sql, url=self._url)}
        lost = told - there
        if lost:
            self.violations.append(f"{len(lost)} acknowledged rows are not there {when}, such as {min(lost, key=str)}")

    async def _work(self, saver: Noting, name: str, number: int) -> None:
        """Run one thread after the other, each to its end."""
        graph = chain(saver, NODES, seconds=BUSY)
        mode = ("sync", "async", "exit")[number % 3]
        while not self._over.is_set():
            given: Any = {"trail": []}
            where = thread(f"{name} {self.done[name]}")
            while given is not _ENDED:
                try:
                    result = await graph.ainvoke(given, where, durability=mode)
                except PersistenceError as error:
                    given = await self._next(saver, where, error)
                else:
                    given = _ENDED
                    if result["trail"] != list(range(NODES)):
                        self.violations.append(f"{where}, {mode}: the run gave {result['trail']}")
            self.done[name] += 1

    async def _next(self, saver: Noting, where: dict[str, Any], error: PersistenceError) -> Any:
        """Return how a run that failed goes on: from what is stored of it, or from the start."""
        self.refused += 1
        if saver._limits is PATIENT:
            self.violations.append(f"{where}: it failed, though the server was away for a moment only: {error}")
        if "127.0.0.1" not in str(error) and "postgres" not in str(error):
            self.violations.append(f"{where}: the error does not tell which database: {error}")
        while True:
            try:
                stored = await saver.aget_tuple(where)
            except PersistenceError:
                await anyio.sleep(0.05)
            else:
                return {"trail": []} if stored is None else None

    async def _look(self, saver: Noting, name: str) -> None:
        """A thread that ended holds every step, once, each on the one before it, and every value once."""
        history = [one async for one in saver.alist(thread(name))]
        steps = [one.metadata["step"] for one in history]
        trail = history[0].checkpoint["channel_values"].get("trail") if history else None
        parents = [one.parent_config and one.parent_config["configurable"]["checkpoint_id"] for one in history]
        ids = [one.checkpoint["id"] for one in history]
        whole = steps == list(range(NODES, -2, -1)) or _by_exit(name)
        if trail != list(range(NODES)) or parents != [*ids[1:], None] or not whole:
            self.violations.append(f"{name}: steps {steps}, trail {trail}, or a parent that is not the one before")


_ENDED: Final = object()


def _by_exit(name: str) -> bool:
    """Whether a thread was run in the mode that keeps only the last step of a run."""
    return int(name.split()[1]) % 3 == 2


@part(
    "postgres-restarts",
    "PostgreSQL crashes every few seconds: what was acknowledged stays, once, and every run ends or goes on.",
    full=40,
    short=4,
)
def postgres_restarts(cases: int, seed: int) -> Report:
    """Each case is a crash; half of them under each event loop."""
    violations: list[str] = []
    ended = refused = crashes = 0
    with starting() as server:
        for number, loop in enumerate(LOOPS):
            share = cases // 2 + (cases % 2 and number)
            with server.schema() as url:
                trial_of = Trial(server, url, share, random.Random(seed + number))
                anyio.run(trial_of.run, backend=loop)
            crashes += share
            ended += trial_of.done.total()
            refused += trial_of.refused
            violations += [f"{loop}: {each}" for each in trial_of.violations]
    return Report(crashes, violations, f"{ended:,} runs ended, with {refused:,} errors on the way.")
