"""Every store passes the same tests: the one in memory, the one in a file and those on servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from persistence.memory import InMemoryStore
from persistence.mongo import MongoDBStore
from persistence.postgres import PostgresStore
from persistence.redis import RedisStore
from persistence.sqlite import SqliteStore
from persistence.stores.managed import ManagedStore
from tests.persistence.stores.clocks import Clock

OpenStore: TypeAlias = Callable[..., Awaitable[ManagedStore]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.sqlite"


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis", "mongo"])
async def open_store(request: pytest.FixtureRequest, path: Path, clock: Clock) -> AsyncIterator[OpenStore]:
    """Return what opens a store with options; it is closed after the test."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    keys: Any = {}
    if request.param == "mongo":
        keys = request.getfixturevalue("mongo")
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url
        keys = {"prefix": request.getfixturevalue("redis_keys")}
    async with AsyncExitStack() as opened:

        async def make(**options: Any) -> ManagedStore:
            given = {"clock": clock, **options}
            store: ManagedStore
            if request.param == "memory":
                store = InMemoryStore(**given)
            elif request.param == "postgres":
                store = PostgresStore(url, **given)
            elif request.param == "mongo":
                store = MongoDBStore(**keys, **given)
            elif request.param == "redis":
                store = RedisStore(url, **keys, **given)
            else:
                store = SqliteStore(path, **given)
            return await opened.enter_async_context(store)

        yield make


@pytest.fixture
async def store(open_store: OpenStore) -> ManagedStore:
    return await open_store()
