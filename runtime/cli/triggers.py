"""What a stored checkpoint tells of the graph that made it: which channels steer it, and which nodes are due.

An approximation, for readers who do not have the graph: it knows the names of steering channels, not their rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime.cli.unregistered import Unregistered
from runtime.types.constants import START, TASKS, branch_to

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import Checkpoint

_BRANCH: Final = branch_to("")
_JOIN: Final = "join:"


def is_state(channel: str) -> bool:
    """Tell whether a channel is a key of the state, and not one that steers the graph."""
    return not channel.startswith((_BRANCH, _JOIN, "__"))


def task_name(path: str) -> str:
    """Return the node of a stored task path; of a Send, only its number is stored there."""
    kind, _, name = path.removeprefix("~").partition(", ")
    return name if kind == "__pregel_pull" else f"Send {name.lstrip('0') or '0'}" if name else kind or "?"


def due_nodes(checkpoint: Checkpoint) -> list[str]:
    """Return the nodes that a checkpoint makes due."""
    values, versions, seen = (
        checkpoint["channel_values"],
        checkpoint["channel_versions"],
        checkpoint["versions_seen"],
    )
    due: list[str] = []
    for channel, value in values.items():
        if channel == TASKS:
            due += [_send_target(send) for send in value]
            continue
        node = _node_after(channel, value)
        if node is not None and versions.get(channel) != seen.get(node, {}).get(channel):
            due.append(node)
    return sorted(set(due), key=due.index)


def _node_after(channel: str, value: Any) -> str | None:
    """Return the node that a channel triggers now."""
    if channel == START:
        return START
    if channel.startswith(_BRANCH):
        return channel.removeprefix(_BRANCH)
    if channel.startswith(_JOIN) and isinstance(value, (set, frozenset)):
        awaited, _, node = channel.removeprefix(_JOIN).rpartition(":")
        return node if set(awaited.split("+")) == value else None
    return None


def _send_target(send: Any) -> str:
    if isinstance(send, Unregistered) and isinstance(send.content, dict):
        return f"{send.content.get('node', '?')} (Send)"
    return f"{getattr(send, 'node', '?')} (Send)"
