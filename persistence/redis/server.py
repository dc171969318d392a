"""One server: where its client comes from, how scripts run on it, and how that is tried."""

from __future__ import annotations

import logging
import warnings
import weakref
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import anyio
import msgspec
from redis.asyncio import Redis
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError, ResponseError

from persistence.errors import BackendOpenError, PersistenceClosedError, PersistenceError, TransientBackendError
from persistence.outlasting import outlast
from persistence.redis.faults import DRIVER_ERRORS, described, is_lost, read_fault, write_fault
from persistence.writer.crossing import Crossing
from persistence.writer.failing import delay

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from persistence.redis.options import Options
    from persistence.redis.scripts import Script
    from persistence.writer.limits import Limits

T = TypeVar("T")

Source: TypeAlias = "str | Redis | Callable[[], Any]"
"""A URL, a client, or a function that makes a client on the event loop it will be used on."""

SCHEMES: Final = ("redis://", "rediss://", "unix://")

LOG: Final = logging.getLogger("actorgraph")

_encode: Final = msgspec.msgpack.Encoder().encode
_sizes: Final = msgspec.msgpack.Decoder(list[int]).decode


def unpacked(sizes: bytes, body: bytes) -> list[Any]:
    """Return the texts of an answer that came as one, None for those that are not there."""
    found: list[bytes | None] = []
    start = 0
    for size in _sizes(sizes):
        if size < 0:
            found.append(None)
        else:
            found.append(body[start : start + size])
            start += size
    return found


class Session:
    """A client at work."""

    __slots__ = ("_client", "_prefix")

    def __init__(self, client: Any, prefix: str) -> None:
        """Run scripts on keys that begin with a prefix."""
        self._client = client
        self._prefix = prefix

    async def run(self, script: Script, job: object, values: Sequence[bytes] = ()) -> Any:
        """Run a script: one round trip, and nobody else's command in between. The server is sent its text once.

        What it is to do travels as msgpack, of texts and numbers only, and what it is to store as arguments; so
        nothing that is given becomes part of the script.
        """
        # The key is there for whatever stands between and chooses a server by it.
        given = 1, f"{self._prefix}:index", self._prefix, _encode(job), *values
        try:
            return await self._command("EVALSHA", script.digest, *given)
        except NoScriptError:
            return await self._command("EVAL", script.text, *given)

    async def facts(self) -> dict[str, Any]:
        """Return what the server tells of its memory; nothing if it may not."""
        try:
            told: dict[str, Any] = await self._command("INFO", "memory")
        except DRIVER_ERRORS as error:
            if not isinstance(error, ResponseError):
                raise
            return {}
        return told

    async def _command(self, *words: object) -> Any:
        # A client of one's own may be set to turn answers into text.
        return await self._client.execute_command(*words, **{NEVER_DECODE: True})


class Server:
    """A Redis or Valkey server as one saver, store or cache uses it."""

    def __init__(self, source: Source, options: Options, limits: Limits) -> None:
        """Describe a server; nothing is connected yet."""
        self._source = source
        self._options = options
        self._limits = limits
        self._crossing = Crossing()
        self._client: Redis | None = None
        self._owned = False
        self._finalizer: weakref.finalize[..., Server] | None = None
        self.name = _name(source)

    async def open(self) -> None:
        """Connect once.

        Raises:
            BackendOpenError: It cannot be reached, or refuses.
        """
        self._crossing.open()
        # Also runs when the interpreter exits, which __del__ may not.
        self._finalizer = weakref.finalize(self, _forgotten, repr(self))
        try:
            facts = await self._crossing.call(self._start)
        except DRIVER_ERRORS as error:
            message = f"{self.name} cannot be opened: {described(error)}"
            raise BackendOpenError(message) from error
        policy = facts.get("maxmemory_policy", "noeviction")
        if policy != "noeviction" and facts.get("maxmemory", 0):
            LOG.warning(
                "%s evicts keys when its memory is full (maxmemory-policy %s): parts of threads would vanish. "
                "Set it to noeviction.",
                self.name,
                policy,
            )

    async def close(self) -> None:
        """Close every connection that is ours; safe to call again."""
        if self._finalizer is not None:
            self._finalizer.detach()
        client, self._client = self._client, None
        if client is not None and self._owned:

            async def leave() -> None:
                await self._crossing.call(client.aclose)

            await outlast(leave)
        self._crossing.close()

    async def write(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do something that may be done twice; a fault that may pass is left to the caller to try again.

        Raises:
            TransientBackendError, BackendError: what ``write_fault`` makes of it.
        """
        self._check()
        try:
            # Under the shield of whoever writes; a deadline that passes there costs the connection, as it should.
            return await self._crossing.pass_on(self._at_work, work)
        except DRIVER_ERRORS as error:
            raise write_fault(error, self.name) from error

    async def read(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Look something up, again while a fault may pass: as long as commits are tried."""
        return await self._tried(work, read_fault)

    async def persist(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do something that may be done twice, again while a fault may pass."""
        return await self._tried(work, write_fault)

    async def _tried(
        self, work: Callable[[Session], Awaitable[T]], told: Callable[[BaseException, str], PersistenceError]
    ) -> T:
        attempt = 0
        while True:
            attempt += 1
            self._check()
            try:
                return await self._crossing.call(self._at_work, work)
            except DRIVER_ERRORS as error:
                fault = told(error, self.name)
                if not isinstance(fault, TransientBackendError) or attempt == self._limits.attempts:
                    raise fault from error
            await anyio.sleep(delay(attempt, self._limits))

    def _check(self) -> None:
        if self._client is None:
            message = f"{self!r} is not open."
            raise PersistenceClosedError(message)

    async def _start(self) -> dict[str, Any]:
        self._client = await self._made()
        return await Session(self._client, self._options.prefix).facts()

    async def _made(self) -> Redis:
        if isinstance(self._source, str):
            self._owned = True
            return self._options.client(self._source)
        if isinstance(self._source, Redis):
            if self._crossing.bridged:
                message = (
                    "On trio the driver works on an asyncio loop of its own, where this client is not: pass a URL, or "
                    "a function that makes the client (lambda: redis.asyncio.Redis(...))."
                )
                raise PersistenceError(message)
            return self._source
        client: Any = self._source()
        if isawaitable(client):
            client = await client
        if not isinstance(client, Redis):
            message = f"The function made a {type(client).__name__}, not a client of redis.asyncio."
            raise PersistenceError(message)
        self._owned = True
        return client

    async def _at_work(self, work: Callable[[Session], Awaitable[T]]) -> T:
        client = self._client
        assert client is not None  # noqa: S101 - closing waits for whoever got here
        try:
            return await work(Session(client, self._options.prefix))
        except DRIVER_ERRORS as error:
            if is_lost(error):
                await client.connection_pool.disconnect(inuse_connections=False)
            raise

    def __repr__(self) -> str:
        """Name the server, without its password."""
        return f"<Redis {self.name}>"


def checked(source: Source) -> Source:
    """Return where a client comes from.

    Raises:
        ValueError: It is a text but no URL.
        TypeError: It is a client that blocks.
    """
    if isinstance(source, str):
        if not source.startswith(SCHEMES):
            message = "Not a Redis URL: write it as redis://user:password@host:6379/0, or unix:///path/to/socket."
            raise ValueError(message)
    elif not isinstance(source, Redis) and (not callable(source) or hasattr(source, "execute_command")):
        message = (
            f"Pass a URL, a client of redis.asyncio or a function that makes one, not a {type(source).__module__}."
            f"{type(source).__name__}: what blocks would hold up the event loop, and clusters are not supported."
        )
        raise TypeError(message)
    return source


def _name(source: Source) -> str:
    """Return what to call a server in messages: host and number, never a password."""
    if not isinstance(source, str):
        return "the server of the given client"
    parts = urlsplit(source)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def _forgotten(what: str) -> None:
    warnings.warn(
        f"{what} was not closed: leave its 'async with'. What was written is as safe as the server keeps it.",
        ResourceWarning,
        stacklevel=2,
    )
