"""Empty databases on servers, by the URLs that a user would give."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.persistence.redis.server import StartedRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.persistence.mongo.server import MongoServer
    from tests.persistence.redis.server import RedisServer

NUMBER = 7
"""A database of the server that no other test uses."""


@contextmanager
def empty_redis(server: RedisServer) -> Iterator[str]:
    """Yield the URL of a numbered database that is emptied afterwards; skips the test on a server of one's own."""
    if not isinstance(server, StartedRedis):
        pytest.skip("the environment names the server")
    try:
        yield f"{server.url}?db={NUMBER}"
    finally:
        server.client.execute_command("SELECT", NUMBER)
        server.client.flushdb()
        server.client.execute_command("SELECT", 0)


@contextmanager
def empty_mongo(server: MongoServer) -> Iterator[str]:
    """Yield the URL of a database that is dropped afterwards."""
    name = f"actorgraph_test_{os.getpid()}"
    start, _, end = server.url.partition("?")
    host = "/".join(start.split("/")[:3])
    try:
        yield f"{host}/{name}{'?' if end else ''}{end}"
    finally:
        server.client.drop_database(name)
