"""What a checkpoint is: the records that runtime and savers exchange.

The shapes follow LangGraph's persistence model (checkpoint format 4), so that tools written for it can read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypedDict

if TYPE_CHECKING:
    from persistence.contracts.lease import Lease

EXCLUDED_METADATA_KEYS: Final = frozenset(
    {
        "thread_id",
        "checkpoint_id",
        "checkpoint_ns",
        "checkpoint_map",
        "langgraph_step",
        "langgraph_node",
        "langgraph_triggers",
        "langgraph_path",
        "langgraph_checkpoint_ns",
    }
)
"""What a config holds that does not belong into a checkpoint's metadata: its row tells it already."""

CHECKPOINT_FORMAT = 4

NULL_TASK_ID = "00000000-0000-0000-0000-000000000000"
"""Owner of writes that no task made (a Command given as input)."""

# Special channels of pending writes; visible in stored rows.
ERROR = "__error__"
SCHEDULED = "__scheduled__"
INTERRUPT = "__interrupt__"
RESUME = "__resume__"
ERROR_SOURCE_NODE = "__error_source_node__"
NO_WRITES = "__no_writes__"
RETURN = "__return__"
TASKS = "__pregel_tasks"

WRITES_IDX_MAP: Mapping[str, int] = {ERROR: -1, SCHEDULED: -2, INTERRUPT: -3, RESUME: -4}
"""Row index of the special channels. Their rows are upserted; all other rows keep the first value written."""


class Checkpoint(TypedDict):
    """State of one (thread, namespace) at a superstep boundary."""

    v: int
    id: str
    """UUIDv6 text: sorts by time, strictly increasing along a branch."""
    ts: str
    """UTC, ISO 8601."""
    channel_values: dict[str, Any]
    channel_versions: dict[str, Any]
    versions_seen: dict[str, dict[str, Any]]
    updated_channels: list[str] | None


class CheckpointMetadata(TypedDict, total=False):
    """Facts about a checkpoint; any further scalar keys come from the run's config."""

    source: str
    """``input``, ``loop``, ``update`` or ``fork``."""
    step: int
    """-1 for the first input, then +1 per checkpoint along the branch."""
    parents: dict[str, str]
    """Ancestor namespace to checkpoint id; empty at the root."""
    run_id: str


PendingWrite = tuple[str, str, Any]
"""(task id, channel, value)"""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stored version of an append-only channel that later additions can build on."""

    index: int
    """How many additions were made since the channel's last full value."""
    version: str
    length: int
    """Length of the value at that version."""


class _Surroundings(NamedTuple):
    config: dict[str, Any]
    checkpoint: Checkpoint
    metadata: dict[str, Any]
    parent_config: dict[str, Any] | None = None
    pending_writes: list[PendingWrite] | None = None


class CheckpointTuple(_Surroundings):
    """A checkpoint with its surroundings, as a saver returns it: five fields, as programs unpack it."""

    lineage: Mapping[str, tuple[Mark, ...]] | None
    """Per growing channel, oldest first: the marks that its stored value rests on, itself last. No field."""

    def __new__(
        cls,
        config: dict[str, Any],
        checkpoint: Checkpoint,
        metadata: dict[str, Any],
        parent_config: dict[str, Any] | None = None,
        pending_writes: list[PendingWrite] | None = None,
        lineage: Mapping[str, tuple[Mark, ...]] | None = None,
    ) -> Self:
        """Take the fields, and what the stored values rest on."""
        made = super().__new__(cls, config, checkpoint, metadata, parent_config, pending_writes)
        made.lineage = lineage
        return made

    def _replace(self, **changes: Any) -> Self:
        return type(self)(**{**self._asdict(), "lineage": self.lineage, **changes})


@dataclass(frozen=True, slots=True)
class Addition:
    """What a growing channel gained; stored instead of its whole value.

    Items of a list or text follow what is there; those of a dict are merged into it. ``base`` names the mark that they
    follow; it need not be the preceding version, so that a value is read back from a number of rows that grows with the
    logarithm of its age (see engine/checkpointing).
    """

    base: Mark
    index: int
    items: list[Any] | str | dict[Any, Any]


class TaskWrites(NamedTuple):
    """What one task wrote, recorded against the checkpoint its superstep started from."""

    checkpoint_id: str
    task_id: str
    task_path: str
    writes: Sequence[tuple[str, Any]]


@dataclass(slots=True)
class Unit:
    """What becomes durable together: in one transaction, after every unit of the thread sent before it.

    ``checkpoint`` may be None (writes only). ``changed`` holds the channels whose version moved since the parent was
    stored, each with its whole value or an Addition; a channel that was emptied is left out of it.
    ``checkpoint["channel_values"]`` holds every current value: savers keep small primitives inside the checkpoint
    itself and tell an empty channel from a lost one by it.
    """

    thread_id: str
    checkpoint_ns: str
    writes: list[TaskWrites] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    parent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, Any] = field(default_factory=dict)
    lineage: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict)
    """Every growing channel, changed or not: the marks its value rests on, oldest first, its own version last.

    The first mark is a whole value (index 0), each later one an Addition to the mark before it.
    """
    expected_head: str | None = None
    """If given, the newest checkpoint that the thread and namespace must have for ``checkpoint`` to be stored.

    ``""`` means that there must be none. Otherwise the unit fails with CheckpointConflictError: another process moved
    the thread on. Checked inside the transaction; None stores it whatever is there.
    """
    lease: Lease | None = None
    """The run's lease of the thread, where the saver keeps leases; without it, or in time, the unit is refused."""
    based: bool = False
    """Whether the checkpoints that ``writes`` are recorded against must be there; likewise.

    So what a task wrote does not outlive its thread, where no lease tells that the thread was deleted.
    """
    anchor: tuple[str, str] | None = None
    """Namespace and id of another checkpoint of the thread, which must be there for ``checkpoint`` to be stored.

    Likewise: what a run stores first in a namespace follows no head, or one that it has just found, and would begin
    anew what was deleted, or add to what others have begun. An id of ``""`` means that the namespace must have none.
    """
