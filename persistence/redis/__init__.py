"""A saver that keeps checkpoints in Redis or Valkey, and a store and a cache that can share the server."""

try:
    import redis as _driver  # noqa: F401 - only whether it is there
except ModuleNotFoundError as error:
    message = "persistence.redis needs the driver redis-py: pip install 'actorgraph[redis]'."
    raise ModuleNotFoundError(message, name="redis") from error

from persistence.redis.options import Options
from persistence.redis.saver import RedisSaver

AsyncRedisSaver = RedisSaver

__all__ = ["AsyncRedisSaver", "Options", "RedisSaver"]
