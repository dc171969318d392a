"""``BlockingStream``: a run as a plain iterator and context manager; a thin door to ``GraphStream``."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Self

from persistence import portal
from persistence.errors import SaverLoopError
from runtime.errors import BlockingCallError

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.lowlevel import EventLoopToken

    from runtime.graph.stream import GraphStream
    from runtime.streaming.hub import HubStatistics

Home = tuple["EventLoopToken | None", int | None]
"""An event loop and its thread; of nothing: the portal's."""

_DONE: Final = object()


def waited(run: Callable[[], Awaitable[Any]], home: Home, instead: str) -> Any:
    """Return what an async function returns on an event loop. Raises BlockingCallError where waiting would deadlock."""
    at, thread = home
    try:
        return portal.call(run, at=at, thread=thread, instead=instead)
    except SaverLoopError as error:
        raise BlockingCallError(str(error)) from error


class BlockingStream(Iterator[Any]):
    """Yields a run's chunks, waiting for each. The run starts with the first one asked for.

    It may be handed to other threads, and closed from any while another waits for a chunk. Dropped, it ends its run but
    does not wait for that, as a GraphStream does: garbage is collected anywhere, also where a lock is held that the run
    wants.
    """

    def __init__(self, make: Callable[[], GraphStream], find_home: Callable[[], Home], instead: str) -> None:
        self._make = make
        self._find_home = find_home
        self._instead = instead
        self._home: Home | None = None
        self._process: int | None = None
        """The process that began to read it. A child that this forks has neither the event loop nor the run."""
        self._stream: GraphStream | None = None
        self._over = False
        self._ended = False
        """Whether the run is known to have ended."""
        self._left = False
        """Whether the caller stopped waiting for a chunk (Ctrl-C): the run was told to end then."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        self._refuse("next()")
        try:
            chunk = self._wait(self._following)
        except Exception:
            self.close()
            raise
        except BaseException:
            self._over = self._left = True
            self._abandon()
            raise
        if chunk is _DONE:
            self._over = self._ended = True
            raise StopIteration
        return chunk

    async def _following(self) -> Any:
        return _DONE if self._over else await anext(self._made(), _DONE)

    def close(self) -> None:
        """End the run; return once every node has stopped and what had finished is saved.

        Where that cannot be waited for, because this is the event loop's own thread or the loop has ended, the run ends
        all the same. Raises BlockingCallError in a node of this very run, which would wait for itself.
        """
        self._refuse("close()")
        self._over = True
        if self._stream is not None and not self._ended:
            try:
                self._wait(self._stream.aclose)
                self._ended = True
            except RuntimeError:
                self._abandon()

    def _abandon(self) -> None:
        if self._stream is not None:
            self._stream.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C does not wait; after a first one nothing is left to wait for. A forked child leaves the run to
        # its parent.
        if not self._left and not self._is_anothers:
            self.close()

    @property
    def durable_upto(self) -> str | None:
        """The id of the run's newest checkpoint that is on disk; None before the first, or without a checkpointer."""
        stream = self._stream
        if stream is None:
            return None
        if self._ended:
            return stream.durable_upto

        async def upto() -> str | None:
            return stream.durable_upto  # while the run goes on, counted on its event loop only

        newest: str | None = self._wait(upto)
        return newest

    def durable(self) -> None:
        """Return once the run is on disk as far as the chunks go that were read: then effects of them may go out.

        What a node told comes to disk with the checkpoint that follows it; until that is made the run goes on, without
        waiting for the reader.

        Raises:
            ConfigError: nothing of the run is kept, or what is kept is its parent's affair.
            StreamOverflowError: too many chunks came meanwhile; read on, and ask later.
            ThreadConflictError: another has the thread by now (FencedError: a later run took it, or it was deleted).
            PersistenceError: what was read could not be stored.
            BlockingCallError: waiting here would deadlock.

        """

        async def durable() -> None:
            await self._made().durable()

        self._refuse("durable()")
        self._wait(durable)

    def statistics(self) -> HubStatistics:
        """Return how full the buffer between run and consumer is and was."""

        async def statistics() -> HubStatistics:
            return self._made().statistics()

        found: HubStatistics = self._wait(statistics)
        return found

    @property
    def _is_anothers(self) -> bool:
        """Whether the run is that of a process which this is a fork of."""
        return self._process not in (None, os.getpid())

    def _refuse(self, what: str) -> None:
        """Raise BlockingCallError in a forked child, and in a node of this very run."""
        if not self._over:
            self._check_process()
        if self._stream is not None and not self._over:
            self._stream.refuse_own(what)

    def _made(self) -> GraphStream:
        """Return the stream; made on the event loop, with the first thing that is asked of it."""
        if self._stream is None:
            self._stream = self._make()
        return self._stream

    def _check_process(self) -> None:
        if self._is_anothers:
            msg = (
                "This stream is read in the process that this one was forked from, and only that one has its run. "
                "Start another run here, with savers that are opened here."
            )
            raise BlockingCallError(msg)

    def _wait(self, function: Callable[[], Awaitable[Any]]) -> Any:
        self._check_process()
        if self._home is None:
            self._home = self._find_home()  # the run stays where it began, whichever thread asks
            self._process = os.getpid()
        return waited(function, self._home, self._instead)
