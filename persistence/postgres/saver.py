"""PostgresSaver: checkpoints in PostgreSQL, shared by any number of runs, processes and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from persistence.postgres.backend import Database, PostgresBackend, Source
from persistence.postgres.options import Options
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from persistence.writer.remote import chosen
from persistence.writer.saver import GroupCommitSaver

if TYPE_CHECKING:
    from persistence.serde.serializer import Serializer


class PostgresSaver(GroupCommitSaver):
    """Keeps checkpoints in a PostgreSQL database; tested on 15 and 18.

    What was acknowledged was committed: it survives what the server's own ``fsync`` and ``synchronous_commit`` survive.
    A batch of units is one transaction and one round trip. Opening creates or migrates the tables if need be; where
    they are up to date, it needs no right to create anything.

    A connection that was lost is replaced, and what was under way on it is tried again, which is safe because every
    write is idempotent by key; ``limits`` say how often.
    """

    def __init__(
        self,
        source: Source,
        *,
        serde: Serializer | None = None,
        limits: Limits = DEFAULT_LIMITS,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Describe a saver; open it with ``async with`` or ``with``.

        ``source`` is a URL (``postgresql://user:password@host:5432/database``), an asyncpg pool, or a function that
        makes one on the event loop it is called on; a pool that the function made is closed with the saver, a pool
        that was passed is not. ``settings`` are the fields of ``Options`` by name, for instance ``pool_size=4`` or
        ``transaction_pooler=True``; ``options`` gives them all at once.

        Raises:
            ValueError: The URL is none, or a setting is out of range.
            TypeError: There is no such setting, or both ``options`` and settings are given.
        """
        database = Database(checked(source), chosen(Options, options, settings), limits)
        super().__init__(PostgresBackend(database), serde=serde, limits=limits)

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, pipeline: bool = False, serde: Serializer | None = None, **settings: Any
    ) -> Self:
        """Return a saver for a URL; open it with ``async with`` or ``with``.

        ``pipeline`` is accepted for programs that pass it; a batch is one round trip anyway.
        """
        del pipeline
        return cls(conn_string, serde=serde, **settings)


def checked(source: Source) -> Source:
    """Return the source of connections. Raises ValueError if it is a text but no URL."""
    if isinstance(source, str) and not source.startswith(("postgresql://", "postgres://")):
        message = "Not a PostgreSQL URL: write it as postgresql://user:password@host:5432/database."
        raise ValueError(message)
    return source
