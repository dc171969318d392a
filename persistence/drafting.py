"""New checkpoints, their ids and their metadata, for savers of third parties and the tools around them.

The runtime makes its own (``runtime.engine.checkpointing``); these are LangGraph's functions for whoever writes to a
saver by hand.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol
from uuid import UUID

from persistence.contracts.checkpoint import CHECKPOINT_FORMAT, EXCLUDED_METADATA_KEYS, Checkpoint, CheckpointMetadata
from persistence.errors import EmptyChannelError

_GREGORIAN_OFFSET: Final = 0x01B21DD213814000
"""100 ns ticks from 1582-10-15 to 1970-01-01 (RFC 9562)."""
_UUID_VERSION: Final = 6
_UUID_VARIANT: Final = 0x8000
_SEQUENCE_BITS: Final = 0x3FFF
_NODE_BITS: Final = 0xFFFFFFFFFFFF
_MULTICAST: Final = 0x010000000000
"""What RFC 9562 asks of a node that is random."""


class Cell(Protocol):
    """A channel, as far as a checkpoint is made of it."""

    def checkpoint(self) -> Any:
        """Return what to store."""
        ...

    def is_available(self) -> bool:
        """Tell whether there is a value."""
        ...


class _Ticks:
    """The clock of the ids: each tick is handed out once in this process, in order."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Return a tick after all others."""
        self._last = max(time.time_ns() // 100 + _GREGORIAN_OFFSET, self._last + 1)
        return self._last


_TICKS: Final = _Ticks()


def uuid6(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """Return an id that sorts by time, after those that this function returned before in this process.

    ``node`` and ``clock_seq`` fill its last 48 and the 14 bits before them; random where they are left out.
    """
    if node is None:
        node = int.from_bytes(os.urandom(6)) | _MULTICAST
    if clock_seq is None:
        clock_seq = int.from_bytes(os.urandom(2))
    ticks = _TICKS.next()
    high = (ticks >> 12) << 16 | _UUID_VERSION << 12 | ticks & 0xFFF
    low = (_UUID_VARIANT | clock_seq & _SEQUENCE_BITS) << 48 | node & _NODE_BITS
    return UUID(int=high << 64 | low)


def empty_checkpoint() -> Checkpoint:
    """Return the checkpoint of a thread before its first one."""
    return Checkpoint(
        v=CHECKPOINT_FORMAT,
        id=str(uuid6(clock_seq=-2)),
        ts=_now(),
        channel_values={},
        channel_versions={},
        versions_seen={},
        updated_channels=None,
    )


def create_checkpoint(
    checkpoint: Checkpoint,
    channels: Mapping[str, Cell] | None,
    step: int,
    *,
    id: str | None = None,  # noqa: A002 - LangGraph's public name
) -> Checkpoint:
    """Return the checkpoint that follows one: a new id and time, the values that the channels hold now.

    Without channels the values stay; channels that hold nothing are left out.
    """
    return Checkpoint(
        v=CHECKPOINT_FORMAT,
        id=id or str(uuid6(clock_seq=step)),
        ts=_now(),
        channel_values=dict(checkpoint["channel_values"]) if channels is None else _values(channels),
        channel_versions=dict(checkpoint["channel_versions"]),
        versions_seen={name: dict(seen) for name, seen in checkpoint["versions_seen"].items()},
        updated_channels=None,
    )


def copy_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """Return a copy whose parts can be changed; the values themselves are the same objects."""
    updated = checkpoint.get("updated_channels")
    copied: Checkpoint = {
        **checkpoint,
        "channel_values": dict(checkpoint["channel_values"]),
        "channel_versions": dict(checkpoint["channel_versions"]),
        "versions_seen": {name: dict(seen) for name, seen in checkpoint["versions_seen"].items()},
        "updated_channels": None if updated is None else list(updated),
    }
    return copied


def get_checkpoint_metadata(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> CheckpointMetadata:
    """Return the metadata to store: what is given, then plain values of the config, its ``metadata`` first.

    What is given wins. NUL characters are taken out of texts, which databases cannot keep.
    """
    found = {name: _without_nul(value) for name, value in metadata.items()}
    for part in (config.get("metadata"), config.get("configurable")):
        for name, value in (part or {}).items():
            if name not in found and _belongs(name, value):
                found[name] = _without_nul(value)
    return found  # type: ignore[return-value]


def get_serializable_checkpoint_metadata(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> CheckpointMetadata:
    """Return the same without ``writes``, which older checkpoints had there and which may hold anything."""
    found: dict[str, Any] = dict(get_checkpoint_metadata(config, metadata))
    found.pop("writes", None)
    return found  # type: ignore[return-value]


def _values(channels: Mapping[str, Cell]) -> dict[str, Any]:
    found = {}
    for name, channel in channels.items():
        try:
            if channel.is_available():
                found[name] = channel.checkpoint()
        except EmptyChannelError:  # how a channel of LangGraph's kind says so
            continue
    return found


def _belongs(name: str, value: object) -> bool:
    return name not in EXCLUDED_METADATA_KEYS and not name.startswith("__") and isinstance(value, str | int | float)


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


def _now() -> str:
    return datetime.now(UTC).isoformat()
