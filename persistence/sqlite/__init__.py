"""A saver that keeps checkpoints in one SQLite file, and a cache and a store that can share it."""

from persistence.blocking import AwaitedSetup, AwaitedUpkeep
from persistence.sqlite.cache import SqliteCache
from persistence.sqlite.saver import SqliteSaver
from persistence.sqlite.store import SqliteStore


class AsyncSqliteSaver(AwaitedSetup, SqliteSaver):  # type: ignore[misc]  # ``setup`` is awaited here
    """The saver under the name that async programs know, with the ``setup`` that they await."""


class AsyncSqliteStore(AwaitedUpkeep, SqliteStore):  # type: ignore[misc]  # ``setup`` and its like are awaited here
    """The store under the name that async programs know, with the methods that they await."""


__all__ = ["AsyncSqliteSaver", "AsyncSqliteStore", "SqliteCache", "SqliteSaver", "SqliteStore"]
