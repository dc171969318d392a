"""The mailbox: bounded twice, fair, and nothing lost or doubled when senders are cancelled."""

from __future__ import annotations

import random

import anyio
import anyio.lowlevel
import pytest

from persistence.contracts.backend import Rows
from persistence.errors import PersistenceClosedError
from persistence.writer.limits import Limits
from persistence.writer.mailbox import Mailbox
from persistence.writer.receipts import Receipt

pytestmark = pytest.mark.anyio


def request(name: str = "t", size: int = 1) -> Rows:
    return Rows(name, "", None, (), (), (), size)


def names(batch: list[Receipt]) -> list[str]:
    return [receipt.request.thread_id for receipt in batch if isinstance(receipt.request, Rows)]


def mailbox(**limits: int) -> Mailbox:
    return Mailbox(Limits(**limits))


async def test_first_in_first_out_up_to_the_limits_of_a_batch() -> None:
    box = mailbox(batch_items=2, batch_bytes=10)
    for name, size in (("a", 1), ("b", 1), ("c", 6), ("d", 6), ("e", 50)):
        box.put_nowait(request(name, size))
    assert [names(box.take()) for _ in range(4)] == [["a", "b"], ["c"], ["d"], ["e"]]
    assert (len(box), box.bytes, box.peak_items, box.peak_bytes) == (0, 0, 5, 64)


async def test_full_by_items() -> None:
    box = mailbox(channel_items=2)
    box.put_nowait(request())
    box.put_nowait(request())
    with pytest.raises(anyio.WouldBlock):
        box.put_nowait(request())


async def test_full_by_bytes_but_one_large_unit_passes_an_empty_channel() -> None:
    box = mailbox(channel_bytes=10)
    box.put_nowait(request("large", 1000))
    with pytest.raises(anyio.WouldBlock):
        box.put_nowait(request("small", 1))
    assert names(box.take()) == ["large"]
    box.put_nowait(request("small", 10))


async def test_waiting_senders_are_served_in_order_and_nobody_overtakes() -> None:
    box = mailbox(channel_items=1, batch_items=1)
    box.put_nowait(request("first"))
    order: list[str] = []

    async def send(name: str) -> None:
        await box.put(request(name))

    async with anyio.create_task_group() as nursery:
        for position in range(5):
            nursery.start_soon(send, f"{position}")
            while box.waiting <= position:
                await anyio.lowlevel.checkpoint()
        order += names(box.take())
        with pytest.raises(anyio.WouldBlock):  # the room belongs to whoever waited for it
            box.put_nowait(request("pushy"))
        for _ in range(5):
            assert await box.wait()
            order += names(box.take())
    assert order == ["first", "0", "1", "2", "3", "4"]


async def test_cancelled_while_waiting_means_not_accepted() -> None:
    box = mailbox(channel_items=1)
    box.put_nowait(request("first"))
    with anyio.move_on_after(0) as scope:
        await box.put(request("cancelled"))
    assert scope.cancelled_caught
    box.take()
    box.put_nowait(request("next"))
    assert (names(box.take()), box.waiting, box.bytes) == (["next"], 0, 0)


async def test_cancelled_at_the_moment_it_is_given_room() -> None:
    """The sender that was chosen leaves, and the one behind it gets the room."""
    box = mailbox(channel_items=1)
    box.put_nowait(request("first"))
    accepted: list[str] = []

    async def send(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            await box.put(request(name))
            accepted.append(name)

    scopes = [anyio.CancelScope(), anyio.CancelScope()]
    async with anyio.create_task_group() as nursery:
        for position, scope in enumerate(scopes):
            nursery.start_soon(send, f"{position}", scope)
            while box.waiting <= position:
                await anyio.lowlevel.checkpoint()
        scopes[0].cancel()  # it has not run yet, so it learns of both at once
        taken = names(box.take())
        await anyio.wait_all_tasks_blocked()
        taken += names(box.take())
        await anyio.wait_all_tasks_blocked()
        taken += names(box.take())
    assert taken == ["first", *accepted]
    assert "1" in accepted
    assert (len(box), box.bytes, box.waiting) == (0, 0, 0)


async def test_every_accepted_request_is_taken_once_whoever_is_cancelled_when() -> None:
    chance = random.Random(7)
    box = mailbox(channel_items=3, channel_bytes=30, batch_items=2)
    accepted: list[str] = []
    taken: list[str] = []

    async def send(name: str) -> None:
        with anyio.CancelScope() as scope:
            if chance.random() < 0.4:
                nursery.start_soon(cancel_soon, scope, chance.randrange(6))
            await box.put(request(name, chance.randrange(1, 12)))
            accepted.append(name)

    async def cancel_soon(scope: anyio.CancelScope, ticks: int) -> None:
        for _ in range(ticks):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    async def receive() -> None:
        while await box.wait():
            taken.extend(names(box.take()))
            assert len(box) <= 3
            for _ in range(chance.randrange(3)):
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as receiver:
        receiver.start_soon(receive)
        async with anyio.create_task_group() as nursery:
            for number in range(300):
                nursery.start_soon(send, f"{number}")
                if number % 4 == 0:
                    await anyio.lowlevel.checkpoint()
        box.close()
    assert sorted(taken) == sorted(accepted)
    assert len(set(taken)) == len(taken)
    assert (len(box), box.bytes, box.waiting) == (0, 0, 0)


async def test_closing_turns_senders_away_and_keeps_what_was_accepted() -> None:
    box = mailbox(channel_items=1)
    box.put_nowait(request("kept"))

    async def send() -> None:
        with pytest.raises(PersistenceClosedError, match="not saved"):
            await box.put(request("waiting"))

    async with anyio.create_task_group() as nursery:
        nursery.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        box.close()
    with pytest.raises(PersistenceClosedError, match="async with"):
        box.put_nowait(request())
    assert await box.wait()
    assert names(box.take()) == ["kept"]
    assert not await box.wait()


async def test_cancelled_and_turned_away_at_once() -> None:
    box = mailbox(channel_items=1)
    box.put_nowait(request("held"))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as nursery:
            nursery.start_soon(box.put, request("waiting"))
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            box.close()
    assert (names(box.take()), len(box), box.bytes, box.waiting) == (["held"], 0, 0, 0)


async def test_a_sender_given_room_just_before_the_close_still_gets_in() -> None:
    box = mailbox(channel_items=1)
    box.put_nowait(request("first"))
    receipts: list[Receipt] = []

    async def send() -> None:
        receipts.append(await box.put(request("second")))

    async with anyio.create_task_group() as nursery:
        nursery.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        assert names(box.take()) == ["first"]
        box.close()
        assert await box.wait()
        assert names(box.take()) == ["second"]
    assert receipts
    assert not receipts[0].done


async def test_dropping_answers_everybody() -> None:
    box = mailbox(channel_items=1)
    box.put_nowait(request("held"))

    async def send() -> None:
        with pytest.raises(PersistenceClosedError):
            await box.put(request("waiting"))

    async with anyio.create_task_group() as nursery:
        nursery.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        assert names(box.drop()) == ["held"]
    assert (len(box), box.bytes) == (0, 0)


async def test_receipts_tell_their_state_and_let_the_bytes_go() -> None:
    receipt = Receipt(request())
    assert "waiting" in repr(receipt)
    receipt.settle()
    assert "durable" in repr(receipt)
    assert not hasattr(receipt, "request")
    await receipt.wait()
    await receipt.wait()
    failed = Receipt(request())
    failed.settle(ValueError("x"))
    assert "failed" in repr(failed)
    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            await failed.wait()


def test_limits_have_reasons_and_let_something_through() -> None:
    assert all(limit.reason for limit in Limits().explained())
    with pytest.raises(ValueError, match="channel_items must be positive"):
        Limits(channel_items=0)
    with pytest.raises(ValueError, match="first_delay"):
        Limits(first_delay=float("nan"))


async def test_how_long_requests_waited_is_added_up() -> None:
    now = 100.0
    box = Mailbox(Limits(batch_items=2), lambda: now)

    def waited() -> tuple[float, float, float]:
        return box.waited_total, box.waited_last, box.waited_max

    for at in (100.0, 101.0, 105.0):
        now = at
        box.put_nowait(request(f"{at}"))
    assert (names(box.take()), waited()) == (["100.0", "101.0"], (5 + 4, 5, 5))
    now = 107.0
    assert (names(box.take()), waited()) == (["105.0"], (9 + 2, 2, 5))
    now = 200.0
    assert (box.take(), waited()) == ([], (11, 2, 5))  # nothing waited: nothing is counted


async def test_the_wait_for_room_is_not_the_wait_in_the_channel() -> None:
    now = 0.0
    box = Mailbox(Limits(channel_items=1, batch_items=1), lambda: now)
    box.put_nowait(request("first"))
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(box.put, request("second"))
        while not box.waiting:
            await anyio.lowlevel.checkpoint()
        now = 10.0
        assert names(box.take()) == ["first"]  # gives its room to the second
        now = 13.0
        assert await box.wait()
        assert names(box.take()) == ["second"]
    assert (box.waited_total, box.waited_last, box.waited_max) == (13, 3, 10)
