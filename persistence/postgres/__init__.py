"""A saver that keeps checkpoints in PostgreSQL, and a store that can share the database."""

try:
    import asyncpg as _driver  # noqa: F401 - only whether it is there
except ModuleNotFoundError as error:
    message = "persistence.postgres needs the driver asyncpg: pip install 'actorgraph[postgres]'."
    raise ModuleNotFoundError(message, name="asyncpg") from error

from persistence.postgres.options import Options
from persistence.postgres.saver import PostgresSaver
from persistence.postgres.store import PostgresStore

AsyncPostgresSaver = PostgresSaver
AsyncPostgresStore = PostgresStore

__all__ = ["AsyncPostgresSaver", "AsyncPostgresStore", "Options", "PostgresSaver", "PostgresStore"]
