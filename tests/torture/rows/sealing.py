"""Attacks on sealed rows by somebody who can write to the database and has no key."""

from __future__ import annotations

import random
from typing import Final

from persistence.writer.binding import MARK
from tests.persistence.serde.forging import Forger
from tests.torture.rows.tampering import Row, Tables

OTHER_NAMES: Final = (
    "msgpack", "bytes", "null", "bytes+aes", "null+aes", "+aes", "msgpack+aes+aes", "msgpack+xor", "msgpack+AES", "",
    "msgpack+aes ", "pickle", "msgpack+aes+add", "msgpack+add",
)  # fmt: skip


class Attacker:
    """Changes the type or the data of one sealed row."""

    def __init__(self, seed: object, forger: Forger) -> None:
        """Take what makes plain values, right checksums included."""
        self._random = random.Random(repr(seed))
        self._forger = forger

    def attacked(self, tables: Tables) -> tuple[Tables, str]:
        """Return the tables with one row attacked, and how."""
        after = Tables(*(list(rows) for rows in tables))
        rows, column = self._random.choice([(after.writes, 6), (after.blobs, 4)])
        at = self._random.randrange(len(rows))
        row = rows[at]
        how, kind, data = self._changed(tables, row[column], row[column + 1])
        if self._random.random() < 0.7:  # then it looks like a row of old, which only the cipher binds to its place
            kind = kind.partition(MARK)[0]
        rows[at] = (*row[:column], kind, data, *row[column + 2 :])
        return after, f"{how} as {kind!r} {row[:column]}"

    def _changed(self, tables: Tables, kind: str, data: bytes) -> tuple[str, str, bytes]:
        choice = self._random.randrange(6)
        if choice == 0:
            flipped = bytearray(data)
            flipped[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
            return "flipped", kind, bytes(flipped)
        if choice == 1:
            return "cut", kind, data[: self._random.randrange(len(data))]
        if choice == 2:
            return "renamed", self._random.choice(OTHER_NAMES), data
        if choice == 3:
            plain, payload = self._forger.typed()
            return "made plain", plain, payload
        if choice == 4:
            _, payload = self._forger.typed()
            return "made up", kind, data[: self._random.choice([4, 16])] + payload
        other, column = self._random.choice([(tables.writes, 6), (tables.blobs, 4)])
        row: Row = self._random.choice(other)
        return f"taken from {row[:column]}", *row[column : column + 2]
