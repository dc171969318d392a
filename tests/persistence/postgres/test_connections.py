"""Connections to PostgreSQL that grew stale, or fell silent at the worst moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
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


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_pool_is_whole_after_calls_that_were_cancelled_anywhere(postgres: Server, postgres_url: str) -> None:
    """While they waited for a connection, connected, or waited for an answer."""
    async with asyncpg.create_pool(postgres_url, min_size=0, max_size=3) as pool:
        async with PostgresSaver(pool) as saver:
            for number in range(100):
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as nursery:
                        for part in range(3):
                            nursery.start_soon(put, saver, f"{number:03}-{part}", {"a": [number]})
                            nursery.start_soon(saver.aget_tuple, config())
                        for _ in range(number % 25):
                            await anyio.lowlevel.checkpoint()
                        scope.cancel()
            held = [await pool.acquire() for _ in range(3)]
            for one in held:
                await pool.release(one)
            assert (pool.get_idle_size(), pool.get_size()) == (3, 3)
            await put(saver, "last", {"a": [1]})
        states = "SELECT DISTINCT state FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state LIKE 'idle in%'"
        assert await anyio.to_thread.run_sync(postgres.rows, states) == []
