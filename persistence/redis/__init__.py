"""A saver that keeps checkpoints in Redis or Valkey, and a store and a cache that can share the server."""

try:
    import redis as _driver  # noqa: F401 - only whether it is there
except ModuleNotFoundError as error:
    message = "persistence.redis needs the driver redis-py: pip install 'actorgraph[redis]'."
    raise ModuleNotFoundError(message, name="redis") from error

from persistence.redis.cache import RedisCache
from persistence.redis.options import Options
from persistence.redis.saver import RedisSaver
from persistence.redis.store import RedisStore

AsyncRedisSaver = RedisSaver
AsyncRedisStore = RedisStore

__all__ = ["AsyncRedisSaver", "AsyncRedisStore", "Options", "RedisCache", "RedisSaver", "RedisStore"]
