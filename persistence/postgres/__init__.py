"""A saver that keeps checkpoints in PostgreSQL."""

try:
    import asyncpg as _driver  # noqa: F401 - only whether it is there
except ModuleNotFoundError as error:
    message = "persistence.postgres needs the driver asyncpg: pip install 'actorgraph[postgres]'."
    raise ModuleNotFoundError(message, name="asyncpg") from error

from persistence.postgres.options import Options
from persistence.postgres.saver import PostgresSaver

AsyncPostgresSaver = PostgresSaver

__all__ = ["AsyncPostgresSaver", "Options", "PostgresSaver"]
