"""A saver that keeps checkpoints in one SQLite file, and a cache and a store that can share it."""

from persistence.sqlite.cache import SqliteCache
from persistence.sqlite.saver import SqliteSaver
from persistence.sqlite.store import SqliteStore

AsyncSqliteSaver = SqliteSaver
AsyncSqliteStore = SqliteStore

__all__ = ["AsyncSqliteSaver", "AsyncSqliteStore", "SqliteCache", "SqliteSaver", "SqliteStore"]
