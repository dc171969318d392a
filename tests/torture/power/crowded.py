"""Recording a crowd under strace, and holding what losses leave of it to what each client had been told."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from persistence.sqlite import SqliteSaver
from runtime.errors import EmptyInputError
from tests.crash.zygote import Zygote
from tests.torture.power.crowds import NODES, Crowd, config, given, graph_of, result, run_crowd
from tests.torture.power.disk import NEVER, Disk
from tests.torture.power.recording import DATABASE, LEDGER, leave, traced_disk

CHECKPOINTS = len(NODES) + 2
"""Of a run that is over: of its input, of its start, and of each node."""


class Last(NamedTuple):
    """The last that a client said of a thread."""

    word: str
    life: int
    mode: str


class Left(NamedTuple):
    """What a loss left of a thread."""

    checkpoints: int
    log: list[str]
    """As of its newest checkpoint."""


NOTHING = Left(0, [])


@dataclass(frozen=True)
class CrowdRecording:
    """What a crowd did to its files."""

    disk: Disk
    ledger: Path
    units: int
    """How many were committed."""
    commits: int
    """In how many transactions."""

    async def examine(self, seed: int, folder: Path) -> None:
        """Lose the power at some moment and hold what is left to what the clients had been told by then."""
        chance = random.Random(seed)
        moment = chance.choice(self.disk.moments)
        path = await leave(self.disk, moment, chance, folder)
        said = last(self.disk.ledger(self.ledger, moment))
        _check_whole(path)
        async with SqliteSaver(path, synchronous="NORMAL") as saver:
            left = await _left(saver)
            assert left.keys() <= said.keys(), f"threads that nobody began: {left.keys() - said.keys()}"
            for thread, word in said.items():
                check(thread, word, left.get(thread, NOTHING))
            graph = graph_of(saver)
            for thread, word in said.items():
                if word.word in {"begun", "deleted"}:
                    await _go_on(graph, thread, word)
        _check_whole(path)


async def record_crowd(zygote: Zygote, folder: Path, crowd: Crowd) -> CrowdRecording:
    """Run a crowd under strace, on a new database or on none."""
    folder.mkdir()
    path, ledger, gate = folder / DATABASE, folder / LEDGER, folder.with_suffix(".gate")
    if not crowd.from_nothing:
        async with SqliteSaver(path):
            pass
    told = {"loop": crowd.loop, "pages": crowd.pages, "seed": crowd.seed, "synchronous": crowd.synchronous}
    paths = {"database": str(path), "ledger": str(ledger), "gate": str(gate)}
    disk = traced_disk(folder, gate, lambda: zygote.start(run_crowd, **told, **paths))
    *_, line = disk.ledger(ledger, NEVER).decode().splitlines()
    word, units, batches, largest = line.split()
    assert word == "shared"
    assert int(largest) > 1, "no two clients shared a commit"
    return CrowdRecording(disk, ledger, int(units), int(batches))


def last(ledger: bytes) -> dict[str, Last]:
    """Return the last that was said of each thread; a deletion or a pruning keeps the mode of the run before it."""
    found: dict[str, Last] = {}
    for line in ledger.decode().split("\n")[:-1]:
        word, thread, life, *mode = line.split()
        if word != "shared":
            found[thread] = Last(word, int(life), mode[0] if mode else found[thread].mode)
    return found


def check(thread: str, said: Last, left: Left) -> None:
    """Hold what is left of a thread to what was said last."""
    whole = result(thread, said.life)
    full = CHECKPOINTS if said.mode != "exit" else 1
    may = {
        "begun": _begun(thread, said),
        "done": [Left(full, whole)],
        "deleting": [Left(full, whole), NOTHING],
        "deleted": [NOTHING],
        "pruning": [Left(full, whole), Left(1, whole)],
        "pruned": [Left(1, whole)],
    }[said.word]
    assert left in may, f"thread {thread}, {said}: {left!r:.300}"


def _begun(thread: str, said: Last) -> list[Left]:
    """Return all that may be there of a run on its way."""
    if said.mode == "exit":
        return [NOTHING, Left(1, result(thread, said.life))]
    whole = result(thread, said.life)
    return [NOTHING, Left(1, []), *(Left(2 + passed, whole[: 1 + passed]) for passed in range(len(NODES) + 1))]


def _check_whole(path: Path) -> None:
    """SQLite finds the file sound, and no row is left of a thread that has no checkpoint."""
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for table in ("checkpoint_writes", "checkpoint_blobs"):
            query = f"SELECT DISTINCT thread_id FROM {table} EXCEPT SELECT thread_id FROM checkpoints"
            orphans = file.execute(query).fetchall()
            assert not orphans, f"{table} has rows of threads without a checkpoint: {orphans}"


async def _left(saver: SqliteSaver) -> dict[str, Left]:
    found: dict[str, Left] = {}
    async for one in saver.alist(None):  # the newest of a thread comes first
        thread = one.config["configurable"]["thread_id"]
        log = found[thread].log if thread in found else one.checkpoint["channel_values"].get("log", [])
        found[thread] = Left(found.get(thread, NOTHING).checkpoints + 1, log)
    return found


async def _go_on(graph: Any, thread: str, said: Last) -> None:
    """Do what a client would whose run was lost on the way, or who begins anew what it had deleted."""
    mode: Any = said.mode
    life = said.life + (said.word == "deleted")
    try:
        outcome = await graph.ainvoke(None, config(thread), durability=mode)
    except EmptyInputError:
        outcome = await graph.ainvoke(given(thread, life), config(thread), durability=mode)
    assert outcome["log"] == result(thread, life), f"thread {thread} went on to {outcome!r:.300}"
