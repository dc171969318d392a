"""What every test shares: each async test runs on asyncio and on trio, properties are not timed, servers start once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.persistence.mongo.server import MongoServer, serving_mongo
from tests.persistence.postgres.server import Server, running
from tests.persistence.redis.server import RedisServer, serving

# On top of the profile that hypothesis chose itself (in CI: the same examples every time). How long an example takes
# says how busy the machine is, and nothing about the law.
settings.register_profile(
    "actorgraph",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("actorgraph")

# A shell's background job ignores the keyboard, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BRIDGED = ("test_runs.py", "test_pooler.py", "test_commits.py", "test_store_meaning.py", "test_store_filters.py")
"""Long files on servers whose tests say nothing new on trio; the others, and conformance, run there."""


@pytest.fixture(params=[pytest.param(("asyncio", {}), id="asyncio"), pytest.param(("trio", {}), id="trio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Name the event loop a test runs on."""
    return request.param


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, started when the first test asks for it."""
    with running() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """The URL of an empty schema."""
    with postgres.schema() as url:
        yield url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Valkey server."""
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def mongo_server() -> Iterator[MongoServer]:
    """A MongoDB server, or an emulator of one, with transactions."""
    with serving_mongo() as server:
        yield server


@pytest.fixture
def mongo(mongo_server: MongoServer) -> Iterator[dict[str, Any]]:
    """The source and settings of a saver or store with collections of its own."""
    with mongo_server.prefix() as prefix:
        yield {"source": mongo_server.url, "prefix": prefix, **mongo_server.settings}


@pytest.fixture
def redis_keys(redis_server: RedisServer) -> Iterator[str]:
    """A prefix that no key of the server has."""
    with redis_server.prefix() as prefix:
        yield prefix


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave variants that differ little to those who ask: of the emulated server, which is slow, all but one.

    From trio the other servers are reached over one bridge too; what it promises is tried apart from these files.
    """
    for item in items:
        mongo = "mongo" in item.nodeid and ("trio" in item.name or "standalone" in item.name)
        bridged = "trio" in item.name and ("redis" in item.name or "postgres" in item.nodeid)
        if mongo or (bridged and item.path.name in BRIDGED):
            item.add_marker("sweep")
