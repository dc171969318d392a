"""The terminal: tables, notes and progress through rich; or one JSON document for programs.

Colour and progress bars appear on terminals only, so that what is piped into a file is text. Nothing that comes from a
database is ever read as rich markup.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from runtime.cli.plain import in_words, plain, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from runtime.cli.failing import CommandError

NEW_LINE: Final = "\n"

ID_WIDTH: Final = 36
"""Characters of a checkpoint id."""


class Screen:
    """Where a command's results go: standard output; and its progress and errors: standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = Console(highlight=False, markup=False, emoji=False)
        self._err = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._begun = False

    # ---- results -----------------------------------------------------------------------------------------------

    def document(self, value: Any) -> None:
        """Write the one JSON document. ASCII only, so that it is the same under every locale."""
        sys.stdout.write(json.dumps(plain(value), indent=2) + "\n")
        sys.stdout.flush()

    def say(self, text: str = "", style: str = "") -> None:
        """Write a line, wrapped to the terminal."""
        self._print(Text(visible(text, keep=NEW_LINE), style=style))

    def command(self, what: str, line: str) -> None:
        """Write a command to be copied: in one piece, however long it is."""
        self._print(Text(f"{what}: {visible(line, keep=NEW_LINE)}"), wrap=False)

    def drawn(self, before: str, name: str = "", after: str = "") -> None:
        """Write a line of a drawing, with a name in it: in one piece, as what is below must stay below."""
        self._print(Text.assemble(visible(before), (visible(name), "cyan"), visible(after)), wrap=False)

    def title(self, text: str) -> None:
        """Write a heading, with a blank line above it unless it comes first."""
        if self._begun:
            self.say()
        self._print(Text(visible(text), style="bold"))

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """Write a table."""
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
        for column in columns:
            table.add_column(
                Text(column.title),
                justify="right" if column.number else "left",
                no_wrap=column.whole,
                width=column.width,
                overflow="fold",
                style=column.style,
            )
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else Text(in_words(cell)) for cell in row))
        self._print(table)

    def pairs(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Write names and values, one below the other."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="cyan", overflow="fold")
        grid.add_column(overflow="fold")
        for name, value in pairs:
            grid.add_row(Text(visible(name)), value if isinstance(value, Text) else Text(in_words(value, 4000)))
        self._print(grid)

    def _print(self, what: Text | Table, *, wrap: bool = True) -> None:
        self._begun = True
        if self._out.is_terminal:
            self._out.print(what, soft_wrap=not wrap)
            return
        # rich pads cells to their column's width; in a file that is trailing white space.
        with self._out.capture() as captured:
            self._out.print(what, soft_wrap=not wrap)
        self._out.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))

    # ---- everything else ---------------------------------------------------------------------------------------

    def fail(self, error: CommandError) -> None:
        """Write what went wrong to standard error."""
        if self.as_json:
            told = {"type": error.kind, "message": str(error), **error.facts}
            if error.hint is not None:
                told["hint"] = error.hint
            sys.stderr.write(json.dumps({"error": plain(told)}) + "\n")
            return
        self._err.print(Text.assemble(("error: ", "bold red"), visible(str(error), keep=NEW_LINE)), soft_wrap=True)
        if error.hint is not None:
            # Not wrapped by us: it may hold a command to be copied.
            self._err.print(Text(visible(error.hint, keep=NEW_LINE)), soft_wrap=True)

    def confirm(self, question: str) -> bool:
        """Ask on the terminal; an empty answer means no."""
        self._err.print(Text(visible(question)), end=" [y/N] ")
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    @property
    def interactive(self) -> bool:
        """Whether there is somebody to ask."""
        return not self.as_json and sys.stdin.isatty() and self._err.is_terminal

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Bar]:
        """Show a bar for work of known length, a spinner for other work; on terminals only."""
        measure = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *measure, TimeElapsedColumn())
        hidden = self.as_json or not self._err.is_terminal
        with Progress(*columns, console=self._err, transient=True, disable=hidden) as progress:
            yield Bar(progress, visible(what), total)


class Bar:
    """Progress of one piece of work."""

    def __init__(self, progress: Progress, what: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total)

    def step(self, what: str | None = None) -> None:
        """Count one more as done, and say what is under way now."""
        self._progress.advance(self._task)
        if what is not None:
            self.now(what)

    def now(self, what: str) -> None:
        """Say what is under way."""
        self._progress.update(self._task, description=visible(what))


class Column:
    """A column of a table."""

    def __init__(
        self, title: str, *, number: bool = False, whole: bool = False, width: int | None = None, style: str = ""
    ) -> None:
        self.title = title
        self.number = number
        self.whole = whole
        """Never wrapped."""
        self.width = width
        """Fixed, such as ID_WIDTH for ids, which are there to be copied; None: what the content needs and gets."""
        self.style = style


def quietened() -> None:
    """Let later writes to standard output go nowhere: its reader has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def stdout_reserved() -> Iterator[None]:
    """Send what other code writes to standard output to standard error, whichever way it writes it."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        # By name as well: where this is called from Python, sys.stdout need not be the process's own.
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def moment(created_at: str | None) -> str:
    """Return a stored time in a short form: month, day and time of day, in UTC."""
    if created_at is None:
        return "?"
    try:
        when = datetime.fromisoformat(created_at)
    except ValueError:
        return created_at
    return when.astimezone(UTC).strftime("%m-%d %H:%M:%S")


def size(count: int) -> str:
    """Return a number of bytes in a readable unit."""
    number = float(count)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:  # noqa: PLR2004 - the base of the units
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def counted(count: int, noun: str) -> str:
    """Return the number with its noun, in the plural where it belongs."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
