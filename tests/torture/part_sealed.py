"""Encrypted rows flipped, cut, renamed, made plain, moved between threads, tasks, channels, versions: none opens."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import anyio

from persistence.errors import StoredDataError
from persistence.memory import InMemorySaver
from persistence.serde.encrypted import EncryptedSerializer
from persistence.sqlite import SqliteSaver
from persistence.writer.addressing import config_of
from tests.persistence.serde.forging import Forger
from tests.torture.catalog import Report, part
from tests.torture.part_power import short_logs
from tests.torture.rows.graphs import graph
from tests.torture.rows.reading import File, Shelf
from tests.torture.rows.sealing import Attacker
from tests.torture.rows.tampering import Tables

THREADS = ("t", "u")


@part("sealed", "A sealed value opens at its place, unchanged, or not at all.", full=5_000, short=200)
def sealed_rows(cases: int, seed: int) -> Report:
    """Attack one row at a time, in memory and in a file, and read everything."""
    with short_logs():
        return anyio.run(_try_out, cases, seed)


async def _try_out(cases: int, seed: int) -> Report:
    serde, forger = EncryptedSerializer(b"k" * 32, strict=False), Forger(seed)
    violations: list[str] = []
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sealed.sqlite")
        async with SqliteSaver(path, serde=serde) as file:
            for thread in THREADS:
                await graph(file).ainvoke({"words": [], "text": ""}, {"configurable": {"thread_id": thread}})
            shelf = InMemorySaver(serde=serde)
            places: list[tuple[Any, Any]] = [(file, File(path)), (shelf, Shelf(shelf))]
            rows = File(path).rows()
            places[1][1].put(rows)
            whole = await _read(file, rows)
            assert all(isinstance(each, tuple) for each in whole.values())
            for number in range(cases):
                saver, place = places[number % 2]
                attacked, how = Attacker((seed, number), forger).attacked(rows)
                place.put(attacked)
                found = await _read(saver, rows)
                refused += any(isinstance(each, StoredDataError) for each in found.values())
                for key, read in found.items():
                    if not isinstance(read, StoredDataError) and read != whole[key]:
                        violations.append(f"{saver!r}, {number} of seed {seed}: {how}: {key} reads {read!r:.500}")
    return Report(cases, violations, f"({refused:,} refused, the others changed nothing that is read)")


async def _read(saver: Any, rows: Tables) -> dict[tuple[str, str, str], Any]:
    """Return every checkpoint, or how reading it ended."""
    found: dict[tuple[str, str, str], Any] = {}
    for thread, ns, checkpoint_id, *_ in rows.checkpoints:
        try:
            found[thread, ns, checkpoint_id] = await saver.aget_tuple(config_of(thread, ns, checkpoint_id))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found[thread, ns, checkpoint_id] = error
    return found
