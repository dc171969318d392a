"""A saver that keeps checkpoints in one SQLite file, and a cache that can share it."""

from persistence.sqlite.cache import SqliteCache
from persistence.sqlite.saver import SqliteSaver

AsyncSqliteSaver = SqliteSaver

__all__ = ["AsyncSqliteSaver", "SqliteCache", "SqliteSaver"]
