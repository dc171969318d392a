"""How to reach a server: every number that a saver, store or cache of this backend has, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a saver, store or cache may hold open, how long it waits, and how its keys begin."""

    prefix: str = "actorgraph"
    """What every key begins with, before a colon: several applications may share a server."""
    pool_size: int = 10
    """Connections at once, made when needed. Commits use one at a time; the others read."""
    connect_timeout: float = 10.0
    """Seconds until a connection that is not made is given up."""
    command_timeout: float = 30.0
    """Seconds until a call that is not answered is given up, with its connection: a socket may be half open."""
    acquire_timeout: float = 30.0
    """Seconds to wait for a connection while all are in use."""
    connect_arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Further arguments of redis-py's connections: password, ssl_ca_certs, credential_provider and so on."""

    def __post_init__(self) -> None:
        """Refuse what would let nothing through. Raises ValueError."""
        if not self.prefix:
            message = "prefix must not be empty: it keeps our keys apart from those of others."
            raise ValueError(message)
        for name in ("pool_size", "connect_timeout", "command_timeout", "acquire_timeout"):
            if not getattr(self, name) > 0:
                message = f"{name} must be positive, it is {getattr(self, name)!r}."
                raise ValueError(message)

    def client(self, url: str) -> Redis:
        """Return a client for a URL; nothing is connected yet. Raises ValueError if the URL is none."""
        arguments: dict[str, Any] = {
            "max_connections": self.pool_size,
            "timeout": self.acquire_timeout,
            "socket_connect_timeout": self.connect_timeout,
            "socket_timeout": self.command_timeout,
            # What may be tried again is known here, not to the driver.
            "retry": Retry(NoBackoff(), 0),
            **self.connect_arguments,
        }
        return Redis.from_pool(BlockingConnectionPool.from_url(url, **arguments))
