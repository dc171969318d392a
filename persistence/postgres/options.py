"""How to reach a server: every number that a saver or store of this backend has, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypedDict

import asyncpg

SESSION: Final = {"default_transaction_isolation": "read committed", "jit": "off"}
"""What each own connection starts with, unless ``connect_arguments`` say otherwise.

Heads are compared in READ COMMITTED. The server would compile queries whose cost it overrates, as it does not know how
many rows a checkpoint rests on; that takes a hundred times as long as they do.
"""


class PoolConfig(TypedDict, total=False):
    """A pool's settings as LangGraph's programs give them; here ``pool_size`` says it all."""

    min_size: int
    """Accepted: connections are made when they are needed."""
    max_size: int | None
    """The ``pool_size``; its default for None."""
    kwargs: dict[str, Any]
    """The ``connect_arguments``: those of ``asyncpg.connect``, not of psycopg."""


def pooled(config: PoolConfig | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with those of a pool's config. Raises TypeError if it holds others."""
    given: dict[str, Any] = dict(config or {})
    unknown = given.keys() - PoolConfig.__annotations__.keys()
    if unknown:
        message = f"Unknown in pool_config: {sorted(unknown)}. Give settings of this package by name, as pool_size=4."
        raise TypeError(message)
    named = {"pool_size": given.get("max_size"), "connect_arguments": given.get("kwargs")}
    return {**{name: value for name, value in named.items() if value is not None}, **settings}


LEARNED: Final = "SELECT $1::bytea[], $2::float8[], $3::int4[], $4::int8[]"
"""Types of our statements that the driver looks up in the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a saver or store may hold open and how long it waits."""

    pool_size: int = 10
    """Connections at once, made when needed. Commits use one at a time; the others read."""
    connect_timeout: float = 10.0
    """Seconds until a connection that is not made is given up."""
    command_timeout: float = 30.0
    """Seconds until a statement that is not answered is given up, with its connection: a socket may be half open."""
    acquire_timeout: float = 30.0
    """Seconds to wait for a connection while all are lent."""
    idle_timeout: float = 300.0
    """Seconds after which an unused connection is closed: what lies between may have forgotten it."""
    transaction_pooler: bool = False
    """Set it behind a pooler that hands out server connections per transaction: no statement is named then."""
    connect_arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Further arguments of ``asyncpg.connect``: ssl, a password that is fetched anew, and so on."""

    def __post_init__(self) -> None:
        """Refuse numbers that would let nothing through. Raises ValueError."""
        for name in ("pool_size", "connect_timeout", "command_timeout", "acquire_timeout", "idle_timeout"):
            if not getattr(self, name) > 0:
                message = f"{name} must be positive, it is {getattr(self, name)!r}."
                raise ValueError(message)

    async def connect(self, url: str) -> asyncpg.Connection:
        """Return a new connection. Raises an error of the driver."""
        arguments: dict[str, Any] = {"timeout": self.connect_timeout, **self.connect_arguments}
        if self.transaction_pooler:
            arguments["statement_cache_size"] = 0  # and poolers refuse settings that they do not know
        else:
            arguments["server_settings"] = {**SESSION, **arguments.get("server_settings", {})}
        connection = await asyncpg.connect(url, **arguments)
        if self.transaction_pooler:
            await self._learn(connection)
        return connection

    async def _learn(self, connection: asyncpg.Connection) -> None:
        """Have the driver look up the types that it does not know.

        It does so once a connection, and changes a setting of the session meanwhile, which others would get with the
        session. Rolled back, the setting is as it was.
        """
        try:
            await connection.execute("BEGIN", timeout=self.command_timeout)
            await connection.fetch(LEARNED, None, None, None, None, timeout=self.command_timeout)
            await connection.execute("ROLLBACK", timeout=self.command_timeout)
        except BaseException:
            connection.terminate()
            raise
