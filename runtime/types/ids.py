"""Identifiers: checkpoints (UUIDv6, ordered), tasks and interrupts (deterministic hashes)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from xxhash import xxh3_128_digest

from runtime.interrupts import interrupt_id

_GREGORIAN_OFFSET: Final = 0x01B21DD213814000
"""100 ns ticks from 1582-10-15 to 1970-01-01 (RFC 9562)."""


class _Node:
    """The random node of this process, multicast bit set as RFC 9562 asks of random nodes.

    A process that was forked has another than the one it comes from: two that go on from one checkpoint, with a clock
    that is behind it, would otherwise both mint the id that follows it.
    """

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Be another."""
        self.text = f"{int.from_bytes(os.urandom(6)) | 0x010000000000:012x}"


_NODE: Final = _Node()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_NODE.renew)


class CheckpointIds:
    """Mints checkpoint ids: time first, strictly increasing in this process and past any given parent.

    A clock that ties or steps back moves the id on by one tick, so the greatest id is always the newest.
    """

    __slots__ = ("_last", "_now")

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now = now_ns
        self._last = 0

    def mint(self, step: int, parent: str | None = None) -> str:
        """Return a new id; ``step`` fills the clock sequence, where LangGraph shows it too."""
        ticks = self._now() // 100 + _GREGORIAN_OFFSET
        if ticks <= self._last:
            ticks = self._last + 1
        minted = _text(ticks, step)
        if parent is not None and minted <= parent:
            ticks = max(ticks, ticks_of(parent) + 1)
            minted = _text(ticks, step)
        self._last = ticks
        return minted


IDS: Final = CheckpointIds()
"""Shared by the process, so that ids are ordered across its runs."""


def _text(ticks: int, step: int) -> str:
    text = f"{ticks:015x}"
    return f"{text[:8]}-{text[8:12]}-6{text[12:]}-{0x8000 | (step & 0x3FFF):04x}-{_NODE.text}"


class _Clock:
    """Formats the time, keeping the part that changes once a second."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known = (-1, "")
        """A second and its text, replaced as one: runs of several threads ask."""

    def __call__(self) -> str:
        second, micros = divmod(time.time_ns() // 1000, 1_000_000)
        known, head = self._known
        if second != known:
            head = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._known = (second, head)
        return f"{head}.{micros:06d}+00:00"


utc_now = _Clock()
"""Return the time as ISO 8601, UTC, with microseconds."""


def ticks_of(checkpoint_id: str) -> int:
    """Return the 100 ns ticks of a UUIDv6 text; 0 for an id of another form, which then orders nothing."""
    if len(checkpoint_id) != 36 or checkpoint_id[14] != "6":  # noqa: PLR2004 - UUID text
        return 0
    try:
        return int(checkpoint_id[:8] + checkpoint_id[9:13] + checkpoint_id[15:18], 16)
    except ValueError:
        return 0


def task_id(checkpoint_id: str, ns: str, step: int, name: str, kind: str, *discriminator: str) -> str:
    """Return the id of one execution of a node: the same checkpoint and graph always give the same id.

    128-bit xxh3 over checkpoint id bytes, task namespace, step, node, kind and discriminator (sorted trigger channels
    for a task that the state triggered, the index for a Send), printed as a UUID.
    """
    digest = xxh3_128_digest(
        _id_bytes(checkpoint_id) + "".join((ns, str(step), name, kind, *discriminator)).encode("utf-8", "surrogatepass")
    ).hex()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def aside_id(task_ns: str, number: int) -> str:
    """Return the id of a question that a task asks at once with others: they have a numbering of their own."""
    return interrupt_id(f"{task_ns}|aside", number)


def _id_bytes(checkpoint_id: str) -> bytes:
    try:
        return bytes.fromhex(checkpoint_id.replace("-", ""))
    except ValueError:
        return checkpoint_id.encode("utf-8", "surrogatepass")
