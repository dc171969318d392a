"""Callbacks of a graph's life: what pauses and goes on is told to handlers in ``config["callbacks"]``."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID, uuid4

from anyio import to_thread

from runtime.interrupts import Interrupt
from runtime.types.config import CallConfig

LOG: Final = logging.getLogger("actorgraph")

GraphLifecycleStatus = Literal["input", "pending", "done", "interrupt_before", "interrupt_after", "out_of_steps"]


@dataclass(frozen=True)
class GraphInterruptEvent:
    """A run stopped for answers or at a breakpoint; what it did until then is durable."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    """``pending``: questions; ``interrupt_before``, ``interrupt_after``: a breakpoint."""
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True)
class GraphResumeEvent:
    """A run, or a subgraph in it, goes on from what is stored."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str
    """Where it goes on from."""
    checkpoint_ns: tuple[str, ...]


GraphLifecycleEvent: TypeAlias = GraphInterruptEvent | GraphResumeEvent
"""What handlers are told."""


class LifecycleHandler:
    """What is told of a graph's life; both methods may be async, and sync ones run in worker threads."""

    raise_error: bool = False
    """Whether an error here ends the run; otherwise it is logged."""
    run_inline: bool = False
    """Whether a sync method runs in the event loop's own thread."""

    def on_interrupt(self, event: GraphInterruptEvent) -> Any:
        """Take note that a run has paused."""

    def on_resume(self, event: GraphResumeEvent) -> Any:
        """Take note that a run goes on."""


class Watchers:
    """The handlers of one run."""

    __slots__ = ("_handlers", "_run_id")

    def __init__(self, handlers: Sequence[LifecycleHandler], run_id: str | None) -> None:
        self._handlers = handlers
        self._run_id = _uuid(run_id)

    async def paused(
        self, status: GraphLifecycleStatus, checkpoint_id: str, ns: str, interrupts: tuple[Interrupt, ...]
    ) -> None:
        """Tell that the run has paused."""
        event = GraphInterruptEvent(self._run_id, status, checkpoint_id, _path(ns), interrupts)
        await self._tell("on_interrupt", event)

    async def resumed(self, checkpoint_id: str, ns: str) -> None:
        """Tell that the run goes on."""
        await self._tell("on_resume", GraphResumeEvent(self._run_id, "pending", checkpoint_id, _path(ns)))

    async def _tell(self, method: str, event: GraphLifecycleEvent) -> None:
        failures: list[Exception] = []
        for handler in self._handlers:
            try:
                await _called(handler, getattr(handler, method), event)
            except Exception as error:  # noqa: BLE001 - a watcher's error is no error of the run, unless it says so
                LOG.warning("%s.%s failed: %r", type(handler).__name__, method, error)
                if handler.raise_error:
                    failures.append(error)
        if failures:
            raise failures[0]


def watchers_in(config: CallConfig) -> Watchers | None:
    """Return those among a config's callbacks who are told of a graph's life; None if there are none."""
    callbacks: Any = config.raw.get("callbacks")
    if callbacks is None:
        return None
    if not isinstance(callbacks, (list, tuple)):
        callbacks = getattr(callbacks, "handlers", (callbacks,))
    handlers = [handler for handler in callbacks if isinstance(handler, LifecycleHandler)]
    return Watchers(handlers, config.run_id) if handlers else None


async def _called(handler: LifecycleHandler, method: Any, event: Any) -> None:
    if handler.run_inline or inspect.iscoroutinefunction(method):
        result = method(event)
    else:
        result = await to_thread.run_sync(partial(method, event))
    if inspect.isawaitable(result):
        await result


def _uuid(run_id: str | None) -> UUID | None:
    if run_id is None:
        return uuid4()
    try:
        return UUID(run_id)
    except ValueError:  # a name that the program chose
        return None


def _path(ns: str) -> tuple[str, ...]:
    return tuple(ns.split("|")) if ns else ()
