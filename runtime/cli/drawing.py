"""``draw``: a graph as a picture, from the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from runtime.cli.failing import CommandError, UsageError
from runtime.cli.loading import load_graph
from runtime.cli.showing import counted, stdout_reserved

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from runtime.cli.showing import Screen
    from runtime.drawing import Graph

FORMATS: Final = ("mermaid", "ascii", "svg", "png")
_SUFFIXES: Final = {".mmd": "mermaid", ".mermaid": "mermaid", ".txt": "ascii", ".svg": "svg", ".png": "png"}


def draw(args: argparse.Namespace, screen: Screen) -> int:
    """Draw the graph, to a file or to standard output."""
    form = _form(args)
    if form == "png" and args.output is None and not args.json and sys.stdout.isatty():
        msg = "A PNG is not text: name a file with --output FILE."
        raise UsageError(msg)
    # Modules that print when they are imported must not spoil the picture.
    with stdout_reserved():
        graph = anyio.run(load_graph, args.target, None, backend="asyncio").get_graph(xray=args.xray)
    picture = _picture(graph, form)
    written = picture if isinstance(picture, bytes) else f"{picture.rstrip()}\n".encode()
    if args.output is not None:
        Path(args.output).write_bytes(written)
    if args.json:
        result: dict[str, Any] = {"target": args.target, "format": form, **graph.to_json()}
        screen.document(result | ({"picture": picture} if args.output is None else {"output": args.output}))
    elif args.output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.flush()
    else:
        nodes, edges = counted(len(graph.nodes), "node"), counted(len(graph.edges), "edge")
        screen.say(f"Drew {nodes} and {edges} to {args.output}.", "green")
    return 0


def _form(args: argparse.Namespace) -> str:
    """Return the format that was asked for: by name, else by the file's suffix, else Mermaid."""
    if args.format is not None or args.output is None:
        return args.format or "mermaid"
    suffix = Path(args.output).suffix
    if suffix.lower() not in _SUFFIXES:
        msg = f"{args.output!r} does not tell a format by its suffix: name one with --format ({', '.join(FORMATS)})."
        raise UsageError(msg)
    return _SUFFIXES[suffix.lower()]


def _picture(graph: Graph, form: str) -> str | bytes:
    ways: dict[str, Callable[[], str | bytes]] = {
        "mermaid": graph.draw_mermaid,
        "ascii": graph.draw_ascii,
        "svg": graph.draw_svg,
        "png": graph.draw_png,
    }
    try:
        return ways[form]()
    except (ImportError, RuntimeError, ValueError) as error:
        raise CommandError(str(error), kind=type(error).__name__) from error
