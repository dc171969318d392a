"""Connections to PostgreSQL that grew stale, or fell silent at the worst moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import asyncpg
import pytest

from persistence.postgres import PostgresSaver
from persistence.postgres.faults import DRIVER_ERRORS, is_lost, passes
from persistence.postgres.sessions import Session
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from tests.persistence.postgres.proxy import Wire
    from tests.persistence.postgres.server import Server

pytestmark = pytest.mark.anyio


async def test_connections_that_were_idle_for_long_are_not_used(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url, idle_timeout=1e-9) as saver:
        await put(saver, "1", {"a": [1]})
        connections = wire.accepted
        assert [one.checkpoint["id"] async for one in saver.alist(config())] == ["1"]
        assert wire.accepted > connections


def test_who_falls_silent_in_the_middle_of_a_transaction_keeps_nobody_waiting(postgres: Server) -> None:
    """What it locked is free again, and it is told by a fault that passes."""

    async def story() -> None:
        connection = await asyncpg.connect(postgres.url)
        session = Session(connection, 0.2, pooler=False)
        with pytest.raises(DRIVER_ERRORS) as told:
            async with session.transaction():
                await session.rows("SELECT pg_advisory_xact_lock(77)")
                await anyio.to_thread.run_sync(postgres.rows, "SELECT pg_advisory_xact_lock(77)")
        assert is_lost(told.value)
        assert passes(told.value)
        connection.terminate()

    anyio.run(story)
