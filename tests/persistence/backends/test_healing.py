"""Connections that are cut, fall silent or find the server gone: savers go on by themselves, on each server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from persistence.errors import BackendOpenError, TransientBackendError
from persistence.writer.limits import Limits
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from persistence.writer.saver import GroupCommitSaver
    from tests.persistence.backends.conftest import Restarting, Wired
    from tests.persistence.backends.places import Place

pytestmark = pytest.mark.anyio
QUICK = Limits(attempts=8, first_delay=0.001, longest_delay=0.05)


async def ids(saver: GroupCommitSaver) -> list[str]:
    """Return the ids of the thread, newest first."""
    return [one.checkpoint["id"] async for one in saver.alist(config())]


async def fill(saver: GroupCommitSaver) -> None:
    """Have several connections open."""
    async with anyio.create_task_group() as nursery:
        for _ in range(4):
            nursery.start_soon(saver.aget_tuple, config())


async def test_connections_that_the_server_ended_are_replaced(server_place: Place) -> None:
    async with server_place.saver(limits=QUICK) as saver:
        for number in range(8):
            await put(saver, f"{number}", {"a": [number]})
            await fill(saver)
            await anyio.to_thread.run_sync(server_place.end_sessions)
            if number % 2:
                assert (await ids(saver))[0] == f"{number}"
        await put(saver, "8", {"a": [8]})
        assert await ids(saver) == [f"{number}" for number in range(8, -1, -1)]
        assert saver.statistics().failures == 0


async def test_a_wire_that_is_cut_in_the_middle_of_commits(wired: Wired) -> None:
    async with wired.place.saver(limits=QUICK) as saver:

        async def cut() -> None:
            for _ in range(10):
                await anyio.to_thread.run_sync(wired.wire.sever)

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(cut)
            for number in range(40):
                await put(saver, f"{number:02}", {"a": [number]}, parent=f"{number - 1:02}" if number else None)
        assert await ids(saver) == [f"{number:02}" for number in range(39, -1, -1)]
        assert saver.statistics().failures == 0


async def test_a_wire_that_falls_silent_is_given_up(wired: Wired) -> None:
    async with wired.place.saver(limits=QUICK, command_timeout=0.2) as saver:
        await put(saver, "1", {"a": [1]})
        await fill(saver)
        await anyio.to_thread.run_sync(wired.wire.silence)
        await put(saver, "2", {"a": [2]})
        await anyio.to_thread.run_sync(wired.wire.silence)
        assert await ids(saver) == ["2", "1"]


async def test_a_server_that_cannot_be_reached_is_a_passing_fault_in_words(wired: Wired) -> None:
    limits = Limits(attempts=2, first_delay=0.001)
    async with wired.place.saver(limits=limits, connect_timeout=1) as saver:
        await put(saver, "1", {"a": [1]})
        wired.wire.refuse(True)
        await anyio.to_thread.run_sync(wired.wire.sever)
        with pytest.raises(TransientBackendError, match=f"{wired.name} could not answer, the outcome may be unknown"):
            await put(saver, "2", {"a": [2]})
        with pytest.raises(TransientBackendError, match=f"{wired.name} cannot be read"):
            await saver.aget_tuple(config())
        wired.wire.refuse(False)
        await put(saver, "2", {"a": [2]})
        assert await ids(saver) == ["2", "1"]
        wired.wire.refuse(True)
        with pytest.raises(BackendOpenError, match=f"{wired.name} cannot be opened: "):
            await wired.place.saver(limits=limits).__aenter__()


@pytest.mark.slow
@pytest.mark.services
async def test_a_server_that_is_killed_and_comes_back(restarting: Restarting) -> None:
    """What was acknowledged is there, once, and nothing fails: faults last less long than commits are tried."""
    acknowledged: set[str] = set()
    receipts: list[tuple[str, Any]] = []
    limits = Limits(attempts=200, first_delay=0.005, longest_delay=0.05)
    async with restarting.place.saver(limits=limits) as saver:

        async def restart() -> None:
            for _ in range(3):
                await anyio.to_thread.run_sync(restarting.stop)
                await anyio.to_thread.run_sync(restarting.start)

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
