"""A server with and one without transactions, and a saver with collections of its own on each."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from persistence.mongo import MongoDBSaver
from persistence.writer.limits import Limits
from tests.persistence.mongo.server import MongoServer, serving_mongo


@pytest.fixture(scope="session", params=["replica set", "standalone"])
def mongo_server(request: pytest.FixtureRequest) -> Iterator[MongoServer]:
    """A server; one's own is used without its transactions where the test is about a server that has none."""
    with serving_mongo(*(["--standalone"] if request.param == "standalone" else [])) as server:
        if request.param == "standalone":
            server.settings["transactions"] = False
        yield server


@pytest.fixture(autouse=True)
def sockets_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let go of what the driver leaves open if it is closed while it looks for a server that is gone."""
    yield
    if "test_healing" in request.node.nodeid or "test_opening" in request.node.nodeid:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture
async def saver(mongo: dict[str, Any]) -> AsyncIterator[MongoDBSaver]:
    async with MongoDBSaver(**mongo, limits=Limits(attempts=3, first_delay=0.001)) as opened:
        yield opened
