"""Waiting for something to change, at no cost while nobody waits."""

from __future__ import annotations

import anyio


class Change:
    """Wakes those who wait; they look whether what they wait for is there, and wait again if not.

    The event behind it is made by the first who waits: an anyio event costs more than most of what is told by one.
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    async def wait(self) -> None:
        """Return after the next ``tell``."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()

    def tell(self) -> None:
        """Let everybody who waits look again."""
        event, self._event = self._event, None
        if event is not None:
            event.set()
