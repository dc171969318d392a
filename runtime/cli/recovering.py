"""``actorgraph recover``: continue the threads whose run died with its process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from runtime.cli.databases import named, require_place, saver_of
from runtime.cli.failing import CommandError
from runtime.cli.loading import load_graph
from runtime.cli.plain import visible
from runtime.cli.showing import Column, counted, stdout_reserved
from runtime.graph.recovery import arecover, died

if TYPE_CHECKING:
    import argparse

    from runtime.cli.showing import Screen


def recover(args: argparse.Namespace, screen: Screen) -> int:
    """Find the threads, continue them unless this is a dry run, and tell what became of each."""
    require_place(args.db, exists=True)
    with stdout_reserved():
        rows: list[dict[str, Any]] = anyio.run(_recover, args, screen, backend="asyncio")
    failed = any(row.get("status") == "failed" for row in rows)
    if args.json:
        screen.document({"db": named(args.db), "recovered": rows, "dry_run": args.dry_run})
        return int(failed)
    if not rows:
        screen.say(f"No run of {args.target} died at work in {named(args.db)}.")
        return 0
    last = "Epoch" if args.dry_run else "Became"
    columns = [Column("Thread", style="cyan"), Column(last), Column("Error")]
    shown = [[visible(row["thread"]), row.get("status", row.get("epoch")), row.get("error") or ""] for row in rows]
    screen.table(columns, shown)
    was = "would be" if args.dry_run else "was" if len(rows) == 1 else "were"
    screen.say(f"{counted(len(rows), 'thread')} {was} continued.", "dim")
    return int(failed)


async def _recover(args: argparse.Namespace, screen: Screen) -> list[dict[str, Any]]:
    saver = saver_of(args.db)
    graph = await load_graph(args.target, saver)
    async with saver:
        if saver.lease_owner is None:
            msg = f"{named(args.db)} keeps no leases, so it cannot be told whose run died."
            raise CommandError(msg, kind="NoLeases", hint="Resume its threads with: actorgraph run --resume")
        if args.dry_run:
            return [{"thread": row.thread_id, "epoch": row.epoch} for row in await died(graph)]
        with screen.progress(f"Recovering {args.target}"):
            ended = await arecover(
                graph, context=args.context, durability=args.durability, max_concurrency=args.parallel
            )
        return [
            {
                "thread": one.thread_id,
                "status": one.status,
                "error": None if one.error is None else f"{type(one.error).__name__}: {one.error}",
            }
            for one in ended
        ]
