"""What tests of runs share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from persistence.memory import InMemoryCache
from persistence.sqlite import SqliteCache


@pytest.fixture(params=["memory", "sqlite"])
async def cache(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    made: Any = InMemoryCache() if request.param == "memory" else SqliteCache(tmp_path / "cache.sqlite")
    async with made as opened:
        yield opened
