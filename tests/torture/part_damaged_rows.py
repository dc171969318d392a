"""Stored rows are harmed behind the saver's back: a typed error that names the checkpoint, or the truth; never else."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio

from persistence.errors import StoredDataError
from persistence.serde.encrypted import EncryptedSerializer
from tests.torture.appending.graphs import build
from tests.torture.appending.kits import OURS
from tests.torture.appending.places import Place, Places, places
from tests.torture.catalog import Report, part
from tests.torture.damaging import DAMAGES, Harm, PostgresTables, Tables, sqlite_tables

KEY: Final = bytes(range(32))
VARIANTS: Final = ("sqlite", "sealed sqlite", "postgres")
HARMED, BESIDE = "harmed", "beside"
ROUNDS: Final = 3


@part(
    "damaged-rows",
    "A row that was damaged, cut, exchanged or replaced is an error that names its checkpoint; all others are read.",
    full=3000,
    short=57,
)
def damaged_rows(cases: int, seed: int) -> Report:
    """Each case harms one row, reads every checkpoint, and mends the row."""
    dice, violations, seen = random.Random(seed), list[str](), Counter[str]()
    with places() as made:
        for number, variant in enumerate(VARIANTS):
            with _prepared(made, variant) as (place, tables):
                share = range(number, cases, len(VARIANTS))
                kinds = itertools.islice(itertools.cycle(DAMAGES), len(share))
                violations += anyio.run(_variant, variant, place, tables, list(kinds), dice, seen)
    return Report(cases, violations, f"{seen['told']:,} errors.")


@contextmanager
def _prepared(made: Places, variant: str) -> Iterator[tuple[Place, Tables]]:
    """Yield a database with two threads in it, and the door through which it is harmed."""
    sealed = {"serde": EncryptedSerializer(KEY)} if variant.startswith("sealed") else {}
    with made.place("postgres" if variant == "postgres" else "sqlite", **sealed) as place:
        anyio.run(_write, place)
        if variant == "postgres":
            yield place, PostgresTables(made.server, place.where)
        else:
            with sqlite_tables(place.where) as tables:
                yield place, tables


async def _write(place: Place) -> None:
    async with place.opened() as saver:
        graph = _graph(saver)
        for thread in (HARMED, BESIDE):
            for number in range(ROUNDS):
                first = 100 * number + (thread == BESIDE)
                given = {"items": [first], "first": first, "asks": number == ROUNDS - 1}
                await graph.ainvoke(given, _config(thread), durability="sync")


def _graph(saver: Any) -> Any:
    return build(OURS, lambda _node: None).compile(checkpointer=saver)


def _config(thread: str, checkpoint_id: str | None = None) -> dict[str, Any]:
    at = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **at}}


async def _variant(
    variant: str, place: Place, tables: Tables, kinds: list[str], dice: random.Random, seen: Counter[str]
) -> list[str]:
    said: list[str] = []
    async with place.opened() as saver:
        truth = {
            (thread, one.checkpoint["id"]): one
            for thread in (HARMED, BESIDE)
            async for one in saver.alist(_config(thread))
        }
        for number, kind in enumerate(kinds):
            table, do = DAMAGES[kind]
            harm = Harm(tables, table, HARMED, BESIDE, dice)
            do(harm)
            found = await _read(saver, truth, seen)
            said += [f"{variant}, case {number}, {kind}: {each}" for each in found]
            harm.mend()
        found = await _read(saver, truth, Counter())
        said += [f"{variant}, after all is mended: {each}" for each in found]
    return said


async def _read(saver: Any, truth: dict[tuple[str, str], Any], seen: Counter[str]) -> list[str]:
    """Read every checkpoint; return what was neither the truth nor an error that names it."""
    said = []
    for (thread, checkpoint_id), expected in truth.items():
        try:
            found = await saver.aget_tuple(_config(thread, checkpoint_id))
        except StoredDataError as error:
            seen["told"] += 1
            if thread != HARMED or error.checkpoint_id != checkpoint_id or checkpoint_id not in str(error):
                said.append(f"reading {checkpoint_id} of {thread} raised {error!r}")
        except Exception as error:  # noqa: BLE001 - anything else is a finding
            said.append(f"reading {checkpoint_id} of {thread} raised {error!r}")
        else:
            if found != expected:
                said.append(f"{checkpoint_id} of {thread} is silently another: {found}, not {expected}")
    return said
