"""GroupCommitSaver: opening, closing, cancelling and reading over a backend that misbehaves on command."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from persistence.contracts.saver import BaseCheckpointSaver, UnitSaver
from persistence.errors import (
    BackendError,
    BackendOpenError,
    PersistenceClosedError,
    PersistenceError,
    SaverLoopError,
    TransientBackendError,
)
from persistence.memory import InMemorySaver, MemorySaver
from persistence.writer.limits import Limits
from persistence.writer.saver import GroupCommitSaver
from tests.persistence.writer.faults import FaultyBackend
from tests.persistence.writer.samples import config, put, unit

pytestmark = pytest.mark.anyio


def test_savers_offer_both_doors() -> None:
    for saver in (GroupCommitSaver(FaultyBackend()), InMemorySaver()):
        assert isinstance(saver, UnitSaver)
        assert isinstance(saver, BaseCheckpointSaver)
    assert MemorySaver is InMemorySaver


async def test_it_commits_what_was_accepted_before_it_closes() -> None:
    backend = FaultyBackend()
    async with GroupCommitSaver(backend) as saver:
        receipts = [saver.send_nowait(saver.encode(unit("t", f"{number}"))) for number in range(5)]
        assert "open" in repr(saver)
    assert all(receipt.done and receipt.error is None for receipt in receipts)
    assert (backend.opened, backend.closed) == (1, 1)
    assert "closed" in repr(saver)


async def test_it_can_be_opened_again_but_not_twice_at_once() -> None:
    saver = GroupCommitSaver(FaultyBackend())
    async with saver:
        await put(saver, "1", {"a": 1})
        with pytest.raises(PersistenceError, match="open already"):
            await saver.__aenter__()
    async with saver:
        assert await saver.aget_tuple(config()) is not None
        await saver.asetup()
        assert saver.statistics().units == 0


async def test_a_closed_saver_says_what_to_do() -> None:
    saver = GroupCommitSaver(FaultyBackend())
    request = saver.encode(unit("t", "1"))
    with pytest.raises(PersistenceClosedError, match="async with saver"):
        saver.send_nowait(request)
    for call in (
        saver.send(request),
        put(saver, "1", {}),
        saver.aget_tuple(config()),
        saver.adelete_thread("t"),
        saver.asetup(),
        anext(saver.alist(None)),
    ):
        with pytest.raises(PersistenceClosedError, match="async with saver"):
            await call
    with pytest.raises(PersistenceClosedError):
        saver.statistics()
    await saver.__aexit__(None, None, None)
    assert (saver.home_token, saver.home_thread) == (None, None)


async def test_an_opening_that_fails_leaves_it_closed() -> None:
    class Unopened(FaultyBackend):
        async def open(self) -> None:
            message = "no such directory"
            raise BackendOpenError(message)

    backend = Unopened()
    saver = GroupCommitSaver(backend)
    with pytest.raises(BackendOpenError):
        await saver.__aenter__()
    assert (saver.home_token, backend.closed) == (None, 1)


async def test_an_error_in_the_block_passes_as_it_is() -> None:
    backend = FaultyBackend()
    with pytest.raises(ZeroDivisionError):  # not an exception group
        async with GroupCommitSaver(backend) as saver:
            saver.send_nowait(saver.encode(unit("t", "1")))
            raise ZeroDivisionError
    assert backend.committed == ["1"]


async def test_cancelling_the_scope_around_still_drains() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()

    async def open_gate() -> None:
        await anyio.wait_all_tasks_blocked()
        assert backend.gate is not None
        backend.gate.set()

    async with anyio.create_task_group() as outside:
        with anyio.CancelScope() as scope:
            async with GroupCommitSaver(backend, limits=Limits(batch_items=2)) as saver:
                for number in range(9):
                    saver.send_nowait(saver.encode(unit("t", f"{number}")))
                outside.start_soon(open_gate)
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught
    assert len(backend.committed) == 9
    assert backend.closed == 1


async def test_what_a_cancelled_run_sent_becomes_durable() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()
    async with GroupCommitSaver(backend) as saver:

        async def run() -> None:
            with anyio.CancelScope() as scope:
                saver.send_nowait(saver.encode(unit("t", "sent")))
                scope.cancel()
                await put(saver, "put", {"a": 1})  # there was room, so it was accepted before the cancel was seen
                await anyio.sleep_forever()
            assert scope.cancelled_caught

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            backend.gate.set()
    assert backend.committed == ["sent", "put"]


async def test_cancelled_puts_are_stored_whole_or_not_at_all() -> None:
    backend = FaultyBackend()
    finished: list[str] = []

    async def run(number: int, scope: anyio.CancelScope) -> None:
        with scope:
            await put(saver, f"{number:03}", {"a": [number], "b": {"n": number}})
            finished.append(f"{number:03}")

    async with GroupCommitSaver(backend, limits=Limits(channel_items=2, batch_items=1)) as saver:
        async with anyio.create_task_group() as nursery:
            for number in range(48):
                scope = anyio.CancelScope()
                nursery.start_soon(run, number, scope)
                for _ in range(number % 8):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        found = [stored.checkpoint["channel_values"] async for stored in saver.alist(config())]
        ids = {stored.checkpoint["id"] async for stored in saver.alist(config())}
    assert ids >= set(finished)
    assert all(values["a"] == [values["b"]["n"]] for values in found)
    assert len(found) > 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_task_cancel_is_delivered_once_the_unit_is_durable() -> None:
    """Task.cancel() pierces shields; it must not come back before the row is all there."""
    backend = FaultyBackend()
    backend.gate = anyio.Event()
    async with GroupCommitSaver(backend) as saver:
        task = asyncio.get_running_loop().create_task(put(saver, "1", {"a": 1}))
        await anyio.wait_all_tasks_blocked()
        for _ in range(3):
            task.cancel()
            await anyio.wait_all_tasks_blocked()
            assert not task.done()
        backend.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert backend.committed == ["1"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_task_cancel_during_the_close_still_drains() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()

    async def use() -> None:
        async with GroupCommitSaver(backend, limits=Limits(batch_items=1)) as saver:
            for number in range(5):
                saver.send_nowait(saver.encode(unit("t", f"{number}")))

    task = asyncio.get_running_loop().create_task(use())
    for _ in range(3):
        await anyio.wait_all_tasks_blocked()
        task.cancel()
    backend.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(backend.committed) == 5
    assert backend.closed == 1


async def test_runs_read_their_own_writes() -> None:
    backend = FaultyBackend()
    async with GroupCommitSaver(backend) as saver:
        for number in range(20):
            saver.send_nowait(saver.encode(unit("t", f"{number:02}")))
            newest = await saver.aget_tuple(config())
            assert newest is not None
            assert newest.checkpoint["id"] == f"{number:02}"
        saver.send_nowait(saver.encode(unit("u", "99")))
        assert [stored.checkpoint["id"] async for stored in saver.alist(None, limit=1)] == ["99"]


async def test_a_failed_put_raises_and_reads_go_on() -> None:
    backend = FaultyBackend(poison=["2"])
    async with GroupCommitSaver(backend) as saver:
        await put(saver, "1", {"a": 1})
        with pytest.raises(BackendError, match="cannot store"):
            await put(saver, "2", {"a": 2}, parent="1")
        with pytest.raises(BackendError, match="builds on checkpoint 2"):
            await put(saver, "3", {"a": 3}, parent="2")
        newest = await saver.aget_tuple(config())
        assert newest is not None
        assert newest.checkpoint["id"] == "1"
        assert saver.statistics().failures == 2


async def test_a_commit_whose_answer_was_lost_for_good_keeps_nobody_from_going_on() -> None:
    lost = TransientBackendError("the answer was lost")
    backend = FaultyBackend([None, ("commit, then", lost)])
    async with GroupCommitSaver(backend, limits=Limits(attempts=1)) as saver:
        await put(saver, "1", {"a": 1})
        with pytest.raises(TransientBackendError, match="the answer was lost"):
            await put(saver, "2", {"a": 2}, parent="1")
        with pytest.raises(BackendError, match="builds on checkpoint 2"):  # nobody knows yet that it is there
            await put(saver, "3", {"a": 3}, parent="2")
        newest = await saver.aget_tuple(config())
        assert newest is not None
        assert newest.checkpoint["id"] == "2"
        await put(saver, "4", {"a": 4}, parent="2")


async def test_many_runs_share_commits() -> None:
    backend = FaultyBackend()

    async def run(name: str) -> None:
        for number in range(10):
            await put(saver, f"{number}", {"a": number}, thread_id=name)

    async with GroupCommitSaver(backend) as saver:
        async with anyio.create_task_group() as nursery:
            for thread in range(30):
                nursery.start_soon(run, f"{thread}")
        assert saver.statistics().units == 300
        assert saver.statistics().batches < 100


async def test_another_thread_is_told_where_to_go() -> None:
    async with GroupCommitSaver(FaultyBackend()) as saver:
        assert saver.home_thread == threading.get_ident()
        request = saver.encode(unit("t", "1"))

        def elsewhere() -> None:
            with pytest.raises(SaverLoopError, match="another thread"):
                saver.send_nowait(request)
            with pytest.raises(SaverLoopError, match="another thread"):
                anyio.run(saver.aget_tuple, config())
            coroutine: Any = saver.aget_tuple(config())
            with pytest.raises(SaverLoopError, match="from_thread"):
                coroutine.send(None)
            anyio.from_thread.run(put, saver, "2", {"a": 1})

        await anyio.to_thread.run_sync(elsewhere)
        assert await saver.aget_tuple(config(checkpoint_id="2")) is not None


async def test_what_with_opened_is_not_awaited_and_says_how_to_open_it() -> None:
    with (
        GroupCommitSaver(FaultyBackend()) as saver,
        pytest.raises(SaverLoopError, match="was opened by 'with'.* In async code open it by 'async with'"),
    ):
        await saver.aget_tuple(config())
    async with saver:
        assert await saver.aget_tuple(config()) is None


def test_another_loop_in_the_same_thread_is_refused() -> None:
    """A saver left open by a loop that has ended."""
    saver = GroupCommitSaver(FaultyBackend())
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(saver.__aenter__())
        with pytest.raises(SaverLoopError, match="another event loop"):
            anyio.run(saver.aget_tuple, config())
        coroutine: Any = saver.aget_tuple(config())
        with pytest.raises(SaverLoopError, match="another event loop"):
            coroutine.send(None)
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()


async def test_a_cancelled_sender_was_not_accepted() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()
    async with GroupCommitSaver(backend, limits=Limits(channel_items=1)) as saver:
        saver.send_nowait(saver.encode(unit("t", "1")))
        await anyio.wait_all_tasks_blocked()
        saver.send_nowait(saver.encode(unit("t", "2")))
        with pytest.raises(anyio.WouldBlock):
            saver.send_nowait(saver.encode(unit("t", "3")))
        with anyio.move_on_after(0.01) as scope:
            await saver.send(saver.encode(unit("t", "3")))
        assert scope.cancelled_caught
        backend.gate.set()
    assert backend.committed == ["1", "2"]


async def test_next_versions_grow_and_branches_never_meet() -> None:
    saver = GroupCommitSaver(FaultyBackend())
    first = saver.get_next_version(None)
    second = saver.get_next_version(first)
    assert first < second < saver.get_next_version(second)
    assert saver.get_next_version(first) != second
    assert saver.get_next_version(9) > saver.get_next_version(8)
