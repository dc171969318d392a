"""MongoDBSaver: checkpoints in MongoDB, shared by any number of runs, processes and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from persistence.mongo.backend import THREADS, MongoBackend
from persistence.mongo.lifetimes import Lifetimes
from persistence.mongo.options import Options
from persistence.mongo.server import Server, Source, checked
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from persistence.writer.remote import chosen
from persistence.writer.saver import GroupCommitSaver

if TYPE_CHECKING:
    from persistence.contracts.store import TTLConfig
    from persistence.serde.serializer import Serializer


class MongoDBSaver(GroupCommitSaver):
    """Keeps checkpoints on a MongoDB server (4.4 or newer).

    What was acknowledged is in the journals of a majority of the replica set, or of the one server.

    In a replica set or a sharded cluster a batch is one transaction. A server that stands alone has none: there a
    batch is written in an order in which nothing half done shows, and completed by the next attempt. Two things it
    cannot do: a unit that lost the race for a head may leave its writes beside the winner's, where only a fork from
    that head meets them; and a thread must not be pruned while another process runs it.

    Values of any size are kept, in pieces if need be. A connection that was lost is replaced, and what was under way
    on it is tried again, which is safe because every write is idempotent by key; ``limits`` say how often.
    """

    def __init__(
        self,
        source: Source,
        *,
        ttl: TTLConfig | float | None = None,
        serde: Serializer | None = None,
        limits: Limits = DEFAULT_LIMITS,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Describe a saver; open it with ``async with`` or ``with``.

        ``source`` is a URL (``mongodb://user:password@host:27017/database`` or ``mongodb+srv://``), a
        ``pymongo.AsyncMongoClient``, or a function that makes one on the event loop it is called on; a client that the
        function made is closed with the saver, a client that was passed is not. ``ttl`` says how many minutes a thread
        stays after it was last written (``default_ttl``), or read (unless ``refresh_on_read`` is False); a plain number
        is seconds after the last write. The last writer decides: a saver without ``ttl`` makes what it writes to stay,
        if it was opened after the first one with ``ttl`` in this collection.
        ``settings`` are the fields of ``Options`` by name, for instance ``pool_size=4`` or ``database="shop"``;
        ``options`` gives them all at once.

        Raises:
            ValueError: The URL is none, or a setting is out of range.
            TypeError: There is no such setting, both ``options`` and settings are given, or the client blocks.
        """
        lifetimes = Lifetimes.given(ttl)
        server = Server(checked(source), chosen(Options, options, settings), limits, THREADS, lifetimes)
        super().__init__(MongoBackend(server), serde=serde, limits=limits)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        db_name: str | None = None,
        *,
        ttl: TTLConfig | float | None = None,
        serde: Serializer | None = None,
        **settings: Any,
    ) -> Self:
        """Return a saver for a URL, and a database if the URL names none; open it with ``async with`` or ``with``."""
        return cls(conn_string, ttl=ttl, serde=serde, **with_database(settings, db_name))


def with_database(settings: dict[str, Any], name: str | None) -> dict[str, Any]:
    """Return the settings, with a database under the name that it has here."""
    return settings if name is None else {**settings, "database": name}
