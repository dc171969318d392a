"""LangGraph's databases, empty, and what carries them over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.persistence.migration.peer import Peer, postgres_peer, sqlite_peer


@pytest.fixture(params=["sqlite", "postgres"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Peer:
    """An empty database for LangGraph, of either kind."""
    if request.param == "sqlite":
        return sqlite_peer(tmp_path)
    url: Any = request.getfixturevalue("postgres_url")
    return postgres_peer(url)
