"""Remote: a database server as one saver, store or cache uses it, whichever driver speaks to it."""

from __future__ import annotations

import warnings
import weakref
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import anyio

from persistence.errors import BackendOpenError, PersistenceClosedError, TransientBackendError
from persistence.writer.crossing import Crossing
from persistence.writer.failing import delay

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from persistence.errors import BackendError, PersistenceError
    from persistence.writer.limits import Limits

T = TypeVar("T")
S = TypeVar("S")
O = TypeVar("O")  # noqa: E741 - options


class Faults(NamedTuple):
    """What a driver's errors mean."""

    errors: tuple[type[BaseException], ...]
    """What a call of the driver raises."""
    described: Callable[[BaseException], str]
    """The server's words and what to do."""
    written: Callable[[BaseException, str], BackendError]
    """What a failed write means, on a server of this name."""
    read: Callable[[BaseException, str], PersistenceError]
    """What a failed read means, likewise."""


class Remote(ABC, Generic[S]):
    """A server: opened and closed once, with work on sessions of it that is tried again where a fault may pass.

    The driver works on asyncio. What it does is neither cancelled nor half done, as a crossing keeps it from that.
    """

    faults: ClassVar[Faults]
    kept: ClassVar[str]
    """What becomes of what was written, if nobody closes the server: the end of a warning."""

    def __init__(self, name: str, limits: Limits) -> None:
        """Describe a server by a name without a password; nothing is connected yet."""
        self.name = name
        self._limits = limits
        self._crossing = Crossing()
        self._finalizer: weakref.finalize[..., Remote[S]] | None = None

    async def close(self) -> None:
        """Close every connection that is ours; safe to call again."""
        if self._finalizer is not None:
            self._finalizer.detach()
        leave = self._let_go()
        if leave is not None:
            await self._crossing.finish(leave)
        self._crossing.close()

    async def write(self, work: Callable[[S], Awaitable[T]]) -> T:
        """Do something that may be done twice; a fault that may pass is left to the caller to try again.

        Raises:
            TransientBackendError, BackendError: what the faults make of it.
        """
        self._check()
        try:
            # Under the shield of whoever writes; a deadline that passes there costs the connection, as it should.
            return await self._crossing.pass_on(self._at_work, work)
        except self.faults.errors as error:
            raise self.faults.written(error, self.name) from error

    async def read(self, work: Callable[[S], Awaitable[T]]) -> T:
        """Look something up, again while a fault may pass: as long as commits are tried."""
        return await self._tried(work, self.faults.read)

    async def persist(self, work: Callable[[S], Awaitable[T]]) -> T:
        """Do something that may be done twice, again while a fault may pass."""
        return await self._tried(work, self.faults.written)

    async def _enter(self, start: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Run what connects. Raises BackendOpenError if the server cannot be reached, or refuses."""
        self._crossing.open()
        # Also runs when the interpreter exits, which __del__ may not.
        self._finalizer = weakref.finalize(self, _forgotten, repr(self), self.kept)
        try:
            return await self._crossing.call(start, *args)
        except self.faults.errors as error:
            message = f"{self.name} cannot be opened: {self.faults.described(error)}"
            raise BackendOpenError(message) from error

    async def _tried(
        self, work: Callable[[S], Awaitable[T]], told: Callable[[BaseException, str], PersistenceError]
    ) -> T:
        attempt = 0
        while True:
            attempt += 1
            self._check()
            try:
                return await self._crossing.call(self._at_work, work)
            except self.faults.errors as error:
                fault = told(error, self.name)
                if not isinstance(fault, TransientBackendError) or attempt == self._limits.attempts:
                    raise fault from error
            await anyio.sleep(delay(attempt, self._limits))

    def _check(self) -> None:
        if not self._connected():
            raise self._closed()

    def _closed(self) -> PersistenceClosedError:
        return PersistenceClosedError(f"{self!r} is not open.")

    @abstractmethod
    def _connected(self) -> bool:
        """Whether it was opened and not closed since."""

    @abstractmethod
    async def _at_work(self, work: Callable[[S], Awaitable[T]]) -> T:
        """Do something on a session, in the driver's event loop. Raises PersistenceClosedError if none is open."""

    @abstractmethod
    def _let_go(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """Forget the connections and return what closes them, None if that is not ours to do."""


def chosen(kind: Callable[..., O], options: O | None, settings: dict[str, Any]) -> O:
    """Return the options, given whole or one by one. Raises TypeError if both are."""
    if options is None:
        return kind(**settings)
    if settings:
        message = f"Pass options=, or {', '.join(sorted(settings))} by name, not both."
        raise TypeError(message)
    return options


def _forgotten(what: str, kept: str) -> None:
    warnings.warn(f"{what} was not closed: leave its 'async with'. {kept}", ResourceWarning, stacklevel=2)
