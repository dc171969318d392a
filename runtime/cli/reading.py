"""``threads``, ``history`` and ``show``: look into a database, without a graph and without changing it.

They ask one query after the other, without a saver and without an event loop of their own.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.checkpoint import ERROR, INTERRUPT, NULL_TASK_ID
from persistence.contracts.listing import is_unclear
from runtime.cli.databases import look_into, named
from runtime.cli.failing import CommandError
from runtime.cli.lanes import lanes
from runtime.cli.plain import in_words, visible
from runtime.cli.showing import ID_WIDTH, Column, counted, moment, size
from runtime.cli.standing import outcomes_of, status_of
from runtime.cli.triggers import due_nodes, is_numbered, is_state, sent_nodes, task_name
from runtime.cli.unregistered import ShowingSerializer
from runtime.types.constants import END, PREVIOUS, START

if TYPE_CHECKING:
    import argparse

    from persistence.contracts.checkpoint import CheckpointTuple
    from persistence.contracts.listing import CheckpointSummary, Listing, StoredCheckpoint, TaskSummary
    from runtime.cli.showing import Screen

_OF_WORKFLOWS: Final = {END: "result", PREVIOUS: "remembered"}
"""What a workflow's thread holds in place of a state, and how it is told."""

MOST_SHOWN: Final = 4000
"""Characters of one value on a terminal."""


# ---- threads -------------------------------------------------------------------------------------------------------


def threads(args: argparse.Namespace, screen: Screen) -> int:
    """List threads, the last active first."""
    with look_into(args.db) as listing:
        total = listing.thread_count()
        found = []
        shown = listing.threads(args.limit or None)
        with screen.progress("Reading sizes", len(shown) if args.bytes else None) as bar:
            for thread in shown:
                status, following = status_of(thread, listing)
                row = {
                    "thread": thread.thread_id,
                    "status": status,
                    "next": following,
                    "namespaces": thread.namespaces,
                    "checkpoints": thread.checkpoints,
                    "newest": _facts(thread.newest),
                }
                if args.bytes:
                    row["bytes"] = listing.thread_bytes(thread.thread_id)
                    bar.step()
                found.append(row)
    if args.json:
        screen.document({"db": named(args.db), "total": total, "threads": found})
        return 0
    columns = [
        Column("Thread", style="cyan"),
        Column("Status"),
        Column("NS", number=True),
        Column("Checkpoints", number=True),
        Column("Newest", width=ID_WIDTH),
    ]
    if args.bytes:
        columns.insert(4, Column("Bytes", number=True, whole=True))
    screen.table(columns, [_thread_row(row) for row in found])
    screen.say(_how_many(len(found), total, "thread"), "dim")
    return 0


def _thread_row(row: dict[str, Any]) -> list[object]:
    newest = row["newest"]
    where = f"\nin {newest['namespace']}" if newest["namespace"] else ""
    told = f"step {newest['step']}, {newest['source']}, {moment(newest['created_at'])}{where}"
    left = f"next: {', '.join('its input' if node == START else node for node in row['next'])}" if row["next"] else ""
    status = left if row["status"] == "unfinished" else "\n".join(filter(None, [row["status"], left]))
    cells: list[object] = [visible(row["thread"]), status, row["namespaces"], row["checkpoints"]]
    if "bytes" in row:
        cells.append(size(row["bytes"]))
    return [*cells, f"{newest['checkpoint_id']}\n{told}"]


def _facts(checkpoint: CheckpointSummary) -> dict[str, Any]:
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "namespace": checkpoint.checkpoint_ns,
        "parent_id": checkpoint.parent_id,
        "step": checkpoint.metadata.get("step"),
        "source": checkpoint.metadata.get("source"),
        "created_at": checkpoint.created_at,
    }


def _how_many(shown: int, total: int, noun: str) -> str:
    if shown < total:
        return f"The {shown:,} newest of {counted(total, noun)}; --limit 0 lists all. Times are in UTC."
    return f"{counted(total, noun)}. Times are in UTC."


# ---- history -------------------------------------------------------------------------------------------------------


def history(args: argparse.Namespace, screen: Screen) -> int:
    """List a thread's checkpoints, newest first, and what ran from each."""
    serializer = ShowingSerializer()
    with look_into(args.db) as listing:
        total = _checkpoint_count(listing, args)
        found = []
        for checkpoint in listing.checkpoints(args.thread, args.limit or None):
            address = (args.thread, checkpoint.checkpoint_ns, checkpoint.checkpoint_id)
            tasks = listing.tasks(*address)
            # Values are read only where the names of nodes are among them, or only they tell what became of a task.
            wanted = any(is_numbered(task.path) or is_unclear(task.outcome) for task in tasks)
            stored = listing.checkpoint(*address, serializer) if wanted else None
            sent = _sent(stored)
            if stored is not None:
                tasks = _clear(stored)
            found.append(
                _facts(checkpoint)
                | {"updated": [name for name in checkpoint.updated if is_state(name)], "metadata": checkpoint.metadata}
                | {"tasks": [_task_facts(task, sent) for task in tasks]}
            )
    if args.json:
        screen.document({"db": named(args.db), "thread": args.thread, "total": total, "checkpoints": found})
        return 0
    if args.graph:
        _draw_branches(found, screen)
        screen.say(_how_many(len(found), total, "checkpoint"), "dim")
        return 0
    branches = _branches(found)
    columns = [
        Column("Step", number=True),
        Column("Source"),
        Column("Checkpoint", width=ID_WIDTH, style="cyan"),
        Column("Time", whole=True),
        Column("Then ran"),
    ]
    screen.table(columns, [_checkpoint_row(row, branches) for row in found])
    screen.say(_how_many(len(found), total, "checkpoint"), "dim")
    return 0


def _checkpoint_row(row: dict[str, Any], branches: frozenset[str]) -> list[object]:
    name = row["checkpoint_id"]
    if row["namespace"]:
        name += f"\nin {row['namespace']}"
    if row["parent_id"] in branches:
        name += f"\nbranches off {row['parent_id']}"
    return [row["step"], row["source"], name, moment(row["created_at"]), _ran(row)]


def _ran(row: dict[str, Any]) -> str:
    return ", ".join(
        task["name"] if task["outcome"] == "done" else f"{task['name']} ({task['outcome']})" for task in row["tasks"]
    )


def _draw_branches(rows: list[dict[str, Any]], screen: Screen) -> None:
    """Show which checkpoint grew from which, in a picture for each namespace."""
    for namespace in sorted({row["namespace"] for row in rows}):
        if namespace:
            screen.title(f"In {namespace}")
        own = [row for row in rows if row["namespace"] == namespace]
        listed = {row["checkpoint_id"] for row in own}
        beside = list(
            lanes((row["checkpoint_id"], row["parent_id"] if row["parent_id"] in listed else None) for row in own)
        )
        width = max(len(line) for lane in beside for line in (*lane.joining, lane.mark))
        for row, lane in zip(own, beside, strict=True):
            for line in lane.joining:
                screen.drawn(line)
            parent = row["parent_id"]
            told = [_ran(row), "" if parent is None or parent in listed else f"(grew from {parent}, not listed)"]
            screen.drawn(
                f"{lane.mark:{width}} {row['step']!s:>4} {row['source']!s:6} ",
                row["checkpoint_id"],
                f" {moment(row['created_at'])} {' '.join(filter(None, told))}",
            )


def _branches(rows: list[dict[str, Any]]) -> frozenset[str]:
    """Return the checkpoints that more than one of the others grew from."""
    parents = [row["parent_id"] for row in rows if row["parent_id"] is not None]
    return frozenset(parent for parent in parents if parents.count(parent) > 1)


def _task_facts(task: TaskSummary, sent: list[str]) -> dict[str, Any]:
    return {"id": task.task_id, "name": task_name(task.path, sent), "outcome": task.outcome}


def _clear(stored: StoredCheckpoint) -> list[TaskSummary]:
    outcomes = outcomes_of(stored)
    return [task._replace(outcome=outcomes[task.task_id]) for task in stored.tasks]


def _sent(stored: StoredCheckpoint | None) -> list[str]:
    """Return the nodes that a checkpoint's Sends go to; none if it cannot be read."""
    return [] if stored is None or stored.found is None else sent_nodes(stored.found.checkpoint)


def _checkpoint_count(listing: Listing, args: argparse.Namespace) -> int:
    count = listing.checkpoint_count(args.thread)
    if not count:
        msg = f"There is no thread {args.thread!r} in {named(args.db)}."
        raise CommandError(msg, kind="ThreadNotFound", hint=f"List them: actorgraph threads --db {named(args.db)}")
    return count


# ---- show ----------------------------------------------------------------------------------------------------------


def show(args: argparse.Namespace, screen: Screen) -> int:
    """Show one checkpoint: its values, what comes next, and what was written against it."""
    with look_into(args.db) as listing:
        _checkpoint_count(listing, args)
        stored = listing.checkpoint(args.thread, args.namespace, args.checkpoint, ShowingSerializer())
    if stored is None:
        what = f"no checkpoint {args.checkpoint!r}" if args.checkpoint else "no checkpoint"
        where = f" in namespace {args.namespace!r}" if args.namespace else ""
        msg = f"Thread {args.thread!r} has {what}{where}."
        listed = shlex.join(["actorgraph", "history", args.thread, "--db", named(args.db)])
        raise CommandError(msg, kind="CheckpointNotFound", hint=f"List them: {listed}")
    found = _checkpoint_document(args, stored)
    if args.json:
        screen.document(found)
    else:
        _show_checkpoint(found, screen)
    return 1 if stored.damage else 0


def _checkpoint_document(args: argparse.Namespace, stored: StoredCheckpoint) -> dict[str, Any]:
    document = {
        "db": named(args.db),
        "thread": args.thread,
        **_facts(stored.summary),
        "metadata": stored.summary.metadata,
    }
    if stored.found is None:
        tasks = [_task_facts(task, []) for task in _clear(stored)]
        return {**document, "damage": stored.damage, "values": None, "next": None, "tasks": tasks}
    values = stored.found.checkpoint["channel_values"]
    document["values"] = {name: value for name, value in values.items() if is_state(name)}
    if START in values:
        document["input"] = values[START]
    document |= {told: values[channel] for channel, told in _OF_WORKFLOWS.items() if channel in values}
    document["next"] = due_nodes(stored.found.checkpoint)
    document["tasks"] = [_task_document(task, stored.found) for task in _clear(stored)]
    return document


def _task_document(task: TaskSummary, found: CheckpointTuple) -> dict[str, Any]:
    """Return a task with what it wrote; writes that only steer the graph are left out."""
    document = _task_facts(task, sent_nodes(found.checkpoint))
    if task.task_id == NULL_TASK_ID:
        document["name"] = "(the caller)"
    writes: dict[str, list[Any]] = {}
    for task_id, channel, value in found.pending_writes or ():
        if task_id != task.task_id:
            continue
        if channel == ERROR:
            document["error"] = value
        elif channel == INTERRUPT:
            document["interrupts"] = value
        elif is_state(channel):
            writes.setdefault(channel, []).append(value)
    document["writes"] = {name: values[0] if len(values) == 1 else values for name, values in writes.items()}
    return document


def _show_checkpoint(found: dict[str, Any], screen: Screen) -> None:
    screen.pairs(
        (name.replace("_", " ").capitalize(), visible(str(found[name])))
        for name in ("thread", "namespace", "checkpoint_id", "parent_id", "step", "source", "created_at")
        if found[name] not in (None, "")
    )
    extra = {name: value for name, value in found["metadata"].items() if name not in ("step", "source", "parents")}
    if extra:
        screen.title("Metadata")
        screen.pairs(extra.items())
    if found.get("damage"):
        screen.title("Values")
        screen.say(f"They cannot be read. {found['damage']}", "red")
    else:
        workflow = {told: found[told] for told in _OF_WORKFLOWS.values() if told in found}
        if found["values"] or not workflow:
            screen.title("Values")
            screen.pairs(found["values"].items() if found["values"] else [("(none yet)", "")])
        if workflow:
            screen.title("Of the workflow")
            screen.pairs((told.capitalize(), value) for told, value in workflow.items())
        if "input" in found:
            screen.title("Input, not yet applied")
            screen.pairs(found["input"].items() if isinstance(found["input"], dict) else [("", found["input"])])
        screen.title("Next, as far as can be told without the graph")
        screen.say(", ".join(found["next"]) or "nothing: the thread is done")
    if found["tasks"]:
        screen.title("Written against this checkpoint")
        screen.table(
            [Column("Task", style="cyan"), Column("Outcome"), Column("Wrote")],
            [[task["name"], task["outcome"], _wrote(task)] for task in found["tasks"]],
        )


def _wrote(task: dict[str, Any]) -> str:
    lines = [f"{name}: {in_words(value, MOST_SHOWN)}" for name, value in task.get("writes", {}).items()]
    if "error" in task:
        earlier = "" if task["outcome"] == "failed" else "before that: "
        lines.append(f"{earlier}{in_words(task['error'], MOST_SHOWN)}")
    if "interrupts" in task:
        lines.append(in_words(task["interrupts"], MOST_SHOWN))
    return "\n".join(lines)
