"""What the acceptance stories share: the savers they run on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A path for a fresh SQLite file."""
    return str(tmp_path / "threads.sqlite")


@pytest.fixture(params=["memory", "sqlite"])
async def saver(request: pytest.FixtureRequest, database: str) -> AsyncIterator[Any]:
    """An open saver of each kind, for async tests."""
    if request.param == "memory":
        yield InMemorySaver()
    else:
        async with SqliteSaver.from_conn_string(database) as opened:
            yield opened


@pytest.fixture(params=["memory", "sqlite"])
def blocking_saver(request: pytest.FixtureRequest, database: str) -> Iterator[Any]:
    """An open saver of each kind, for tests that use the blocking API."""
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(database) as opened:
            opened.setup()
            yield opened
