"""RedisSaver: checkpoints in Redis or Valkey, shared by any number of runs, processes and machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Self

from persistence.redis.backend import RedisBackend
from persistence.redis.options import Options
from persistence.redis.server import Server, Source, checked
from persistence.stores.ttl import expiry, minutes
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from persistence.writer.remote import chosen
from persistence.writer.saver import GroupCommitSaver

if TYPE_CHECKING:
    from persistence.contracts.store import TTLConfig
    from persistence.serde.serializer import Serializer

MINUTE: Final = 60_000
"""Milliseconds."""


class RedisSaver(GroupCommitSaver):
    """Keeps checkpoints on a Redis (6.2 or newer) or Valkey server; no module is needed.

    What was acknowledged is in the server's memory. Whether it survives the server is the server's setting: with
    ``appendonly yes`` and ``appendfsync always`` it is on disk before it is acknowledged; with ``everysec`` the loss of
    power costs about a second; without an append-only file, everything since the last snapshot.

    A batch of units is one call of a script, done as a whole. A connection that was lost is replaced, and what was
    under way on it is tried again, which is safe because every write is idempotent by key; ``limits`` say how often.
    """

    def __init__(
        self,
        source: Source,
        *,
        ttl: TTLConfig | None = None,
        serde: Serializer | None = None,
        limits: Limits = DEFAULT_LIMITS,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Describe a saver; open it with ``async with`` or ``with``.

        ``source`` is a URL (``redis://user:password@host:6379/0``, ``rediss://`` or ``unix://``), a client of
        redis.asyncio, or a function that makes one on the event loop it is called on; a client that the function made
        is closed with the saver, a client that was passed is not. ``ttl`` says how many minutes a thread stays after
        it was last written (``default_ttl``), or read (unless ``refresh_on_read`` is False). The last writer decides:
        a saver without ``ttl`` makes what it writes to stay. ``settings`` are the fields of ``Options`` by name, for
        instance ``pool_size=4`` or ``prefix="shop"``; ``options`` gives them all at once.

        Raises:
            ValueError: The URL is none, or a setting is out of range.
            TypeError: There is no such setting, both ``options`` and settings are given, or the client blocks.
        """
        server = Server(checked(source), chosen(Options, options, settings), limits)
        lifetime = minutes((ttl or {}).get("default_ttl"))
        milliseconds = 0 if lifetime is None else max(1, math.ceil(lifetime * MINUTE))
        backend = RedisBackend(server, milliseconds, refreshes=expiry(ttl).refresh_on_read)
        super().__init__(backend, serde=serde, limits=limits)

    @classmethod
    def from_conn_string(
        cls,
        redis_url: str | None = None,
        *,
        redis_client: Any = None,
        connection_args: dict[str, Any] | None = None,
        ttl: TTLConfig | None = None,
        **settings: Any,
    ) -> Self:
        """Return a saver for a URL, or for a client of one's own; open it with ``async with`` or ``with``."""
        return cls(*given(redis_url, redis_client), ttl=ttl, **with_arguments(settings, connection_args))


def given(url: str | None, client: Any) -> tuple[Source]:
    """Return the one of both that was given. Raises TypeError if it is none or both."""
    if (url is None) == (client is None):
        message = "Pass a URL or redis_client=, one of both."
        raise TypeError(message)
    return (client if url is None else url,)


def with_arguments(settings: dict[str, Any], arguments: dict[str, Any] | None) -> dict[str, Any]:
    """Return the settings, with the driver's arguments under the name that they have here."""
    return settings if arguments is None else {**settings, "connect_arguments": arguments}
