"""Units as rows, and rows as checkpoints: the steps that tests of the codec take."""

from __future__ import annotations

from typing import Any

import msgspec

from persistence.contracts.backend import Page, Rows
from persistence.contracts.checkpoint import Addition, CheckpointTuple, Mark, Unit
from persistence.serde.serializer import Serializer
from persistence.writer.decoding import Decoder, group_writes
from persistence.writer.encoding import Encoder, checksum
from tests.persistence.writer.samples import checkpoint

KEY = b"0123456789abcdef"


def unit(values: dict[str, Any], **fields: Any) -> Unit:
    made = checkpoint("c", values, {channel: f"v.{channel}" for channel in values})
    return Unit("t", "ns", checkpoint=made, **{"changed": values, **fields})


def page(*units: Rows) -> Page:
    blobs = {blob[:4]: blob[4:] for rows in units for blob in rows.blobs}
    writes = group_writes(write for rows in units for write in (*rows.writes, *rows.upserts))
    return Page([rows.checkpoint for rows in units if rows.checkpoint is not None], writes, blobs)


def back(serializer: Serializer, *units: Rows) -> CheckpointTuple:
    stored = page(*units)
    return Decoder(serializer).decode(stored.checkpoints[-1], stored)


def grown(serializer: Serializer, pieces: list[Any]) -> tuple[list[Rows], Any]:
    """Store a value that grows piece by piece, each addition resting on every other mark before it."""
    encode = Encoder(serializer).encode
    whole = pieces[0]
    marks: tuple[Mark, ...] = (Mark(0, "v0", len(whole)),)
    made = checkpoint("c0", {"log": whole}, {"log": "v0"})
    stored = [encode(Unit("t", "", checkpoint=made, changed={"log": whole}, lineage={"log": marks}))]
    skipped: Any = pieces[0][:0]
    for index, piece in enumerate(pieces[1:], 1):
        base, whole, skipped = marks[-1], whole + piece, skipped + piece
        own = Mark(index, f"v{index}", len(whole))
        made = checkpoint(f"c{index}", {"log": whole}, {"log": own.version})
        unit = Unit(
            "t",
            "",
            checkpoint=made,
            changed={"log": Addition(base, index, skipped)},
            lineage={"log": (*marks, own)},
        )
        stored.append(encode(unit))
        if index % 2 == 0:
            marks, skipped = (*marks, own), skipped[:0]
    return stored, whole


def damaged(rows: Rows, **changes: Any) -> Rows:
    return msgspec.structs.replace(rows, **changes)


def forged(unit_rows: Rows, **changes: Any) -> Rows:
    """Return rows whose checkpoint was changed together with its checksum."""
    row = unit_rows.checkpoint
    assert row is not None
    text = msgspec.json.encode({**msgspec.json.decode(row[5]), **changes})
    return damaged(unit_rows, checkpoint=(*row[:4], checksum(text), text.decode(), row[6]))
