"""A saver that keeps checkpoints in PostgreSQL, and a store that can share the database."""

try:
    import asyncpg as _driver  # noqa: F401 - only whether it is there
except ModuleNotFoundError as error:
    message = "persistence.postgres needs the driver asyncpg: pip install 'actorgraph[postgres]'."
    raise ModuleNotFoundError(message, name="asyncpg") from error

from persistence.blocking import AwaitedSetup, AwaitedUpkeep
from persistence.postgres.options import Options, PoolConfig
from persistence.postgres.saver import PostgresSaver
from persistence.postgres.store import PostgresStore


class AsyncPostgresSaver(AwaitedSetup, PostgresSaver):  # type: ignore[misc]  # ``setup`` is awaited here
    """The saver under the name that async programs know, with the ``setup`` that they await."""


class AsyncPostgresStore(AwaitedUpkeep, PostgresStore):  # type: ignore[misc]  # ``setup`` and its like are awaited here
    """The store under the name that async programs know, with the methods that they await."""


__all__ = ["AsyncPostgresSaver", "AsyncPostgresStore", "Options", "PoolConfig", "PostgresSaver", "PostgresStore"]
