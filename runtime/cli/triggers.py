"""What a stored checkpoint tells of the graph that made it: which channels steer it, and which nodes are due.

An approximation, for readers who do not have the graph: it knows the names of steering channels, not their rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime.cli.unregistered import Unregistered
from runtime.types.constants import PULL, PUSH, START, TASKS, branch_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.contracts.checkpoint import Checkpoint

_BRANCH: Final = branch_to("")
_JOIN: Final = "join:"


def is_state(channel: str) -> bool:
    """Tell whether a channel is a key of the state, and not one that steers the graph."""
    return not channel.startswith((_BRANCH, _JOIN, "__"))


def task_name(path: str, sent: Sequence[str] = ()) -> str:
    """Return the node of a stored task path; ``sent``: the nodes that the checkpoint's Sends go to, in their order.

    Of a Send only its number is stored in the path, of a call only its caller and its number.
    """
    kind, _, rest = path.removeprefix("~").partition(", ")
    if kind == PULL:
        return rest
    if kind != PUSH or not rest:
        return kind or "?"
    if rest.startswith("~"):
        caller, number, *_ = [*rest.rsplit(", ", 2), "?"]
        return f"call {_number(number)} of {task_name(caller, sent)}"
    number = _number(rest.partition(", ")[0])
    known = number.isdecimal() and int(number) < len(sent)
    return f"{sent[int(number)]} (Send {number})" if known else f"Send {number}"


def node_of(path: str, sent: Sequence[str]) -> str | None:
    """Return the node that a stored task path is of; None for a call, whose function is not stored."""
    kind, _, rest = path.removeprefix("~").partition(", ")
    if kind == PULL:
        return rest
    number = _number(rest.partition(", ")[0])
    return sent[int(number)] if kind == PUSH and number.isdecimal() and int(number) < len(sent) else None


def _number(text: str) -> str:
    return text.lstrip("0") or "0"


def is_numbered(path: str) -> bool:
    """Tell whether a task's path says no more of its node than the number of a Send."""
    return path.startswith(f"~{PUSH}")


def sent_nodes(checkpoint: Checkpoint) -> list[str]:
    """Return the nodes that a checkpoint's Sends go to, in the order of their numbers."""
    sends = checkpoint["channel_values"].get(TASKS)
    return [_send_target(send) for send in sends] if isinstance(sends, (list, tuple)) else []


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
            due += [f"{node} (Send)" for node in sent_nodes(checkpoint)]
            continue
        node = _node_after(channel, value)
        if node is not None and versions.get(channel) != seen.get(node, {}).get(channel):
            due.append(node)
    return sorted(set(due), key=due.index)


def triggered(channels: Sequence[str]) -> list[str]:
    """Return the nodes that channels are there to start, told by the channels' names.

    A join may wait for some of its nodes yet, which its name does not tell: it has a question mark.
    """
    found: list[str] = []
    for channel in channels:
        if channel == TASKS:
            found.append("Sends")
        elif channel == START:
            found.append(START)
        elif channel.startswith(_BRANCH):
            found.append(channel.removeprefix(_BRANCH))
        elif channel.startswith(_JOIN):
            found.append(f"{channel.rpartition(':')[2]}?")
    return found


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
        return str(send.content.get("node", "?"))
    return str(getattr(send, "node", "?"))
