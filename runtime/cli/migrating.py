"""``migrate``: bring the threads and items of a LangGraph database over to one of this project."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import anyio

from persistence.contracts.store import Item
from persistence.migration.constructors import Constructors, langchain_types
from persistence.migration.decoding import ForeignDecoder
from persistence.migration.items import Clock, ItemMover
from persistence.migration.moving import Tally, ThreadMover
from persistence.migration.sqlite import SqliteSource
from runtime.channels import DeltaChannel
from runtime.cli.adopting import MAKERS, Adopting
from runtime.cli.databases import FORMS, is_server, module_of, named, require_place, saver_of, store_of
from runtime.cli.failing import UsageError
from runtime.cli.loading import load_graph
from runtime.cli.plain import visible
from runtime.cli.showing import Column, counted, stdout_reserved
from runtime.engine.vocabulary import STORED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from runtime.cli.showing import Screen
    from runtime.engine.plan import Plan
    from runtime.run.program import Program

KINDS: Final = ("langgraph-sqlite", "langgraph-postgres")
_UNREGISTERED: Final = "is not registered"
_DELTA: Final = "must be named"
_SHOWN: Final = 50
"""Problems listed on a terminal; --json lists all."""


@dataclass
class _Known:
    """What the named graphs tell: the classes of their values and the channels that fold."""

    types: set[type] = field(default_factory=set)
    deltas: dict[str, DeltaChannel[Any]] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)

    def __hash__(self) -> int:
        return id(self)

    def register_types(self, types: Iterable[type]) -> None:
        """Remember classes."""
        self.types.update(types)

    def learn(self, program: Program) -> None:
        """Look at a graph and its subgraphs."""
        program.register_types(self)
        self.plans.append(program.plan)
        waiting, seen = [program], set()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            self.deltas |= {
                key: channel for key, channel in one.plan.state.items() if isinstance(channel, DeltaChannel)
            }
            waiting += [below for node in one.plan.nodes.values() for below in node.subgraphs]


def migrate(args: argparse.Namespace, screen: Screen) -> int:
    """Carry over what can be carried; return 1 if something stays behind."""
    kind, args.url, args.to = args.source[0], _address(args.source[1]), _address(args.to)
    if kind not in KINDS:
        msg = f"--from knows {' and '.join(KINDS)}, not {kind!r}."
        raise UsageError(msg)
    if (kind == "langgraph-postgres") != args.url.startswith(("postgresql://", "postgres://")):
        form = "a URL: postgresql://user:password@host:5432/database" if kind == "langgraph-postgres" else "a file"
        msg = f"--from {kind} needs {form}."
        raise UsageError(msg)
    require_place(args.to, exists=False)
    with ExitStack() as reserved:
        if args.json:
            reserved.enter_context(stdout_reserved())
        # asyncio, because the drivers live there; which loop it is cannot be seen from outside.
        tally, notes = anyio.run(_migrate, args, screen, backend="asyncio")
    if args.json:
        screen.document(_document(args, tally, notes))
    else:
        _show(args, screen, tally, notes)
    return 1 if tally.problems else 0


async def _migrate(args: argparse.Namespace, screen: Screen) -> tuple[Tally, list[str]]:
    known = _Known()
    for target in args.graph or ():
        known.learn((await load_graph(target, None)).program)
    known.register_types((*STORED, Item, *langchain_types().values()))
    makers: dict[tuple[str, str], Any] = {**MAKERS, ("langgraph.store.base", "Item"): Item}
    decoder = ForeignDecoder(Constructors(known.types, makers))
    saver = saver_of(args.to)
    saver.register_types(known.types)
    async with AsyncExitStack() as opened:
        source = await opened.enter_async_context(_source(args.source[0], args.url))
        if not args.dry_run:
            await opened.enter_async_context(saver)
        mover = ThreadMover(source, saver, decoder, lambda: Adopting(known.deltas, known.plans), dry=args.dry_run)
        threads = await source.threads()
        with screen.progress("Migrating threads", len(threads)) as bar:
            for thread in threads:
                bar.now(f"Thread {thread.thread_id}, {counted(thread.checkpoints, 'checkpoint')}")
                await mover.move(thread)
                bar.step()
        await _items(args, screen, source, mover.tally, opened)
        return mover.tally, await _notes(source)


async def _items(args: argparse.Namespace, screen: Screen, source: Any, tally: Tally, opened: AsyncExitStack) -> None:
    count = await source.item_count()
    if not count:
        return
    clock = Clock()
    store = None if args.dry_run else await opened.enter_async_context(store_of(args.to, clock=clock))
    with screen.progress("Migrating items", count) as bar:
        await ItemMover(source, store, clock, tally).move(bar.step)


async def _notes(source: Any) -> list[str]:
    if not await source.has_vectors():
        return []
    return [
        "What items were indexed by for search by meaning stays behind: put them again, into a store with an index."
    ]


# ---- addresses -----------------------------------------------------------------------------------------------------


def _address(address: str) -> str:
    """Return a file, or a URL of a server, of an address: sqlite:///path is a file too.

    Raises UsageError for another kind of database.
    """
    if "://" not in address or is_server(address):
        return address
    parts = urlsplit(address)
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2:  # noqa: PLR2004 - a slash and a name
        msg = f"{address!r} is no database that is known here: write sqlite:///file, or {FORMS}."
        raise UsageError(msg)
    return unquote(parts.path[1:])


def _source(kind: str, address: str) -> Any:
    if kind == "langgraph-sqlite":
        return SqliteSource(address)
    return module_of("persistence.migration.postgres").PostgresSource(address)


# ---- what came of it -----------------------------------------------------------------------------------------------


def _document(args: argparse.Namespace, tally: Tally, notes: list[str]) -> Mapping[str, Any]:
    return {
        "from": named(args.url),
        "to": named(args.to),
        "dry_run": args.dry_run,
        "threads": tally.threads,
        "checkpoints": tally.checkpoints,
        "writes": tally.writes,
        "items": tally.items,
        "present": tally.present,
        "left_behind": sorted(tally.left),
        "problems": [
            {
                "thread": problem.thread_id,
                "namespace": problem.checkpoint_ns,
                "checkpoint": problem.checkpoint_id or None,
                "where": problem.where,
                "reason": problem.reason,
            }
            for problem in tally.problems
        ],
        "notes": notes,
    }


def _show(args: argparse.Namespace, screen: Screen, tally: Tally, notes: list[str]) -> None:
    if tally.problems:
        columns = [Column("Thread", style="cyan"), Column("Where"), Column("Cannot be carried because")]
        screen.table(
            columns,
            [
                [visible(problem.thread_id or "the store"), _place(problem), visible(problem.reason)]
                for problem in tally.problems[:_SHOWN]
            ],
        )
        if len(tally.problems) > _SHOWN:
            screen.say(f"and {len(tally.problems) - _SHOWN:,} more: --json lists all.")
        screen.say()
    for note in (*notes, *_advice(tally)):
        screen.say(note, "yellow")
    verb = "Would carry" if args.dry_run else "Carried"
    what = f"{counted(tally.threads, 'thread')}, {counted(tally.checkpoints, 'checkpoint')}, "
    what += f"{counted(tally.writes, 'write')}, {counted(tally.items, 'item')}"
    screen.say(f"{verb} {what} from {named(args.url)} to {named(args.to)}.", "green")
    if tally.present:
        screen.say(f"{tally.present:,} were there already.", "dim")
    if tally.left:
        screen.say(f"{counted(len(tally.left), 'thread')} left behind, whole; nothing else is missing.", "yellow")


def _place(problem: Any) -> str:
    parts = [problem.where, f"in {problem.checkpoint_ns}" if problem.checkpoint_ns else "", problem.checkpoint_id]
    return visible(", ".join(part for part in parts if part))


def _advice(tally: Tally) -> list[str]:
    reasons = {problem.reason for problem in tally.problems}
    if any(reason.endswith((_UNREGISTERED, _DELTA)) for reason in reasons):
        return ["Name the graph that uses them: --graph MODULE:GRAPH. Its schemas say which classes may be rebuilt."]
    return []
