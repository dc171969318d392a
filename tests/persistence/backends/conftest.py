"""A place on each backend, a server that is stopped and started again, and a wire to one that breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from persistence.writer.limits import Limits
from tests.persistence.backends.places import MongoPlace, Place, PostgresPlace, RedisPlace, SqlitePlace
from tests.persistence.mongo.server import MongoServer, serving_mongo
from tests.persistence.postgres.proxy import SOCKET, Wire, wire
from tests.persistence.postgres.server import StartedServer
from tests.persistence.redis.server import StartedRedis

if TYPE_CHECKING:
    from collections.abc import Callable

    from persistence.writer.saver import GroupCommitSaver

PLACES = ("sqlite", "postgres", "redis", "mongo", "mongo-standalone")
SERVERS = ("postgres", "redis")
"""Those that are real ones, and can be stopped."""


@pytest.fixture(scope="session")
def mongo_standalone() -> Iterator[MongoServer]:
    """A server that has no transactions; one's own is used without them."""
    with serving_mongo("--standalone") as server:
        server.settings["transactions"] = False
        yield server


def place_of(name: str, request: pytest.FixtureRequest) -> Place:
    """Return an empty place on the named backend."""
    if name == "sqlite":
        return SqlitePlace(path=str(request.getfixturevalue("tmp_path") / "threads.sqlite"))
    if name == "postgres":
        return PostgresPlace(request.getfixturevalue("postgres"), request.getfixturevalue("postgres_url"))
    if name == "redis":
        server = request.getfixturevalue("redis_server")
        return RedisPlace(server, server.url, request.getfixturevalue("redis_keys"))
    raise KeyError(name)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty place on each backend."""
    if not request.param.startswith("mongo"):
        yield place_of(request.param, request)
        return
    fixture = "mongo_server" if request.param == "mongo" else "mongo_standalone"
    server: MongoServer = request.getfixturevalue(fixture)
    with server.prefix() as prefix:
        yield MongoPlace(server, prefix)


@pytest.fixture(params=SERVERS)
def server_place(request: pytest.FixtureRequest) -> Place:
    """An empty place on each server that is a real one."""
    return place_of(request.param, request)


@pytest.fixture
async def saver(place: Place) -> AsyncIterator[GroupCommitSaver]:
    """An open saver on each backend, which does not try for long."""
    async with place.saver(limits=Limits(attempts=3, first_delay=0.001)) as opened:
        yield opened


class Restarting(NamedTuple):
    """A place on a server that can be stopped without a word, and started again."""

    place: Place
    stop: Callable[[], None]
    start: Callable[[], None]


@pytest.fixture
def restarting(server_place: Place) -> Restarting:
    """A place on a server that can be stopped, if the tests started it."""
    server = started(server_place)
    return Restarting(server_place, server.stop if isinstance(server, StartedServer) else server.kill, server.start)


class Wired(NamedTuple):
    """A place that is reached through a wire."""

    place: Place
    wire: Wire
    name: str
    """What errors call it."""


@pytest.fixture
def wired(server_place: Place) -> Iterator[Wired]:
    """A place on each server, through a wire."""
    server = started(server_place)
    if isinstance(server, StartedServer):
        assert isinstance(server_place, PostgresPlace)
        with wire(server.socket_folder / SOCKET, SOCKET) as (made, path):
            url = server_place.url.replace(str(server.socket_folder), str(path.parent))
            yield Wired(PostgresPlace(server, url), made, "postgres")
        return
    assert isinstance(server_place, RedisPlace)
    with wire(server.socket, "wire.sock") as (made, path):
        yield Wired(RedisPlace(server, f"unix://{path}", server_place.prefix), made, "wire.sock")


def started(place: Place) -> StartedServer | StartedRedis:
    """Return the server of a place; skips the test if the environment names it."""
    server: Any = getattr(place, "server", None)
    if not isinstance(server, StartedServer | StartedRedis):
        pytest.skip("the environment names the server")
    return server
