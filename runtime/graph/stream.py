"""``GraphStream``: a run as an async iterator and context manager.

An iterator object, not an async generator: a generator that holds a nursery breaks when it is left early or closed from
another task. The run lives in a host task and talks to the consumer through the hub.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self

import anyio

from persistence.outlasting import outlast
from runtime.errors import BlockingCallError
from runtime.run.hosting import Host
from runtime.streaming.hub import END_OF_STREAM, Hub, HubStatistics, StreamClosedError

if TYPE_CHECKING:
    from types import TracebackType


class GraphStream:
    """Yields a run's chunks. The run starts with the first one asked for."""

    def __init__(self, run: Callable[[], Awaitable[Any]], hub: Hub) -> None:
        self._run = run
        self._hub = hub
        self._host: Host | None = None
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if self._over:
            raise StopAsyncIteration
        self.refuse_own("anext()")
        if self._host is None:
            self._host = Host()
            self._host.start(self._produce(self._run, self._hub))
        try:
            chunk = await self._hub.get()
        except BaseException:
            await self.aclose()
            raise
        if type(chunk) is tuple and len(chunk) == 2 and chunk[0] is END_OF_STREAM:  # noqa: PLR2004 - the end mark
            self._over = True
            await self._host.ended()
            if chunk[1] is not None:
                try:
                    raise chunk[1]
                finally:
                    del chunk  # the error's traceback refers to this frame
            raise StopAsyncIteration
        return chunk

    @staticmethod
    def _produce(run: Callable[[], Awaitable[Any]], hub: Hub) -> Callable[[], Awaitable[None]]:
        """Return the host's function; it must not refer to the stream, which could never be dropped then."""

        async def produce() -> None:
            error: BaseException | None = None
            try:
                await run()
            except StreamClosedError:
                return
            except anyio.get_cancelled_exc_class():
                hub.finish(None)
                raise
            except BaseException as raised:  # noqa: BLE001 - handed to the consumer
                error = raised
            finally:
                hub.progress.end()
            try:
                hub.finish(error)
            finally:
                del error  # its traceback refers to this frame

        return produce

    async def aclose(self) -> None:
        """End the run; return once every node has stopped and what had finished is saved.

        Raises BlockingCallError in a node of this very run, which would wait for itself.
        """
        self.refuse_own("aclose()")
        self._over = True
        self._hub.close()
        if self._host is not None:
            self._host.cancel()
            await outlast(self._host.ended)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def durable_upto(self) -> str | None:
        """The id of the run's newest checkpoint that is on disk; None before the first, or without a checkpointer."""
        return self._hub.progress.upto

    async def durable(self) -> None:
        """Return once the run is on disk as far as the chunks go that were read: then effects of them may go out.

        What a node told comes to disk with the checkpoint that follows it; until that is made the run goes on, without
        waiting for the reader.

        Raises:
            ConfigError: nothing of the run is kept, or what is kept is its parent's affair.
            StreamOverflowError: too many chunks came meanwhile; read on, and ask later.
            ThreadConflictError: another has the thread by now (FencedError: a later run took it, or it was deleted).
            PersistenceError: what was read could not be stored.

        """
        await self._hub.durable()

    def statistics(self) -> HubStatistics:
        """Return how full the buffer between run and consumer is and was."""
        return self._hub.statistics()

    def refuse_own(self, what: str) -> None:
        """Raise BlockingCallError if the caller is code of a node of this very run, or of a run inside it.

        Also beside the node's own line of work: a task group of it would wait for the caller.
        """
        if self._host is not None and self._host.waits_for_caller:
            msg = (
                f"{what} was called by a node of the run that it waits for, or of a graph that this runs: the run "
                "would wait for the node, and the node for the run. Leave the stream to those who started it; a node "
                "ends its run by raising an error, or by Runtime.control.request_drain()."
            )
            raise BlockingCallError(msg)

    def abandon(self) -> None:
        """End the run without waiting for that; safe in any thread."""
        if not self._over and self._host is not None:
            self._host.abandon(self._hub.close)
        self._over = True

    def __del__(self) -> None:
        self.abandon()
