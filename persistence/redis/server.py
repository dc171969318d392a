"""One server: where its client comes from, how scripts run on it, and how that is tried."""

from __future__ import annotations

import logging
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from redis.asyncio import Redis
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError, ResponseError

from persistence.errors import PersistenceError
from persistence.redis.faults import DRIVER_ERRORS, described, is_lost, read_fault, write_fault
from persistence.writer.remote import Faults, Remote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

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


class Server(Remote[Session]):
    """A Redis or Valkey server as one saver, store or cache uses it."""

    faults = Faults(DRIVER_ERRORS, described, write_fault, read_fault)
    kept = "What was written is as safe as the server keeps it."

    def __init__(self, source: Source, options: Options, limits: Limits) -> None:
        """Describe a server; nothing is connected yet."""
        super().__init__(_name(source), limits)
        self._source = source
        self._options = options
        self._client: Redis | None = None
        self._owned = False

    async def open(self) -> None:
        """Connect once.

        Raises:
            BackendOpenError: It cannot be reached, or refuses.
        """
        facts = await self._enter(self._start)
        policy = facts.get("maxmemory_policy", "noeviction")
        if policy != "noeviction" and facts.get("maxmemory", 0):
            LOG.warning(
                "%s evicts keys when its memory is full (maxmemory-policy %s): parts of threads would vanish. "
                "Set it to noeviction.",
                self.name,
                policy,
            )

    def _connected(self) -> bool:
        return self._client is not None

    def _let_go(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        client, self._client = self._client, None
        return client.aclose if client is not None and self._owned else None

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
        if client is None:
            raise self._closed()
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
