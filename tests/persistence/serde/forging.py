"""Stored bytes as somebody makes them who knows the format and means harm: a right checksum around anything at all."""

from __future__ import annotations

import random
import zlib
from typing import Any, NamedTuple

from msgspec import DecodeError
from msgspec.msgpack import Ext, decode, encode

from persistence.errors import SerializationError
from persistence.serde import tags
from persistence.serde.serializer import Serializer, Typed
from tests.persistence.serde.samples import REGISTERED, SAMPLES, registered_serializer

CODES = sorted(code for name, code in vars(tags).items() if name.isupper())
LONG = Ext(tags.RANGE, encode([1, 10**15, 1]))
"""Twenty bytes that take years to go through."""
SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, float("nan"), float("inf"), "", "a", "x", "list",
    "1e99999999", "<i4", "<U0", "O", "|V8", "C", "F", "Europe/Paris", "zone.tab", "../../etc/passwd", "\0", "__class__",
    "__dict__", "__reduce__", "__init__", "__post_init__", "builtins:OSError", "builtins:eval", "os:system", "(", "a*",
    b"", b"\0", b"x" * 40, [], {}, LONG, Ext(tags.DECIMAL, b"1e99999999"), Ext(tags.INTEGER, b"\x7f" * 2000),
    Ext(tags.DATE, b"2024-01-02"), Ext(tags.TUPLE, encode([1])), Ext(tags.ELLIPSIS, b""),
)  # fmt: skip


def forged(tree: object) -> Typed:
    """Return a stored value with a right checksum around a tree."""
    return forged_payload(encode(tree))


def forged_payload(payload: bytes, kind: str = "msgpack") -> Typed:
    """Return a stored value with a right checksum around a payload."""
    return kind, zlib.crc32(payload, zlib.crc32(kind.encode())).to_bytes(4, "little") + payload


class Forger:
    """Makes stored values from a seed; the same seed makes the same ones in every process."""

    def __init__(self, seed: object, serializer: Serializer | None = None) -> None:
        """Know the names of the classes that the serializer may rebuild."""
        self._random = random.Random(repr(seed))
        serializer = registered_serializer() if serializer is None else serializer
        self._names = [name for cls in REGISTERED if (name := serializer.registry.name_of(cls))]
        self._payloads = _payloads(serializer)

    def typed(self) -> Typed:
        """Return one: a real value with changed bytes or parts, a tree of known codes around anything, or noise."""
        choice = self._random.random()
        if choice < 0.3:
            return forged_payload(self.mutated(self._random.choice(self._payloads)))
        if choice < 0.6:
            return forged(self.grafted(unfolded(self._random.choice(self._payloads))))
        if choice < 0.9:
            return forged(self.tree(4))
        if choice < 0.95:
            return forged_payload(self._random.randbytes(self._random.randrange(60)))
        kind = self._random.choice(["null", "bytes", "msgpack", "pickle", "json", "msgpack+aes", "", "\0"])
        return kind, self._random.randbytes(self._random.randrange(60))

    def mutated(self, payload: bytes) -> bytes:
        """Return bytes changed in up to four places."""
        changed = bytearray(payload)
        for _ in range(self._random.randint(1, 4)):
            self._mutate(changed)
        return bytes(changed)

    def _mutate(self, data: bytearray) -> None:
        at = self._random.randrange(len(data) + 1)
        width = self._random.choice([1, 1, 2, 4, 8, 30])
        change = self._random.randrange(6)
        if change == 0:
            data[at : at + width] = self._random.randbytes(width)
        elif change == 1:
            del data[at : at + width]
        elif change == 2:
            data[at:at] = data[at : at + width] * self._random.choice([1, 2, 50])
        elif change == 3:
            data[at : at + width] = b"\xff" * min(width, 8)
        elif change == 4:
            other = self._random.choice(self._payloads)
            start = self._random.randrange(len(other))
            data[at : at + width] = other[start : start + self._random.randrange(1, 60)]
        else:
            data[at:at] = encode(self.tree(1))

    def grafted(self, tree: object) -> object:
        """Return a tree in which some parts are others; what is around them stays well formed."""
        if self._random.random() < 0.12:
            return self._random.choice(SCALARS) if self._random.random() < 0.8 else self.tree(2)
        if isinstance(tree, list):
            return [self.grafted(part) for part in tree] + [LONG] * (self._random.random() < 0.02)
        if isinstance(tree, dict):
            return {key: self.grafted(part) for key, part in tree.items()}
        if isinstance(tree, Unfolded):
            return Ext(tree.code, encode(self.grafted(tree.tree)))
        return tree

    def tree(self, depth: int) -> object:
        """Return what msgspec writes: scalars, containers, and codes around what may or may not belong to them."""
        choice = self._random.random()
        if depth == 0 or choice < 0.25:
            return self._random.choice(SCALARS) if self._random.random() < 0.8 else self._random.choice(self._names)
        if choice < 0.35:
            return [self.tree(depth - 1) for _ in range(self._random.randrange(4))]
        if choice < 0.45:
            return {self._word(): self.tree(depth - 1) for _ in range(self._random.randrange(3))}
        code = self._random.choice(CODES) if self._random.random() < 0.97 else self._random.randrange(-128, 128)
        if code >= tags.ENUM:
            return Ext(code, encode([self._name(), *self._parts(depth)]))
        if self._random.random() < 0.2:
            return Ext(code, self._random.choice([b"", b"\x01", b"1e99999999", b"a" * 16, self._random.randbytes(9)]))
        return Ext(code, encode([self.tree(depth - 1) for _ in range(self._random.choice([0, 1, 2, 2, 3, 4]))]))

    def _parts(self, depth: int) -> list[object]:
        shapes: list[list[object]] = [
            [],
            [self.tree(depth - 1)],
            [{self._word(): self.tree(depth - 1)}],
            [{self._word(): self.tree(depth - 1)}, {self._word(): self.tree(depth - 1)}],
            [[self.tree(depth - 1), self.tree(depth - 1)]],
            [{"a": 1, "x": 1}, True, [{self._word(): 1}], [self.tree(depth - 1)], {self._word(): 1}, [self._word()]],
        ]
        parts = self._random.choice(shapes)
        if parts and self._random.random() < 0.4:
            parts[self._random.randrange(len(parts))] = self._random.choice(SCALARS)
        return parts

    def _word(self) -> str:
        return self._random.choice(["a", "x", "b", "item", "name", "root", "__class__", "__dict__", "__init__", "y"])

    def _name(self) -> str:
        return self._random.choice(self._names) if self._random.random() < 0.9 else "os:system"


class Unfolded(NamedTuple):
    """An extension whose payload is MessagePack itself."""

    code: int
    tree: object


def unfolded(payload: bytes | memoryview) -> object:
    """Return what a payload consists of, extensions within extensions taken apart."""
    return decode(payload, ext_hook=_unfold)


def _unfold(code: int, data: memoryview) -> object:
    try:
        return Unfolded(code, unfolded(data))
    except (DecodeError, TypeError):  # it is raw, or has keys that a dict cannot hold once taken apart
        return Ext(code, bytes(data))


def _payloads(serializer: Serializer) -> list[bytes]:
    found: list[bytes] = []
    for value in SAMPLES.values():
        try:
            kind, data = serializer.dumps_typed([value])
        except SerializationError:
            continue
        if kind == "msgpack":
            found.append(data[4:])
    return found
