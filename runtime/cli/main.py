"""The command line: what can be said, and how failures are told."""

from __future__ import annotations

import argparse
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final, NoReturn

from persistence.errors import PersistenceError
from runtime.cli import demo, drawing, editing, migrating, reading, recovering, running
from runtime.cli.databases import FORMS
from runtime.cli.failing import CommandError, UsageError
from runtime.cli.showing import Screen, quietened
from runtime.cli.stopping import InterruptError
from runtime.errors import RuntimeLibraryError
from runtime.types.policy import DURABILITIES
from runtime.types.streams import STREAM_MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Parsers = argparse._SubParsersAction["_Parser"]  # noqa: SLF001 - it has no public name

LIMIT: Final = 50
"""Rows listed unless asked otherwise: a screenful or two."""


class _Parser(argparse.ArgumentParser):
    """argparse, with usage errors as JSON where JSON was asked for.

    The standard library's parser does all that these few commands need; a framework would be one more dependency of
    every program that uses the library.
    """

    as_json = False

    def error(self, message: str) -> NoReturn:
        if not _Parser.as_json:
            super().error(message)
        Screen(as_json=True).fail(UsageError(message))
        sys.exit(UsageError.exit_code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0: done; 1: failed; 2: wrong usage; 130: stopped by Ctrl-C; 143: by SIGTERM.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    _Parser.as_json = "--json" in words
    args = _parser().parse_args(words)
    screen = Screen(as_json=args.json)
    try:
        return _run(args, screen)
    except CommandError as error:
        screen.fail(error)
        if getattr(args, "traceback", False):
            traceback.print_exception(error.__cause__ or error)
        return error.exit_code
    except (PersistenceError, RuntimeLibraryError, OSError) as error:
        screen.fail(CommandError(str(error), kind=type(error).__name__))
        return 1
    except KeyboardInterrupt:
        stopped = InterruptError("Interrupted; what had finished is saved.")
        screen.fail(stopped)
        return stopped.exit_code


def _run(args: argparse.Namespace, screen: Screen) -> int:
    command: Callable[[argparse.Namespace, Screen], int] = args.command
    try:
        return command(args, screen)
    except BrokenPipeError:
        quietened()
        return 1


# ---- what can be said ----------------------------------------------------------------------------------------------


def _parser() -> _Parser:
    parser = _Parser(prog="actorgraph", description="Run durable graphs and look after the threads they leave.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add_run(commands)
    _add_draw(commands)
    _add_recover(commands)
    _add_threads(commands)
    _add_history(commands)
    _add_show(commands)
    _add_prune(commands)
    _add_delete(commands)
    _add_migrate(commands)
    _add_demo(commands)
    return parser


def _command(
    commands: Parsers, name: str, function: Callable[[argparse.Namespace, Screen], int], summary: str, more: str = ""
) -> _Parser:
    parser = commands.add_parser(name, help=summary, description=f"{summary} {more}".strip())
    parser.set_defaults(command=function)
    parser.add_argument("--json", action="store_true", help="write one JSON document instead of text")
    return parser


def _needs_db(parser: _Parser) -> None:
    parser.add_argument("--db", metavar="FILE", required=True, help=FORMS)


def _needs_graph(parser: _Parser) -> None:
    parser.add_argument(
        "target", metavar="MODULE:GRAPH", help="a StateGraph, a compiled graph, or a function that returns one"
    )


def _named(parser: _Parser, what_for: str) -> None:
    parser.add_argument(
        "--name", metavar="NAME", help=f"the graph's name, {what_for} (default: what it was compiled with)"
    )


def _add_run(commands: Parsers) -> None:
    parser = _command(
        commands,
        "run",
        running.run,
        "Run a graph.",
        "The thread can be resumed, listed and shown if a file keeps it. SIGTERM lets the superstep at work end and be "
        "saved first, then exits with 143; a second one does so at once.",
    )
    _needs_graph(parser)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument(
        "--input",
        metavar="JSON",
        help="state to start from; where the schema names a class, an object of its fields; - reads standard input",
    )
    given.add_argument("--resume", action="store_true", help="go on where the thread stopped")
    given.add_argument("--answer", metavar="JSON", help="answer the pending question and go on")
    parser.add_argument("--db", metavar="FILE", help=f"keep the thread in {FORMS} (default: none)")
    parser.add_argument("--thread", metavar="ID", help="the thread (default: a new one)")
    _named(parser, "by which recover finds the run, if it dies")
    parser.add_argument("--checkpoint", metavar="ID", help="run from this checkpoint of the thread, as a new branch")
    parser.add_argument(
        "--durability",
        choices=DURABILITIES,
        default="async",
        help="save at the end, behind the run (default), or before each next step",
    )
    modes = f"show what happens as it happens: {', '.join(STREAM_MODES)}"
    parser.add_argument("--stream", choices=STREAM_MODES, metavar="MODE", help=modes)
    parser.add_argument("--context", metavar="JSON", type=_json_option, help="what nodes see as runtime.context")
    parser.add_argument("--recursion-limit", metavar="N", type=_positive, help="steps that the run may take")
    parser.add_argument("--traceback", action="store_true", help="show the whole traceback if a node fails")


def _add_recover(commands: Parsers) -> None:
    parser = _command(
        commands,
        "recover",
        recovering.recover,
        "Continue the threads of a graph whose run died with its process.",
        "On SQLite and PostgreSQL; safe from several processes at once. Exits with 1 if a thread could not be "
        "continued. SIGTERM ends it at once with 143: the threads that it had begun are then found by the next one.",
    )
    _needs_graph(parser)
    _needs_db(parser)
    _named(parser, "whose threads are continued")
    parser.add_argument("--parallel", metavar="N", type=_positive, default=8, help="threads at once (default: 8)")
    parser.add_argument("--dry-run", action="store_true", help="only list them")
    parser.add_argument(
        "--unfinished",
        action="store_true",
        help="also those that nobody is at work on as their run was drained, cancelled or interrupted; reads every "
        "thread of the graph. Not those that failed, wait for an answer or stand at one of the graph's breakpoints. "
        f"Without it they are told of, if they are among the {recovering.LOOKED:,} threads that were active last",
    )
    parser.add_argument("--durability", choices=DURABILITIES, default="async", help="as for run")
    parser.add_argument("--context", metavar="JSON", type=_json_option, help="what nodes see as runtime.context")


def _add_draw(commands: Parsers) -> None:
    parser = _command(
        commands, "draw", drawing.draw, "Draw a graph.", "All formats but Mermaid need the extra: drawing, png."
    )
    _needs_graph(parser)
    parser.add_argument("--format", choices=drawing.FORMATS, help="default: what FILE's suffix says, else mermaid")
    parser.add_argument("--output", metavar="FILE", help="write the picture there (default: standard output)")
    parser.add_argument("--xray", action="store_true", help="draw subgraphs out, all levels of them")


def _add_threads(commands: Parsers) -> None:
    parser = _command(commands, "threads", reading.threads, "List the threads in a file, the last active first.")
    _needs_db(parser)
    _limited(parser)
    parser.add_argument("--bytes", action="store_true", help="also measure what each thread holds; reads all its rows")


def _add_history(commands: Parsers) -> None:
    parser = _command(commands, "history", reading.history, "List a thread's checkpoints, newest first.")
    parser.add_argument("thread", metavar="THREAD")
    _needs_db(parser)
    _limited(parser)
    parser.add_argument("--graph", action="store_true", help="show the thread's branches as a tree")


def _add_show(commands: Parsers) -> None:
    parser = _command(
        commands, "show", reading.show, "Show a checkpoint: values, what comes next, what was written against it."
    )
    parser.add_argument("thread", metavar="THREAD")
    _needs_db(parser)
    parser.add_argument("--checkpoint", metavar="ID", help="which one (default: the newest)")
    parser.add_argument(
        "--namespace", metavar="NS", default="", help="a subgraph's namespace (default: the graph itself)"
    )


def _add_prune(commands: Parsers) -> None:
    parser = _command(
        commands, "prune", editing.prune, "Drop a thread's history, keeping the newest checkpoint of each namespace."
    )
    parser.add_argument("threads", metavar="THREAD", nargs="*")
    _needs_db(parser)
    parser.add_argument("--all", action="store_true", help="every thread in the file")
    parser.add_argument("--keep-latest", action="store_true", help="say what is kept; nothing else can be")


def _add_delete(commands: Parsers) -> None:
    parser = _command(commands, "delete", editing.delete, "Delete threads with everything stored for them.")
    parser.add_argument("threads", metavar="THREAD", nargs="+")
    _needs_db(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _add_migrate(commands: Parsers) -> None:
    parser = _command(
        commands,
        "migrate",
        migrating.migrate,
        "Bring the threads and items of a LangGraph database over.",
        "The source is only read. Stopped and started again it goes on. Exits with 1 if something stays behind.",
    )
    parser.add_argument(
        "--from",
        dest="source",
        nargs=2,
        metavar=("KIND", "URL"),
        required=True,
        help=f"what to read: {' or '.join(migrating.KINDS)}, and its file or URL",
    )
    parser.add_argument("--to", metavar="URL", required=True, help=f"where to: {FORMS}")
    parser.add_argument(
        "--graph",
        metavar="MODULE:GRAPH",
        action="append",
        help="a graph whose classes may be rebuilt; may be given several times",
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what cannot be carried, and why")


def _add_demo(commands: Parsers) -> None:
    parser = _command(
        commands,
        "demo",
        demo.demo,
        "Kill a run half way, resume it, travel through its history, and fork it.",
        "Does so in each durability mode, and measures what each costs. Fails if a mode breaks its promise.",
    )
    parser.add_argument("--db", metavar="FILE", help="keep the demo's threads in this file (default: a temporary one)")
    parser.add_argument("--mode", choices=DURABILITIES, help="only this mode (default: all)")


def _limited(parser: _Parser) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=_count, default=LIMIT, help=f"at most this many (default: {LIMIT}; 0: all)"
    )


def _count(text: str) -> int:
    return _at_least(0, text)


def _positive(text: str) -> int:
    return _at_least(1, text)


def _at_least(least: int, text: str) -> int:
    if not text.isdecimal() or int(text) < least:
        msg = f"{text!r} is not a whole number of at least {least}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _json_option(text: str) -> Any:
    try:
        return running.parse_json(text, "the value")
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
