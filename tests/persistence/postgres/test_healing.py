"""Connections that are cut, fall silent, grow stale or find the server gone: the saver goes on by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from persistence.errors import BackendOpenError, TransientBackendError
from persistence.postgres import PostgresSaver
from persistence.writer.limits import Limits
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from tests.persistence.postgres.proxy import Wire
    from tests.persistence.postgres.server import Server, StartedServer

pytestmark = pytest.mark.anyio
QUICK = Limits(attempts=8, first_delay=0.001, longest_delay=0.05)
END_ALL = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"""


async def ids(saver: PostgresSaver) -> list[str]:
    return [one.checkpoint["id"] async for one in saver.alist(config())]


async def fill(saver: PostgresSaver) -> None:
    """Have several connections open."""
    async with anyio.create_task_group() as nursery:
        for _ in range(4):
            nursery.start_soon(saver.aget_tuple, config())


async def test_sessions_that_were_ended_are_replaced(postgres: Server, postgres_url: str) -> None:
    async with PostgresSaver(postgres_url, limits=QUICK) as saver:
        for number in range(8):
            await put(saver, f"{number}", {"a": [number]})
            await fill(saver)
            await anyio.to_thread.run_sync(postgres.rows, END_ALL)
            if number % 2:
                assert (await ids(saver))[0] == f"{number}"
        await put(saver, "8", {"a": [8]})
        assert await ids(saver) == [f"{number}" for number in range(8, -1, -1)]
        assert saver.statistics().failures == 0


async def test_a_wire_that_is_cut_in_the_middle_of_commits(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url, limits=QUICK) as saver:

        async def cut() -> None:
            for _ in range(10):
                await anyio.to_thread.run_sync(wire.sever)

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(cut)
            for number in range(40):
                await put(saver, f"{number:02}", {"a": [number]}, parent=f"{number - 1:02}" if number else None)
        assert await ids(saver) == [f"{number:02}" for number in range(39, -1, -1)]
        assert saver.statistics().failures == 0


async def test_a_wire_that_falls_silent_is_given_up(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url, limits=QUICK, command_timeout=0.2) as saver:
        await put(saver, "1", {"a": [1]})
        await fill(saver)
        await anyio.to_thread.run_sync(wire.silence)
        await put(saver, "2", {"a": [2]})
        await anyio.to_thread.run_sync(wire.silence)
        assert await ids(saver) == ["2", "1"]


async def test_a_server_that_cannot_be_reached_is_a_passing_fault_in_words(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    limits = Limits(attempts=2, first_delay=0.001)
    async with PostgresSaver(url, limits=limits, connect_timeout=1) as saver:
        await put(saver, "1", {"a": [1]})
        wire.refuse(True)
        await anyio.to_thread.run_sync(wire.sever)
        with pytest.raises(TransientBackendError, match="postgres could not answer, the outcome may be unknown"):
            await put(saver, "2", {"a": [2]})
        with pytest.raises(TransientBackendError, match="postgres cannot be read"):
            await saver.aget_tuple(config())
        wire.refuse(False)
        await put(saver, "2", {"a": [2]})
        assert await ids(saver) == ["2", "1"]
        wire.refuse(True)
        with pytest.raises(BackendOpenError, match="postgres cannot be opened: "):
            await PostgresSaver(url, limits=limits).__aenter__()


async def test_connections_that_were_idle_for_long_are_not_used(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url, idle_timeout=1e-9) as saver:
        await put(saver, "1", {"a": [1]})
        connections = wire.accepted
        assert await ids(saver) == ["1"]
        assert wire.accepted > connections


@pytest.mark.slow
@pytest.mark.services
async def test_a_server_that_crashes_and_comes_back(started: StartedServer, postgres_url: str) -> None:
    """What was acknowledged is there, once, and nothing fails: faults last less long than commits are tried."""
    acknowledged: set[str] = set()
    receipts: list[tuple[str, Any]] = []
    limits = Limits(attempts=200, first_delay=0.005, longest_delay=0.05)
    async with PostgresSaver(postgres_url, limits=limits) as saver:

        async def restart() -> None:
            for _ in range(3):
                await anyio.to_thread.run_sync(started.stop)
                await anyio.to_thread.run_sync(started.start)

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(restart)
            for number in range(60):
                name = f"{number:03}"
                parent = f"{number - 1:03}" if number else None
                receipt = await saver.send(saver.encode(unit("t", name, parent=parent, value=[number])))
                receipts.append((name, receipt))
                if number % 3 == 0:
                    await receipt.wait()
                    acknowledged.add(name)
                    stored = await saver.aget_tuple(config("t", name))
                    assert stored is not None
        for name, receipt in receipts:
            await receipt.wait()
            acknowledged.add(name)
        found = await ids(saver)
        assert sorted(found) == sorted(acknowledged)
        assert len(found) == 60
