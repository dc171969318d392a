"""A saver that keeps checkpoints in Redis or Valkey, and a store and a cache that can share the server."""

try:
    import redis as _driver  # noqa: F401 - only whether it is there
except ModuleNotFoundError as error:
    message = "persistence.redis needs the driver redis-py: pip install 'actorgraph[redis]'."
    raise ModuleNotFoundError(message, name="redis") from error

from persistence.blocking import AwaitedSetup, AwaitedUpkeep
from persistence.redis.cache import RedisCache
from persistence.redis.options import Options
from persistence.redis.saver import RedisSaver
from persistence.redis.store import RedisStore


class AsyncRedisSaver(AwaitedSetup, RedisSaver):  # type: ignore[misc]  # ``setup`` is awaited here
    """The saver under the name that async programs know, with the ``setup`` that they await."""


class AsyncRedisStore(AwaitedUpkeep, RedisStore):  # type: ignore[misc]  # ``setup`` and its like are awaited here
    """The store under the name that async programs know, with the methods that they await."""


__all__ = ["AsyncRedisSaver", "AsyncRedisStore", "Options", "RedisCache", "RedisSaver", "RedisStore"]
