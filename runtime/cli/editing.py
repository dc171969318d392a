"""``prune`` and ``delete``: make a database smaller, on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.cli.databases import look_into, named, saver_of
from runtime.cli.failing import CommandError, UsageError
from runtime.cli.plain import visible
from runtime.cli.showing import Column, counted

if TYPE_CHECKING:
    import argparse

    from persistence.contracts.listing import Listing
    from runtime.cli.showing import Screen


def prune(args: argparse.Namespace, screen: Screen) -> int:
    """Drop the history of threads: keep the newest checkpoint of each namespace, with its writes."""
    if args.all == bool(args.threads):
        msg = "Name threads, or say --all" + (": not both." if args.all else " for every thread in it.")
        raise UsageError(msg)
    with look_into(args.db) as listing:
        chosen = [thread.thread_id for thread in listing.threads()] if args.all else list(dict.fromkeys(args.threads))
        before = _counts(listing, chosen, named(args.db))
        with saver_of(args.db) as saver, screen.progress("Pruning", len(chosen)) as bar:
            # One at a time: each is a transaction of its own, and runs on other threads go on in between.
            for thread in chosen:
                saver.prune([thread], strategy="keep_latest")
                bar.step()
        rows: list[dict[str, Any]] = [
            {"thread": thread, "before": before[thread], "after": listing.checkpoint_count(thread)} for thread in chosen
        ]
    if args.json:
        screen.document({"db": named(args.db), "pruned": rows})
        return 0
    columns = [Column("Thread", style="cyan"), Column("Before", number=True), Column("After", number=True)]
    screen.table(columns, [[visible(row["thread"]), row["before"], row["after"]] for row in rows])
    dropped = sum(row["before"] - row["after"] for row in rows)
    screen.say(
        f"{counted(dropped, 'checkpoint')} dropped. The file keeps its size; new rows use the free space.", "dim"
    )
    return 0


def delete(args: argparse.Namespace, screen: Screen) -> int:
    """Delete threads with everything that is stored for them."""
    chosen = list(dict.fromkeys(args.threads))
    with look_into(args.db) as listing:
        counts = _counts(listing, chosen, named(args.db))
    question = f"Delete {counted(len(chosen), 'thread')} with {counted(sum(counts.values()), 'checkpoint')}?"
    if not args.yes:
        if not screen.interactive:
            msg = f"{question} There is nobody to ask: pass --yes."
            raise UsageError(msg)
        if not screen.confirm(question):
            screen.say("Nothing was deleted.")
            return 0
    with saver_of(args.db) as saver, screen.progress("Deleting", len(chosen)) as bar:
        for thread in chosen:
            saver.delete_thread(thread)
            bar.step()
    rows: list[dict[str, Any]] = [{"thread": thread, "checkpoints": counts[thread]} for thread in chosen]
    if args.json:
        screen.document({"db": named(args.db), "deleted": rows})
    else:
        screen.say(f"Deleted {counted(len(chosen), 'thread')} with {counted(sum(counts.values()), 'checkpoint')}.")
    return 0


def _counts(listing: Listing, threads: list[str], db: str) -> dict[str, int]:
    """Return each thread's number of checkpoints; refuse if one does not exist, before anything changes."""
    counts = {thread: listing.checkpoint_count(thread) for thread in threads}
    missing = [thread for thread in threads if not counts[thread]]
    if missing:
        msg = f"Nothing was changed: there is no thread {', '.join(map(repr, missing))} in {db}."
        raise CommandError(msg, kind="ThreadNotFound", hint=f"List them: actorgraph threads --db {db}", threads=missing)
    return counts
