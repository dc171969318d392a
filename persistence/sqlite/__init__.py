"""A saver that keeps checkpoints in one SQLite file."""

from persistence.sqlite.saver import SqliteSaver

AsyncSqliteSaver = SqliteSaver

__all__ = ["AsyncSqliteSaver", "SqliteSaver"]
