"""InMemorySaver: checkpoints for tests, notebooks and programs that need no history after they end."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Self

from persistence.errors import PersistenceError
from persistence.memory.tables import Tables
from persistence.writer.contract import RowSaver
from persistence.writer.receipts import DONE, Done

if TYPE_CHECKING:
    from types import TracebackType

    from persistence.contracts.backend import Page, Query, Request
    from persistence.serde.serializer import Serializer


class InMemorySaver(RowSaver):
    """Keeps encoded rows in this process's memory.

    Values are encoded like in a database, so no two readers share an object and whatever works here works there.
    It needs no opening, and any event loop and thread may use it at once.
    """

    inline = True
    home_token: None = None
    home_thread: None = None

    def __init__(self, *, serde: Serializer | None = None) -> None:
        """Make an empty saver; ``serde`` turns values into bytes, with the safe defaults if it is None."""
        super().__init__(serde=serde)
        self._tables = Tables()
        self._lock = Lock()

    def send_nowait(self, request: Request) -> Done:
        """Apply a request; it is done, or has failed, when this returns, and there is always room."""
        try:
            with self._lock:
                self._tables.apply(request)
        except PersistenceError as error:
            return Done(error)
        return DONE

    async def send(self, request: Request) -> Done:
        """Apply a request; it is done when this returns."""
        return self.send_nowait(request)

    async def _submit(self, request: Request) -> None:
        await self.send_nowait(request).wait()

    async def _load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        with self._lock:
            return self._tables.load(thread_id, checkpoint_ns, checkpoint_id)

    async def _list(self, query: Query) -> Page:
        with self._lock:
            return self._tables.page(query)

    async def __aenter__(self) -> Self:
        """Return the saver; there is nothing to open."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Keep everything: the saver can be used again."""

    def __repr__(self) -> str:
        """Tell how much it holds."""
        return f"<InMemorySaver: {len(self._tables.threads)} threads>"
