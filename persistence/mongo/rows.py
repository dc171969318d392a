"""Rows as documents, and back.

One collection holds four kinds, so that a batch is one command. Names are values, never keys; so nothing that is given
can be an operator.

    checkpoint   one row
    writes       all rows of one task against one checkpoint: they are stored together, transaction or not
    blob         one row
    chunk        a piece of a value, see ``chunks``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from persistence.mongo.chunks import PART, check_room, cut, joined, pieces_of, whole
from persistence.writer.filtering import metadata_run_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from persistence.contracts.backend import BlobRow, CheckpointKey, CheckpointRow, WriteRow

Document = dict[str, Any]

ROOM_OF_A_TASK: Final = 2**20
"""Bytes of values that one call adds to a task's document; more go to pieces. Several calls may add to one."""

ROW: Final = 60
"""Bytes that a row takes in a task's document, beside its names and value."""


class Stored(NamedTuple):
    """A document to write."""

    id: str
    fields: Document
    pieces: Sequence[Document]
    """To be written before it."""


class Row(NamedTuple):
    """A task's row on its way to the document of its task."""

    stored: Document
    replaces: bool
    """Whether it takes the place of one that is there."""


def checkpoint_id(thread_id: str, ns: str, name: str) -> str:
    """Return the id of a checkpoint's document."""
    return joined("checkpoint", thread_id, ns, name)


def blob_id(thread_id: str, ns: str, channel: str, version: str) -> str:
    """Return the id of a blob's document."""
    return joined("blob", thread_id, ns, channel, version)


def writes_id(thread_id: str, ns: str, name: str, task_id: str) -> str:
    """Return the id of the document of a task's writes."""
    return joined("writes", thread_id, ns, name, task_id)


def checkpoint_document(row: CheckpointRow) -> Stored:
    """Return a checkpoint's document. Raises BackendError if its metadata is too long."""
    thread_id, ns, name, parent, kind, body, facts = row
    check_room((thread_id, ns, name, parent or "", thread_id, ns, name, facts), f"Checkpoint {name} of {thread_id!r}")
    where, held = checkpoint_id(thread_id, ns, name), _place("checkpoint", thread_id, ns)
    text: Any = body
    pieces: list[Document] = []
    if len(body) > PART // 4:  # a character takes four bytes at most
        data = body.encode("utf-8", "surrogatepass")
        if len(data) > PART:
            text, pieces = cut(where, data, 0, _owned(thread_id, ns))
    fields = {
        **held,
        "checkpoint_id": name,
        "parent_checkpoint_id": parent,
        "type": kind,
        "checkpoint": text,
        "metadata": facts,
        "run_id": metadata_run_id(facts),
    }
    return Stored(where, fields, pieces)


def checkpoint_row(document: Mapping[str, Any], pieces: Mapping[str, bytes]) -> CheckpointRow:
    """Return the row of a checkpoint; of a damaged one, a row that fails its checksum."""
    key, parent, body = key_of(document), document.get("parent_checkpoint_id"), document.get("checkpoint")
    if not isinstance(body, str):
        body = (whole(str(document["_id"]), body, pieces) or b"").decode("utf-8", "surrogateescape")
    parent = parent if isinstance(parent, str) else None
    return *key, parent, _text(document, "type"), body, _text(document, "metadata")


def key_of(document: Mapping[str, Any]) -> CheckpointKey:
    """Return which checkpoint a document is, or belongs to."""
    return _text(document, "thread_id"), _text(document, "checkpoint_ns"), _text(document, "checkpoint_id")


def blob_document(row: BlobRow) -> Stored:
    """Return a blob's document. Raises BackendError if its names are too long."""
    thread_id, ns, channel, version, kind, data = row
    check_room((thread_id, ns, channel, version) * 2, f"Channel {channel!r:.80} of thread {thread_id!r:.80}")
    where = blob_id(thread_id, ns, channel, version)
    stored, pieces = cut(where, data, PART, _owned(thread_id, ns))
    fields = {
        **_place("blob", thread_id, ns),
        "channel": channel,
        "version": version,
        "type": kind,
        "blob": stored,
    }
    return Stored(where, fields, pieces)


def blob_row(document: Mapping[str, Any], pieces: Mapping[str, bytes]) -> BlobRow | None:
    """Return the row of a blob; None if pieces of it are missing."""
    data = whole(str(document["_id"]), document.get("blob"), pieces)
    if data is None:
        return None
    thread_id, ns, _ = key_of(document)
    return thread_id, ns, _text(document, "channel"), _text(document, "version"), _text(document, "type"), data


class Tasks:
    """Rows of tasks on their way to the documents of their tasks, in order."""

    def __init__(self) -> None:
        """Start with none."""
        self._rows: dict[str, tuple[WriteRow, dict[int, Row]]] = {}

    def add(self, rows: Iterable[WriteRow], *, replaces: bool) -> None:
        """Take rows: the first of a place stays, unless they replace what is there."""
        for row in rows:
            where = writes_id(*row[:4])
            held = self._rows.setdefault(where, (row, {}))[1]
            if replaces or row[4] not in held:
                stored = {"channel": row[5], "type": row[6], "path": row[8], "blob": row[7]}
                held[row[4]] = Row(stored, replaces)

    def stored(self) -> list[tuple[Stored, dict[int, Row]]]:
        """Return the documents, with the rows to put into each. Raises BackendError if some would not fit."""
        return [self._document(where, row, held) for where, (row, held) in self._rows.items()]

    def _document(self, where: str, row: WriteRow, held: dict[int, Row]) -> tuple[Stored, dict[int, Row]]:
        thread_id, ns, name, task_id = row[:4]
        names = [each.stored[part] for each in held.values() for part in ("channel", "type", "path")]
        check_room((*row[:4], *row[:4], *names, "." * (ROW * len(held))), f"Task {task_id} of thread {thread_id!r:.80}")
        room = ROOM_OF_A_TASK
        pieces: list[Document] = []
        for each in held.values():
            data: bytes = each.stored["blob"]
            each.stored["blob"], cuts = cut(where, data, room, _owned(thread_id, ns))
            pieces += cuts
            room -= 0 if cuts else len(data)
        fields = {**_place("writes", thread_id, ns), "checkpoint_id": name, "task_id": task_id}
        return Stored(where, fields, pieces), held


def write_rows(document: Mapping[str, Any], pieces: Mapping[str, bytes]) -> list[WriteRow]:
    """Return a task's rows; what is damaged comes back empty, and so cannot be decoded."""
    found: list[WriteRow] = []
    where, key, task_id = str(document["_id"]), key_of(document), _text(document, "task_id")
    for idx, row in _rows_of(document):
        data = whole(where, row.get("blob"), pieces) or b""
        found.append((*key, task_id, int(idx), _text(row, "channel"), _text(row, "type"), data, _text(row, "path")))
    return found


def needed_pieces(document: Mapping[str, Any]) -> list[str]:
    """Return the ids of all the pieces that a document refers to."""
    where = str(document["_id"])
    held = [document.get("checkpoint"), document.get("blob"), *(row.get("blob") for _, row in _rows_of(document))]
    return [name for stored in held for name in pieces_of(where, stored)]


def _rows_of(document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    rows = document.get("rows")
    return [(idx, row) for idx, row in rows.items() if isinstance(row, dict)] if isinstance(rows, dict) else []


def _place(kind: str, thread_id: str, ns: str) -> Document:
    return {"kind": kind, "thread_id": thread_id, "checkpoint_ns": ns}


def _owned(thread_id: str, ns: str) -> Document:
    return {"thread_id": thread_id, "checkpoint_ns": ns}


def _text(document: Mapping[str, Any], key: str) -> str:
    text = document.get(key)
    return text if isinstance(text, str) else ""
