"""What tests of several backends share: servers that are started once, when the first test asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.persistence.postgres.server import Server, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server."""
    with running() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """The URL of an empty schema."""
    with postgres.schema() as url:
        yield url
