"""A started server for those who stop it, and a wire to it for those who cut it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.persistence.postgres.proxy import SOCKET, Wire, wire
from tests.persistence.postgres.server import Server, StartedServer


@pytest.fixture
def started(postgres: Server) -> StartedServer:
    """The server, if the tests started it."""
    if not isinstance(postgres, StartedServer):
        pytest.skip("the environment names the server")
    return postgres


@pytest.fixture
def wired(started: StartedServer, postgres_url: str) -> Iterator[tuple[Wire, str]]:
    """A wire to the server, and the URL of an empty schema through it."""
    with wire(started.socket_folder / SOCKET, SOCKET) as (made, path):
        yield made, postgres_url.replace(str(started.socket_folder), str(path.parent))
