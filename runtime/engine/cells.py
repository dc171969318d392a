"""The live state of one run in one namespace: channels, their versions, and what storage does not have yet."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from persistence.errors import CorruptDataError
from runtime.channels import MISSING
from runtime.engine.checkpointing import tracked, without
from runtime.errors import OrphanedTaskError
from runtime.types.constants import START, TASKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from persistence.contracts.checkpoint import Checkpoint, Mark
    from runtime.channels import BaseChannel
    from runtime.engine.plan import Plan

_TRIGGER = "branch:to:"
_INTERNAL = ("branch:", "join:", "__")
_DIGITS = 64
"""Of a version's number: more than anybody counts, and than other runtimes fill up with zeros."""


class Cells:
    """Channels with their versions. Trigger channels exist only while they hold something.

    ``versions`` and ``seen`` forget emptied triggers: an empty channel starts nothing, and its next value gets a newer
    version, so the entry could never matter again. That keeps a checkpoint as small as the state, however many nodes
    the graph has.
    """

    __slots__ = (
        "changed",
        "channels",
        "count",
        "deferred",
        "lineage",
        "plan",
        "salt",
        "seen",
        "stored",
        "triggered",
        "updated",
        "versions",
        "volatile",
    )

    def __init__(self, plan: Plan, salt: str) -> None:
        self.plan = plan
        self.salt = salt
        """Makes this run's versions different from those that another branch gives the same channel."""
        self.count = 0
        """Number of the newest version."""
        self.channels: dict[str, BaseChannel[Any, Any]] = {}
        self.versions: dict[str, Any] = {}
        self.seen: dict[str, dict[str, Any]] = {}
        self.updated: set[str] | None = None
        """Channels that the last superstep changed and that hold a value; None: not known."""
        self.triggered: set[str] = set()
        """Trigger channels that were written in the last superstep; they have no channel object."""
        self.volatile: set[str] = set()
        """Channels that a superstep without a write to them clears."""
        self.deferred: set[str] = set()
        """Channels that wait for the end of the run."""
        self.stored: dict[str, Any] = {}
        """Value of every channel that a checkpoint would keep."""
        self.changed: set[str] = set()
        """Channels whose version storage does not have yet."""
        self.lineage: dict[str, tuple[Mark, ...]] = {}
        for key, template in plan.state.items():
            self.place(key, template.fresh())

    def place(self, key: str, channel: BaseChannel[Any, Any]) -> None:
        """Hold this channel under its name."""
        self.channels[key] = channel
        if channel.volatile:
            self.volatile.add(key)
        if channel.deferred:
            self.deferred.add(key)

    def trigger(self, fired: set[str], version: str, *, bump: bool) -> None:
        """Note which trigger channels were written; when time passes, the others are cleared."""
        stored, versions = self.stored, self.versions
        if bump:
            for key in self.triggered:
                if key not in fired:
                    del stored[key], versions[key]
                    self.changed.discard(key)
            self.triggered = fired
        else:
            self.triggered |= fired
        for key in fired:
            stored[key] = None
            versions[key] = version
        self.changed |= fired

    def touch(self, key: str, channel: BaseChannel[Any, Any], version: str) -> None:
        """Note that a channel changed."""
        value = channel.checkpoint() if channel.stored else MISSING
        if value is not MISSING:
            if self.plan.untracked:
                value = _tracked(key, value, self.plan.untracked)
            self.stored[key] = value
            self.versions[key] = version
            self.changed.add(key)
            return
        self.stored.pop(key, None)
        self.changed.discard(key)
        self.lineage.pop(key, None)
        if key in self.plan.state:
            self.versions[key] = version
        else:
            self.forget(key)

    def forget(self, key: str) -> None:
        """Drop an emptied trigger."""
        self.channels.pop(key, None)
        self.versions.pop(key, None)
        self.volatile.discard(key)
        self.deferred.discard(key)

    def next_version(self) -> str:
        """Return the version for everything that this superstep changes."""
        self.count += 1
        return f"{self.count:08d}.{self.salt}"

    def peek(self, key: str) -> Any:
        """Return a channel's value, or MISSING."""
        if key in self.triggered:
            return None
        channel = self.channels.get(key)
        return MISSING if channel is None else channel.peek()

    def restore(
        self, checkpoint: Checkpoint, lineage: Mapping[str, tuple[Mark, ...]] | None, *, reading: bool = False
    ) -> list[str]:
        """Take over a stored checkpoint.

        Raises CorruptDataError for a value that its channel does not take, and OrphanedTaskError for work that no node
        of this graph can do; when only ``reading``, leaves that out and returns the names of those nodes.
        """
        orphans = []
        values = checkpoint["channel_values"]
        aliases = self.plan.aliases
        for key, value in values.items():
            name = _aliased(key, aliases)
            if name in self.plan.triggers:
                self.triggered.add(name)
                self.stored[name] = None
                continue
            template = self.plan.template(name)
            if template is None:
                if name.startswith(_TRIGGER):
                    orphans.append(name.removeprefix(_TRIGGER))
                if not name.startswith(_INTERNAL):  # a state key of another graph, or of this one as it was: kept
                    self.stored[name] = value
                continue
            try:
                self.place(name, template.from_checkpoint(value))
            except Exception as error:
                raise _misfit(checkpoint["id"], name, template, error) from error
            self.stored[name] = value
        for key, version in checkpoint["channel_versions"].items():
            self.versions[_aliased(key, aliases)] = version
            self.count = max(self.count, version_number(version))
        self.seen = {
            aliases.get(node, node): {_aliased(key, aliases): version for key, version in seen.items()}
            for node, seen in checkpoint["versions_seen"].items()
        }
        updated = checkpoint.get("updated_channels")
        self.updated = None if updated is None else {_aliased(key, aliases) for key in updated}
        self.changed.clear()
        self.lineage = dict(lineage) if lineage else {}
        lost = [send for send in self.peek(TASKS) or () if not self._has(send.node)]
        orphans += [send.node for send in lost]
        if orphans and not reading:
            raise orphaned(orphans[0], self.plan)
        if lost:
            self.channels[TASKS] = self.channels[TASKS].from_checkpoint(
                [send for send in self.peek(TASKS) if send not in lost]
            )
        return orphans

    def _has(self, node: str) -> bool:
        return self.plan.aliases.get(node, node) in self.plan.nodes


def _tracked(key: str, value: Any, untracked: frozenset[str]) -> Any:
    """Return what is stored of a channel: of Sends and a run's input what is tracked."""
    if key == TASKS:
        return [tracked(send, untracked) for send in value]
    return without(value, untracked) if key == START and isinstance(value, dict) else value


def orphaned(node: str, plan: Plan) -> OrphanedTaskError:
    """Return the error for saved work of a node that is gone."""
    msg = (
        f"The thread has pending work for node {node!r}, which graph {plan.name!r} does not have "
        f"(its nodes: {', '.join(n for n in plan.nodes if n != START)}). "
        f"Compile with node_aliases={{{node!r}: '<new name>'}} to hand it on."
    )
    return OrphanedTaskError(msg)


def version_number(version: Any) -> int:
    """Return the counting part of a version of any known form (int, float, ``n.salt``)."""
    if isinstance(version, str):
        head = version.partition(".")[0]
        return int(head) if head.isdecimal() and len(head) <= _DIGITS else 0
    return int(version) if isfinite(version) else 0


def _misfit(checkpoint_id: str, name: str, template: BaseChannel[Any, Any], error: Exception) -> CorruptDataError:
    """Return the error for a stored value that its channel does not take."""
    fault = CorruptDataError(
        f"Checkpoint {checkpoint_id}: what is stored for channel {name!r} does not fit a {type(template).__name__} "
        f"({type(error).__name__}: {error!s:.200}). The graph's schema has changed since, or something else wrote it."
    )
    fault.checkpoint_id = checkpoint_id
    return fault


def _aliased(key: str, aliases: Mapping[str, str]) -> str:
    if aliases and key.startswith(_TRIGGER):
        old = key.removeprefix(_TRIGGER)
        return _TRIGGER + aliases.get(old, old)
    return key
