"""Rows as SQLite returns them, turned into the contract's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from persistence.contracts.backend import CheckpointRow


def checkpoint_rows(rows: Iterable[tuple[Any, ...]]) -> list[CheckpointRow]:
    """Decode the JSON columns, which are read as bytes.

    Damaged bytes must not fail the whole read: they become text that cannot match its checksum.
    """
    return [
        (thread_id, ns, checkpoint_id, parent, kind, _text(checkpoint), _text(metadata))
        for thread_id, ns, checkpoint_id, parent, kind, checkpoint, metadata in rows
    ]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
