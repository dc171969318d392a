"""Where a test keeps its rows: an empty place on each backend, and what can be asked of it."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar

from persistence.mongo import MongoDBSaver
from persistence.postgres import PostgresSaver
from persistence.redis import RedisSaver
from persistence.sqlite import SqliteSaver

if TYPE_CHECKING:
    from persistence.writer.saver import GroupCommitSaver
    from tests.persistence.mongo.server import MongoServer
    from tests.persistence.postgres.server import Server
    from tests.persistence.redis.server import RedisServer

TABLES = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")

END_ALL = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"""


class Place(ABC):
    """An empty place on a backend."""

    rounds: ClassVar[int] = 20
    """How often a test repeats what may go wrong."""

    kind: ClassVar[type[GroupCommitSaver]]

    whole = True
    """Whether what is compared before a commit still stands when it is stored, whatever others do meanwhile."""

    def __init__(self, **given: Any) -> None:
        """Take what makes a saver keep its rows here: plain JSON, so that another process can be told."""
        self.given = given

    def saver(self, **settings: Any) -> GroupCommitSaver:
        """Return a closed saver that keeps its rows here."""
        return self.kind(**{**self.given, **settings})

    @abstractmethod
    def counts(self) -> list[int]:
        """Return how many checkpoints, tasks' writes and blobs are here."""

    def require_empty(self) -> None:
        """Fail if anything is left."""
        assert self.counts() == [0, 0, 0]

    def open_transactions(self) -> int:
        """Return how many connections are in the middle of one, where the server tells."""
        return 0

    def end_sessions(self) -> None:
        """End every connection to the server, from its side."""
        raise NotImplementedError


class SqlitePlace(Place):
    """A file that is not there yet."""

    kind = SqliteSaver

    def saver(self, **settings: Any) -> GroupCommitSaver:
        settings.pop("pool_size", None)
        return super().saver(**settings)

    def counts(self) -> list[int]:
        with closing(sqlite3.connect(self.given["path"])) as raw:
            return [raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]


class PostgresPlace(Place):
    """An empty schema."""

    kind = PostgresSaver

    def __init__(self, server: Server, url: str) -> None:
        """Take a server and the URL of the schema."""
        super().__init__(source=url)
        self.server = server
        self.url = url

    def counts(self) -> list[int]:
        return [self.server.rows(f"SELECT count(*) FROM {table}", url=self.url)[0][0] for table in TABLES]

    def open_transactions(self) -> int:
        found = self.server.rows("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")
        return int(found[0][0])

    def end_sessions(self) -> None:
        self.server.rows(END_ALL)


class RedisPlace(Place):
    """A prefix that no key has."""

    kind = RedisSaver

    def __init__(self, server: RedisServer, url: str, prefix: str) -> None:
        """Take a server, a URL that leads to it, and the prefix."""
        super().__init__(source=url, prefix=prefix)
        self.server = server
        self.prefix = prefix

    def counts(self) -> list[int]:
        """The sets must say the same as the hashes."""
        client, prefix = self.server.client, self.prefix
        sizes = dict.fromkeys(("checkpoints", "writes", "blobs", "spaces", "order", "tasks"), 0)
        for key in self.server.keys(prefix):
            kind = key.decode().removeprefix(f"{prefix}:").partition(":")[0]
            if kind not in {"index", "runs"}:
                sizes[kind] += client.hlen(key) if client.type(key) == b"hash" else client.zcard(key)
        assert sizes["checkpoints"] == sizes["spaces"] == sizes["order"] == client.zcard(f"{prefix}:index")
        assert sizes["writes"] == sizes["tasks"]
        return [sizes["checkpoints"], sizes["writes"], sizes["blobs"]]

    def require_empty(self) -> None:
        assert self.server.keys(self.prefix) == []

    def end_sessions(self) -> None:
        self.server.client.client_kill_filter(_type="normal", skipme=True)


class MongoPlace(Place):
    """A prefix that no collection has."""

    rounds = 8
    kind = MongoDBSaver

    def __init__(self, server: MongoServer, prefix: str) -> None:
        """Take a server and the prefix."""
        super().__init__(source=server.url, prefix=prefix, **server.settings)
        self.whole = server.settings.get("transactions") is not False
        self._server = server

    def counts(self) -> list[int]:
        kinds = self._server.kinds(self.given["prefix"])
        return [kinds.pop(kind, 0) for kind in ("checkpoint", "writes", "blob")]

    def require_empty(self) -> None:
        assert self._server.kinds(self.given["prefix"]) == {}
