"""How a command is stopped from outside: SIGTERM drains its run, Ctrl-C cancels it."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from anyio import open_signal_receiver

from runtime.cli.failing import CommandError
from runtime.run.hosting import next_round

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from runtime.context.runtime import RunControl

_NOTICE: Final = b"SIGTERM: the superstep at work is finished and saved first. A second one ends this at once.\n"


class StoppedError(CommandError):
    """The command was stopped from outside."""

    by = ""
    """What stopped it."""
    name = ""
    """What programs know that by."""

    def __init__(self, message: str, hint: str | None = None, **facts: Any) -> None:
        super().__init__(message, kind=self.name, hint=hint, **facts)


class InterruptError(StoppedError):
    """Ctrl-C ended the command."""

    exit_code = 130
    by = "Ctrl-C"
    name = "KeyboardInterrupt"


class TerminationError(StoppedError):
    """SIGTERM ended the command."""

    exit_code = 143
    by = "SIGTERM"
    name = "Terminated"


@contextmanager
def drained_by_sigterm(
    control: RunControl, *, waits: Callable[[], bool], leave: Callable[[], None], quiet: bool
) -> Iterator[None]:
    """Have SIGTERM drain the run; a second one ends the process at once, which loses no more than a kill does.

    ``waits`` tells whether the run still waits for its thread: then there is nothing to drain, and it is to ``leave``.
    Entered on the event loop that runs it. ``quiet``: say nothing of it on standard error. Where this is not the main
    thread, which alone may handle signals, nothing is changed.
    """

    def at_once(_number: int, _frame: FrameType | None) -> None:
        # Not the signal's default: there is none for the first process of a container.
        os._exit(TerminationError.exit_code)

    def drain(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, at_once)
        if waits():
            next_round(leave_or_drain)
        else:
            drain_now()

    def leave_or_drain() -> None:
        if waits():
            leave()
        else:
            drain_now()

    def drain_now() -> None:
        control.request_drain("SIGTERM")
        if not quiet:
            os.write(2, _NOTICE)  # what it interrupts may be writing to the stream itself

    try:
        before = signal.signal(signal.SIGTERM, drain)
    except ValueError:
        yield
        return
    try:
        with ExitStack() as waking:
            # Handled between two steps of Python, so also where a node keeps the loop busy; but a loop that is about to
            # wait would first wait to the end: a receiver of its own has signals wake it.
            with suppress(NotImplementedError):
                waking.enter_context(open_signal_receiver(signal.SIGTERM))
            signal.signal(signal.SIGTERM, drain)
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
