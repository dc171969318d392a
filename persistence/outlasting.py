"""Waiting for what must not be left half done, whoever cancels the waiter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def outlast(wait: Callable[[], Awaitable[object]]) -> None:
    """Wait to the end, then deliver a cancel that arrived meanwhile.

    A shield keeps cancel scopes out; ``asyncio.Task.cancel()`` pierces shields, once per call, so it is remembered and
    raised afterwards. ``wait`` must be safe to call again.
    """
    cancelled: BaseException | None = None
    with anyio.CancelScope(shield=True):
        while True:
            try:
                await wait()
            except anyio.get_cancelled_exc_class() as error:
                cancelled = error
            else:
                break
    if cancelled is not None:
        raise cancelled
