"""What savers of third parties are made of: the base class with a serialiser, and the records that they handle.

LangGraph's names: a saver that was written for it moves over by its imports. It may have async methods, or blocking
ones alone, which the runtime calls in worker threads.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping
from typing import Any, Generic

from typing_extensions import TypeVar

from persistence.contracts.checkpoint import (
    CHECKPOINT_FORMAT,
    ERROR,
    EXCLUDED_METADATA_KEYS,
    INTERRUPT,
    RESUME,
    SCHEDULED,
    TASKS,
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
)
from persistence.contracts.saver import BaseCheckpointSaver as SaverContract
from persistence.drafting import (
    copy_checkpoint,
    create_checkpoint,
    empty_checkpoint,
    get_checkpoint_metadata,
    get_serializable_checkpoint_metadata,
    uuid6,
)
from persistence.errors import EmptyChannelError
from persistence.serde.serializer import Serializer

__all__ = [
    "ERROR",
    "EXCLUDED_METADATA_KEYS",
    "INTERRUPT",
    "LATEST_VERSION",
    "RESUME",
    "SCHEDULED",
    "TASKS",
    "WRITES_IDX_MAP",
    "BaseCheckpointSaver",
    "ChannelVersions",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "EmptyChannelError",
    "PendingWrite",
    "copy_checkpoint",
    "create_checkpoint",
    "empty_checkpoint",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
    "get_serializable_checkpoint_metadata",
    "uuid6",
]

VersionT = TypeVar("VersionT", default=Any)
"""Of what kind a saver's channel versions are."""

LATEST_VERSION = CHECKPOINT_FORMAT
"""Of the form of checkpoints."""

ChannelVersions = dict[str, Any]
"""Channel to version; versions of one channel can be compared."""


class BaseCheckpointSaver(SaverContract, Generic[VersionT], metaclass=ABCMeta):
    """Keeps the checkpoints and pending writes of threads; see the methods.

    Every saver of this project counts as an instance of it, for programs that ask.
    """

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return True if cls is BaseCheckpointSaver and issubclass(other, SaverContract) else NotImplemented

    def __init__(self, *, serde: Any = None) -> None:
        """Take what turns values into bytes: ``self.serde.dumps_typed(value)``, ``loads_typed``; safe by default."""
        self.serde: Any = Serializer() if serde is None else serde

    def get(self, config: Mapping[str, Any]) -> Checkpoint | None:
        """Return the addressed checkpoint alone, or the thread's newest one, by the saver's blocking ``get_tuple``."""
        read: Any = getattr(self, "get_tuple", None)
        if read is None:
            raise self._lacks("get_tuple")
        found: CheckpointTuple | None = read(config)
        return None if found is None else found.checkpoint


def get_checkpoint_id(config: Mapping[str, Any]) -> str | None:
    """Return the id of the checkpoint that a config addresses; None: the thread's newest."""
    found: str | None = config["configurable"].get("checkpoint_id")
    return found
