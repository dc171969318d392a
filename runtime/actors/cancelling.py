"""Telling a cancel from outside apart from a cancellation error that a node raised by itself.

Only asyncio lets user code raise its cancellation error at will; trio's cannot be made by hand.
"""

from __future__ import annotations

import asyncio

import anyio


def cancelled_class() -> type[BaseException]:
    """Return the running event loop's cancellation error."""
    return anyio.get_cancelled_exc_class()


def is_cancel(error: BaseException) -> bool:
    """Tell whether this is a cancel and nothing else; trio's nurseries raise theirs in a group."""
    cls = cancelled_class()
    return isinstance(error, cls) or (isinstance(error, BaseExceptionGroup) and error.split(cls)[1] is None)


def is_self_inflicted(error: BaseException) -> bool:
    """Tell whether nobody asked for this cancellation: the node raised it, or awaited something cancelled."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() == 0


def misplaced(error: GeneratorExit) -> RuntimeError:
    """Return what stands for a GeneratorExit that user code raised.

    Event loops take it for the order to close a coroutine, whichever it reaches, and break. Python treats a
    StopIteration that leaves a coroutine the same way.
    """
    return RuntimeError(f"A node raised GeneratorExit({', '.join(map(repr, error.args))}).")


def put_off() -> None:
    """Have asyncio deliver the cancel that was just caught at the next wait; how often it was asked for stays."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()
