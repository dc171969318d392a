"""The subgraphs that one attempt of a node runs: their pauses wait for each other, and none outlives the node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn

import anyio

from runtime.errors import GraphInterrupt
from runtime.streaming.change import Change

if TYPE_CHECKING:
    from runtime.context.scope import Scope


class Subruns:
    """Runs started by one attempt of a node."""

    __slots__ = ("_active", "_called", "_changed", "_over", "beside", "in_line", "keepers", "last_line", "taken")

    def __init__(self) -> None:
        self._active: set[anyio.CancelScope] = set()
        self._changed = Change()
        """Told of each run that ends."""
        self._over = False
        """Whether the node has ended; what it left behind may start nothing more."""
        self._called: Counter[str] = Counter()
        """How often each graph was called, by its shape."""
        self.in_line = 0
        """How many were called in the node's own line of work."""
        self.beside = False
        """Whether one was called beside the node's own line of work; from then on numbers of calls depend on timing."""
        self.taken: set[str] = set()
        """Namespaces that are in use."""
        self.keepers: Counter[Any] = Counter()
        """Those at work that keep their state, or in which some do, with how many."""
        self.last_line: int | None = None
        """The task of the event loop that started the last of them, if beside the node's own line of work."""

    def turn(self, shape: str) -> int:
        """Count a call; return how many calls of the same graph there were before it."""
        self._called[shape] += 1
        return self._called[shape] - 1

    async def run(self, start: Callable[[], Awaitable[Any]]) -> Any:
        """Run one."""
        if self._over:
            raise GraphInterrupt
        scope = anyio.CancelScope()
        self._active.add(scope)
        try:
            with scope:
                return await start()
        finally:
            self._active.discard(scope)
            self._changed.tell()
        raise GraphInterrupt  # the node has ended without it

    async def pause(self, questions: tuple[Any, ...]) -> NoReturn:
        """Pause the node, once what it runs at the same time has ended or paused as well.

        So all their questions are put at once, and none of them is left running or cancelled half-way.
        """
        while self._active and not self._over:
            await self._changed.wait()
        raise GraphInterrupt(questions)

    async def end(self) -> None:
        """Cancel what still runs, and return once it has ended."""
        self._over = True
        self._changed.tell()
        with anyio.CancelScope(shield=True):
            while self._active:
                for scope in self._active:
                    scope.cancel()
                await self._changed.wait()


def subruns_of(scope: Scope) -> Subruns:
    """Return what keeps track of the subgraphs of a scope's attempt."""
    if not isinstance(scope.subruns, Subruns):
        scope.subruns = Subruns()
    return scope.subruns
