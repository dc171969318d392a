"""Ranking by cosine similarity: exact, by looking at every vector. With numpy if it is installed, without it if not."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from importlib.util import find_spec
from operator import mul
from typing import Final

from persistence.contracts.store import Vector
from persistence.errors import CorruptDataError

FLOAT_BYTES: Final = 4
CHUNK_BYTES: Final = 4 * 1024 * 1024
"""Vectors that are compared at once: few enough for the memory, enough to make the calls worth their cost."""

DECIMALS: Final = 6
"""What a score is rounded to: more than that is noise of single precision, and would order equal texts by chance."""

HAS_NUMPY: Final = find_spec("numpy") is not None


def packed(vector: Vector, dims: int) -> bytes:
    """Return a vector at length one, in single precision; a zero vector stays one.

    Raises:
        ValueError: It has another number of dimensions, or one that is not finite.
    """
    numbers = [float(number) for number in vector]
    if len(numbers) != dims:
        message = f"The embedding has {len(numbers)} dimensions, the store's index {dims}: set dims to what it makes."
        raise ValueError(message)
    length = math.hypot(*numbers)
    if not math.isfinite(length):
        message = "The embedding holds a number that is not finite."
        raise ValueError(message)
    return struct.pack(f"<{dims}f", *(number / length if length else 0.0 for number in numbers))


class Ranking:
    """Collects items with their vectors, and orders them by their best likeness to a query."""

    def __init__(self, query: bytes, *, with_numpy: bool = HAS_NUMPY) -> None:
        """Take the packed query."""
        self._query = query
        self._likeness = _with_numpy if with_numpy else _in_python
        self._scored: list[tuple[float, int]] = []
        self._unscored: list[int] = []
        self._numbers: list[int] = []
        self._vectors: list[bytes] = []
        self._bytes = 0

    def add(self, number: int, vectors: bytes | None) -> None:
        """Take an item: its number, and its packed vectors one after the other; None if it is not indexed."""
        if not vectors:
            self._unscored.append(number)
            return
        if len(vectors) % len(self._query):
            message = f"The stored vectors of item {number} are {len(vectors)} bytes long: damaged. Put it again."
            raise CorruptDataError(message)
        self._numbers.append(number)
        self._vectors.append(vectors)
        self._bytes += len(vectors)
        if self._bytes >= CHUNK_BYTES:
            self._score()

    def ordered(self) -> list[tuple[int, float | None]]:
        """Return every item with its score: best first, of equals the lower number; those without a score last."""
        self._score()
        self._scored.sort()
        scored: list[tuple[int, float | None]] = [(number, -score + 0.0) for score, number in self._scored]
        return scored + [(number, None) for number in sorted(self._unscored)]

    def _score(self) -> None:
        if self._numbers:
            found = self._likeness(self._vectors, self._query)
            negated = (-round(score, DECIMALS) for score in found)
            self._scored.extend(zip(negated, self._numbers, strict=True))
            self._numbers, self._vectors, self._bytes = [], [], 0


def _in_python(items: Sequence[bytes], query: bytes) -> list[float]:
    """Return for each item the greatest product of one of its vectors with the query."""
    shape = struct.Struct(f"<{len(query) // FLOAT_BYTES}f")
    wanted = shape.unpack(query)
    return [max(_number(sum(map(mul, vector, wanted))) for vector in shape.iter_unpack(item)) for item in items]


def _number(product: float) -> float:
    """Return a product that can be compared: vectors that were damaged may have none."""
    return 0.0 if math.isnan(product) else product


def _with_numpy(items: Sequence[bytes], query: bytes) -> list[float]:
    import numpy as np  # noqa: PLC0415 - optional package

    size = len(query)
    vectors = np.frombuffer(b"".join(items), "<f4").reshape(-1, size // FLOAT_BYTES)
    with np.errstate(all="ignore"):  # vectors that were damaged may be of any length
        products = np.nan_to_num(vectors @ np.frombuffer(query, "<f4"))
    counts = np.array([len(item) // size for item in items])
    best: list[float] = np.maximum.reduceat(products, np.cumsum(counts) - counts).tolist()
    return best
