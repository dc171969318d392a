"""Values in pieces: a document of MongoDB holds 16 MiB at most, a value has no such limit.

A piece is named after its owner and the whole value's digest: to store a value twice is to store it once, and pieces of
two values never mix. They are written before the document that refers to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from bson.binary import Binary

from persistence.errors import BackendError

MIB: Final = 2**20
PART: Final = 8 * MIB
"""Bytes of a piece, and of a value that is not cut: half a document, so that names and other fields have room."""

NAMES: Final = 4 * MIB
"""Bytes that names, paths and metadata may take in one document."""

NAME: Final = 16
"""Bytes that a name takes in a list beside itself."""

Stored: TypeAlias = "Binary | dict[str, Any]"
"""The value itself, or what its pieces are called."""


def joined(*parts: str) -> str:
    """Return the id of a document: names with a NUL between, as they hold none. Its bytes sort like the names."""
    return "\0".join(parts)


def in_parts(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield names in lists that a command has room for: it holds 16 MiB, as a document does."""
    part: list[str] = []
    size = 0
    for name in names:
        length = len(name.encode("utf-8", "surrogatepass")) + NAME
        if part and size + length > PART:
            yield part
            part, size = [], 0
        part.append(name)
        size += length
    if part:
        yield part


def cut(owner: str, data: bytes, room: int, facts: Mapping[str, Any]) -> tuple[Stored, list[dict[str, Any]]]:
    """Return a value as its owner's document holds it, and the documents of its pieces, which also hold ``facts``."""
    if len(data) <= room:
        return Binary(data), []
    digest = hashlib.blake2b(data, digest_size=20).hexdigest()
    starts = range(0, len(data), PART)
    pieces = [
        {
            **facts,
            "_id": _piece(owner, digest, number),
            "kind": "chunk",
            "owner": owner,
            "data": Binary(data[start : start + PART]),
        }
        for number, start in enumerate(starts)
    ]
    return {"digest": digest, "parts": len(starts)}, pieces


def pieces_of(owner: str, stored: object) -> list[str]:
    """Return the ids of the pieces that a value is in; none if it is not cut, or what refers to them is damaged."""
    if not isinstance(stored, dict):
        return []
    digest, parts = stored.get("digest"), stored.get("parts")
    if not isinstance(digest, str) or not isinstance(parts, int):
        return []
    return [_piece(owner, digest, number) for number in range(parts)]


def whole(owner: str, stored: object, pieces: Mapping[str, bytes]) -> bytes | None:
    """Return a value, None if some of it is missing."""
    if isinstance(stored, bytes):
        return stored
    names = pieces_of(owner, stored)
    if not names or any(name not in pieces for name in names):
        return None
    return b"".join(pieces[name] for name in names)


def check_room(names: Iterable[str], what: str) -> None:
    """Refuse what would not fit into a document.

    Raises:
        BackendError: It is too long; nothing has been sent.
    """
    size = sum(len(name.encode("utf-8", "surrogatepass")) for name in names)
    if size > NAMES:
        message = (
            f"{what} has {size} bytes of names and metadata, where a document of MongoDB has room for {NAMES}: "
            "nothing was saved. Shorten them; large values belong into the state or the item's value."
        )
        raise BackendError(message)


def _piece(owner: str, digest: str, number: int) -> str:
    return joined("chunk", owner, digest, f"{number:06}")
