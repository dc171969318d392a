"""How to reach a server: every number that a saver or store of this backend has, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pymongo import AsyncMongoClient

DEFAULT_DATABASE: Final = "actorgraph"

_OF_THE_SERVER: Final = frozenset({"admin", "config", "local"})
"""Databases that URLs name to log in; nobody keeps data there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a saver or store may hold open, how long it waits, and where its documents are."""

    database: str | None = None
    """Where the collections are; None: the database that the URL names, or ``actorgraph``."""
    prefix: str = "actorgraph"
    """What the collections' names begin with, before an underscore: several applications may share a database."""
    pool_size: int = 10
    """Connections at once, made when needed. Commits use one at a time; the others read."""
    connect_timeout: float = 10.0
    """Seconds until a connection that is not made, or a primary that is not found, is given up."""
    command_timeout: float = 30.0
    """Seconds until a command that is not answered is given up, with its connection: a socket may be half open."""
    acquire_timeout: float = 30.0
    """Seconds to wait for a connection while all are in use."""
    transactions: bool | None = None
    """Whether a batch is one transaction; None: if the server is in a replica set or a sharded cluster."""
    connect_arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Further arguments of PyMongo's client: tlsCAFile, authMechanism, appname and so on."""

    def __post_init__(self) -> None:
        """Refuse what would let nothing through. Raises ValueError."""
        if not self.prefix or "$" in self.prefix or "\0" in self.prefix:
            message = f"prefix must be a text without '$' and NUL, and not empty, it is {self.prefix!r:.80}."
            raise ValueError(message)
        for name in ("pool_size", "connect_timeout", "command_timeout", "acquire_timeout"):
            if not getattr(self, name) > 0:
                message = f"{name} must be positive, it is {getattr(self, name)!r}."
                raise ValueError(message)

    def client(self, url: str) -> AsyncMongoClient[dict[str, Any]]:
        """Return a client for a URL; nothing is connected yet. Raises an error of the driver if the URL is none."""
        arguments: dict[str, Any] = {
            "maxPoolSize": self.pool_size,
            "connectTimeoutMS": round(self.connect_timeout * 1000),
            "serverSelectionTimeoutMS": round(self.connect_timeout * 1000),
            "socketTimeoutMS": round(self.command_timeout * 1000),
            "waitQueueTimeoutMS": round(self.acquire_timeout * 1000),
            **self.connect_arguments,
        }
        return AsyncMongoClient(url, **arguments)

    def database_of(self, client: AsyncMongoClient[dict[str, Any]]) -> str:
        """Return the name of the database to use."""
        if self.database is not None:
            return self.database
        named = client.get_default_database(DEFAULT_DATABASE).name
        return DEFAULT_DATABASE if named in _OF_THE_SERVER else named
