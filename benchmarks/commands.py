"""The command line: a sweep over the questions, or one of its subcommands."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

import benchmarks
from benchmarks import bench_durability, peers, readme, results
from benchmarks.durability import own
from benchmarks.durability.grid import BACKENDS, FULL, MODES, SHORT, Grid, parse_size
from benchmarks.harness import Question, Session
from benchmarks.page.files import write_page, write_pictures
from benchmarks.sweeping import ORDER, Wishes, chosen, sweep
from runtime.cli.failing import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; 1 if a contender failed."""
    whole = parser()
    options = whole.parse_args(argv)
    try:
        return int(options.work(options))
    except (CommandError, OSError, ValueError, msgspec.MsgspecError) as error:
        whole.exit(2, f"{whole.prog}: {error}\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; each subcommand sets ``work``."""
    whole = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=benchmarks.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_common()],
    )
    whole.add_argument("--only", action="append", choices=ORDER, metavar="NAME", help=f"ask only {', '.join(ORDER)}")
    whole.set_defaults(work=_sweep)
    commands = whole.add_subparsers(title="commands", metavar="")
    _add_durability(commands)
    _add_report(commands)
    _add_readme(commands)
    return whole


def _common() -> argparse.ArgumentParser:
    """Return the options that every measurement has; what is not given is left out, so that no place hides another."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--full", action="store_true", help="every question at full size: about twelve minutes")
    common.add_argument("--repeats", type=_positive, metavar="N", help="samples per case, whatever the question says")
    common.add_argument("--side", action="append", metavar="LABEL", help="take part only: LangGraph, actorgraph, ...")
    common.add_argument("--json", type=Path, metavar="FILE", help="keep what was found")
    common.add_argument("--compare", type=Path, metavar="FILE", help="say what became of the figures kept there")
    common.add_argument("--html", type=Path, metavar="FILE", help="make the report too")
    common.add_argument("--directory", type=Path, help="where databases are made; its disk is what is measured")
    return common


def _add_durability(commands: Any) -> None:
    command = commands.add_parser(
        "durability",
        parents=[_common()],
        help="modes, databases and loads of your choice",
        description="Latency and throughput of each mode, in every combination of the values given; with --full and "
        "none, states vary where nodes do nothing, and nodes where states are small.",
    )
    command.add_argument("--backend", type=_list(_among(BACKENDS)), metavar="A,B", help=f"of {', '.join(BACKENDS)}")
    command.add_argument("--url", help="the server to use, if one of postgres and valkey is asked for")
    command.add_argument("--modes", type=_list(_among(MODES)), metavar="A,B", help=f"of {', '.join(MODES)}")
    command.add_argument("--state-size", type=_list(parse_size), metavar="N,N", help="bytes: 100, 10KB, 1MB")
    command.add_argument("--node-ms", type=_list(_time), metavar="N,N", help="how long each node takes")
    command.add_argument("--concurrency", type=_list(_positive), metavar="N,N", help="runs at once")
    command.add_argument("--graph", metavar="MODULE:GRAPH", help="a graph of your own instead of a chain")
    command.add_argument("--input", type=_json, metavar="JSON", help="the input of its runs")
    command.set_defaults(work=partial(_durability, command))


def _add_report(commands: Any) -> None:
    command = commands.add_parser(
        "report",
        help="kept figures as one HTML page with pictures",
        description="One page that needs nothing else: pictures of latencies, cost against loss, growth and so on.",
    )
    command.add_argument("found", type=Path, metavar="FILE.json", help="what --json kept")
    command.add_argument("--html", type=Path, default=Path("report.html"), metavar="FILE", help="report.html if left")
    command.add_argument("--png", type=Path, metavar="FOLDER", help="each picture as a PNG file too")
    command.set_defaults(work=_report)


def _add_readme(commands: Any) -> None:
    command = commands.add_parser(
        "readme",
        help="the table in README.md",
        description="Print the table of README.md from kept figures, or write it there.",
    )
    command.add_argument(
        "found",
        type=Path,
        nargs="?",
        default=readme.MEASURED,
        metavar="FILE.json",
        help="benchmarks/measured.json if left",
    )
    command.add_argument("--write", action="store_true", help="write it into README.md")
    command.set_defaults(work=_readme)


def _readme(options: argparse.Namespace) -> int:
    found = results.load(options.found)
    if options.write:
        readme.README.write_text(readme.inserted(readme.README.read_text("utf-8"), found), "utf-8")
    else:
        sys.stdout.write(f"{readme.section(found)}\n")
    return 0


def _report(options: argparse.Namespace) -> int:
    found = results.load(options.found)
    write_page(found, options.html)
    sys.stdout.write(f"{options.html}\n")
    if options.png:
        for path in write_pictures(found, options.png):
            sys.stdout.write(f"{path}\n")
    return 0


def _sweep(options: argparse.Namespace) -> int:
    wishes = _wishes(options)
    return sweep(chosen(options.only, full=wishes.full), wishes)


def _durability(command: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    usual = FULL if getattr(options, "full", False) else SHORT
    grid = Grid(
        options.backend or (usual.backends if options.url is None else ("postgres",)),
        options.modes or usual.modes,
        options.state_size or usual.state_bytes,
        options.node_ms or usual.node_ms,
        options.concurrency or usual.runs,
        sparse=usual.sparse and not (options.state_size or options.node_ms or options.concurrency),
    )
    served = [backend for backend in grid.backends if backend in ("postgres", "valkey")]
    if options.url and len(served) != 1:
        command.error("--url names one server: give --backend postgres or --backend valkey with it")
    urls = {served[0]: options.url} if options.url else {}
    wishes = _wishes(options, urls=urls)
    wishes = replace(wishes, sides=wishes.sides or [peers.OURS])
    over: Callable[[Session], None] = partial(bench_durability.over, grid=grid, sides=peers.sides(wishes.sides))
    if options.graph:
        if options.state_size or options.node_ms or wishes.sides != [peers.OURS]:
            command.error("--graph brings its own states and nodes, and runs on this engine alone")
        if options.input is None:
            command.error("--graph needs --input JSON: what each of its runs begins with")
        over = partial(own.over, grid=grid, target=options.graph, given=options.input)
    return sweep([Question("durability", "latency and throughput of a superstep", over)], wishes)


def _wishes(options: argparse.Namespace, **further: Any) -> Wishes:
    names = ("full", "repeats", "directory", "json", "compare", "html")
    given = {name: getattr(options, name) for name in names if name in options}
    return Wishes(**given, sides=getattr(options, "side", None), **further)


def _list(one: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    def several(text: str) -> tuple[T, ...]:
        try:
            return tuple(one(part.strip()) for part in text.split(","))
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return several


def _among(names: Sequence[str]) -> Callable[[str], str]:
    def known(text: str) -> str:
        if text not in names:
            message = f"there is no {text!r}: choose from {', '.join(names)}"
            raise ValueError(message)
        return text

    return known


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        message = f"at least 1, not {text}"
        raise ValueError(message)
    return number


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"not JSON: {error}"
        raise argparse.ArgumentTypeError(message) from error


def _time(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        message = f"a number of milliseconds, not {text}"
        raise ValueError(message)
    return number
