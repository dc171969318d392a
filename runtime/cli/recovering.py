"""``actorgraph recover``: continue the threads whose run died with its process."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio

from persistence.errors import PersistenceError
from runtime.cli.databases import look_into, named, require_place, saver_of
from runtime.cli.failing import CommandError
from runtime.cli.loading import load_graph
from runtime.cli.plain import visible
from runtime.cli.showing import Column, counted, stdout_reserved
from runtime.cli.standing import status_of
from runtime.cli.stopping import InterruptError
from runtime.graph.recovery import all_that_died, arecover, require_nodes
from runtime.graph.resting import resting, was_stopped

if TYPE_CHECKING:
    import argparse

    from persistence.contracts.lease import LeaseRow
    from runtime.cli.showing import Screen
    from runtime.cli.stopping import StoppedError
    from runtime.graph import CompiledStateGraph

LOOKED: Final = 1000
"""Threads that are looked at, the last active first, for what else is unfinished: more than a glance costs too much."""

_STOPPED: Final = ("unfinished", "failed")
"""How threads may stand whose run was stopped: what was cancelled is stored as an error, too."""

_NAMES_SHOWN: Final = 10
"""Names of other graphs that are listed in words; with --json all are."""


def recover(args: argparse.Namespace, screen: Screen) -> int:
    """Find the threads, continue them unless this is a dry run, and tell what became of each."""
    require_place(args.db, exists=True)
    left = [] if args.unfinished else _left_off(args)
    with stdout_reserved():
        try:
            found: dict[str, Any] = anyio.run(_recover, args, screen, left, backend="asyncio")
        except KeyboardInterrupt as error:
            raise _stopped(args) from error
    rows: list[dict[str, Any]] = found["recovered"]
    failed = any(row.get("status") == "failed" for row in rows)
    if args.json:
        screen.document(found)
        return int(failed)
    if rows:
        screen.table(*(_planned if args.dry_run else _ended)(rows, found["graph"]))
        screen.say(how_many(rows, dry_run=args.dry_run), "dim")
    elif args.unfinished:
        screen.say(f"Nothing of {args.target} is left to continue in {named(args.db)}: {_as(found)}.")
    else:
        screen.say(f"No run of {args.target} died at work in {named(args.db)} ({_as(found)}).")
    _show_left(found, args, screen)
    _show_others(found, args, screen)
    return int(failed)


def _left_off(args: argparse.Namespace) -> list[str]:
    """Return, of the threads that were active last, those that may have been stopped, whosever they are.

    None where the database is of an older version: it is yet to be brought up to date.
    """
    with (
        suppress(PersistenceError),
        look_into(args.db) as listing,
    ):
        return [one.thread_id for one in listing.threads(LOOKED) if status_of(one, listing)[0] in _STOPPED]
    return []


async def _recover(args: argparse.Namespace, screen: Screen, left: list[str]) -> dict[str, Any]:
    saver = saver_of(args.db)
    graph = await load_graph(args.target, saver, args.name)
    async with saver:
        if saver.lease_owner is None:
            raise _no_leases(args)
        dead = await all_that_died(saver)
        others = Counter(row.graph for row in dead if row.graph != graph.name)
        if args.dry_run:
            found = [row for row in dead if row.graph == graph.name]
            if args.unfinished:
                found += [row async for row in resting(graph) if await _stopped_here(graph, row)]
            rows = [await _waiting(graph, row) for row in sorted(found)]
        else:
            rows = await _continued(graph, args, screen)
        seen = {row["thread"] for row in rows}
        unfinished = [thread_id for thread_id in left if thread_id not in seen and await _is_left(graph, thread_id)]
    told = {"db": named(args.db), "graph": graph.name, "recovered": rows, "unfinished": unfinished}
    return told | {"others": dict(sorted(others.items())), "dry_run": args.dry_run}


async def _continued(graph: CompiledStateGraph, args: argparse.Namespace, screen: Screen) -> list[dict[str, Any]]:
    with screen.progress(f"Recovering {args.target}"):
        ended = await arecover(
            graph,
            context=args.context,
            durability=args.durability,
            max_concurrency=args.parallel,
            unfinished=args.unfinished,
        )
    return [{"thread": one.thread_id, "status": one.status, "error": _in_short(one.error)} for one in ended]


async def _is_left(graph: CompiledStateGraph, thread_id: str) -> bool:
    """Tell whether a thread is the graph's, has more to do, and nobody is at work on it."""
    row = await graph.checkpointer.alease(thread_id)
    return row is not None and row.graph == graph.name and not row.held and await _stopped_here(graph, row)


async def _stopped_here(graph: CompiledStateGraph, row: LeaseRow) -> bool:
    try:
        return await was_stopped(graph, row.thread_id)
    except Exception:  # noqa: BLE001 - one that cannot be read cannot be continued either
        return False


async def _waiting(graph: CompiledStateGraph, row: LeaseRow) -> dict[str, Any]:
    """Tell what a thread would go on with; or why it cannot, such as for want of the node that is due."""
    told: dict[str, Any] = {"thread": row.thread_id, "epoch": row.epoch, "graph": row.graph}
    try:
        await require_nodes(graph, row.thread_id)
        state = await graph.aget_state({"configurable": {"thread_id": row.thread_id}})
    except Exception as error:  # noqa: BLE001 - one thread that cannot be read is no reason not to show the others
        return told | {"next": None, "error": _in_short(error)}
    return told | {"next": list(state.next), "error": None}


def _in_short(error: Exception | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"


def _no_leases(args: argparse.Namespace) -> CommandError:
    """Say how to do without: a database without leases cannot tell a dead run from one at work."""
    msg = f"{named(args.db)} keeps no leases, so it cannot be told whose run died."
    return CommandError(msg, kind="NoLeases", hint=_by_hand(args, "Go on with one that no process has at work"))


def _stopped(args: argparse.Namespace) -> StoppedError:
    """Say how to go on: of what was cancelled, nobody died, so recover alone would not find it again."""
    msg = "Ctrl-C stopped the recovery; what had finished is saved. Threads that were not reached are for the next one."
    return InterruptError(msg, _by_hand(args, "Go on with one that it had begun"))


def _by_hand(args: argparse.Namespace, what: str) -> str:
    lists = shlex.join(["actorgraph", "threads", "--db", named(args.db)])
    more = [] if args.name is None else ["--name", args.name]
    words = ["actorgraph", "run", args.target, "--resume", *more, "--db", named(args.db), "--thread"]
    return f"List the threads, with what is next: {lists}\n{what}: {shlex.join(words)} ID"


# ---- what is shown -------------------------------------------------------------------------------------------------

Table = tuple[list[Column], list[list[object]]]


def how_many(rows: list[dict[str, Any]], *, dry_run: bool) -> str:
    """Count the threads that were continued, and apart from them those that another took first."""
    if dry_run:
        return f"{counted(len(rows), 'thread')} would be continued."
    taken = sum(row["status"] == "taken" for row in rows)
    told = [f"{_threads_were(len(rows) - taken)} continued"]
    return "; ".join(told + ([f"{_threads_were(taken)} taken by others"] if taken else [])) + "."


def _threads_were(count: int) -> str:
    return f"{counted(count, 'thread')} {'was' if count == 1 else 'were'}"


def _planned(rows: list[dict[str, Any]], name: str) -> Table:
    columns = [Column("Thread", style="cyan"), Column("Graph"), Column("Next"), Column("Epoch"), Column("Error")]
    return columns, [[visible(row["thread"]), name, _next(row), row["epoch"], row["error"] or ""] for row in rows]


def _next(row: dict[str, Any]) -> str:
    if row["next"] is None:
        return "?"
    return ", ".join(row["next"]) or "nothing is left"


def _ended(rows: list[dict[str, Any]], name: str) -> Table:
    columns = [Column("Thread", style="cyan"), Column("Graph"), Column("Became"), Column("Error")]
    return columns, [[visible(row["thread"]), name, row["status"], row["error"] or ""] for row in rows]


def _as(found: dict[str, Any]) -> str:
    return f"the graph's name is {found['graph']!r}"


def _show_left(found: dict[str, Any], args: argparse.Namespace, screen: Screen) -> None:
    """Tell of threads whose run did not die, but was stopped."""
    left: list[str] = found["unfinished"]
    if not left:
        return
    were = "is unfinished, and nobody is" if len(left) == 1 else "are unfinished, and nobody is"
    screen.say(f"{counted(len(left), 'thread')} of this graph {were} at work there: stopped, not dead.", "yellow")
    more = [] if args.name is None else ["--name", args.name]
    words = ["actorgraph", "recover", args.target, "--unfinished", *more, "--db", named(args.db)]
    screen.command("Continue what was stopped as well", shlex.join(words))


def _show_others(found: dict[str, Any], args: argparse.Namespace, screen: Screen) -> None:
    """Name the graphs whose threads were left alone; where nothing else was found, also how to choose one."""
    others: dict[str, int] = found["others"]
    if not others:
        return
    told = [f"{name!r} ({count:,})" for name, count in others.items()]
    more = ["..."] if len(told) > _NAMES_SHOWN else []
    count = sum(others.values())
    names = ", ".join([*told[:_NAMES_SHOWN], *more])
    were = "was" if count == 1 else "were"
    screen.say(
        f"{counted(count, 'thread')} of graphs with other names died there too and {were} left alone: {names}.",
        "yellow",
    )
    if not found["recovered"]:
        name = next(iter(others)) if len(others) == 1 else "NAME"
        words = ["actorgraph", "recover", args.target, "--name", name, "--db", named(args.db)]
        screen.command("If it is this graph under another name", shlex.join(words))
