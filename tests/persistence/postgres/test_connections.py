"""Connections to PostgreSQL that grew stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from persistence.postgres import PostgresSaver
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from tests.persistence.postgres.proxy import Wire

pytestmark = pytest.mark.anyio


async def test_connections_that_were_idle_for_long_are_not_used(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url, idle_timeout=1e-9) as saver:
        await put(saver, "1", {"a": [1]})
        connections = wire.accepted
        assert [one.checkpoint["id"] async for one in saver.alist(config())] == ["1"]
        assert wire.accepted > connections
