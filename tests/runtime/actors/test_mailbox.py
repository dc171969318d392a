"""Mailboxes: bounded, in order, and no message lost or doubled whoever is cancelled when."""

from __future__ import annotations

import contextlib
from random import Random

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.actors.mailbox import CAPACITY, Mailbox, MailboxClosedError, MailboxStatistics

LOOPS = ["asyncio", "trio"]


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await anyio.sleep(0)


def test_messages_come_out_in_order() -> None:
    mailbox: Mailbox[int] = Mailbox()
    for number in range(100):
        mailbox.put_nowait(number)
    assert len(mailbox) == 100
    assert [mailbox.take_nowait() for _ in range(100)] == list(range(100))
    with pytest.raises(anyio.WouldBlock):
        mailbox.take_nowait()


def test_a_full_mailbox_refuses() -> None:
    mailbox: Mailbox[int] = Mailbox(2)
    for number in range(2):
        mailbox.put_nowait(number)
    with pytest.raises(anyio.WouldBlock):
        mailbox.put_nowait(2)
    mailbox.take_nowait()
    mailbox.put_nowait(2)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_mailbox_holds_something(capacity: int) -> None:
    with pytest.raises(ValueError, match="at least 1 message"):
        Mailbox(capacity)


def test_it_tells_how_full_it_is_and_was() -> None:
    mailbox: Mailbox[int] = Mailbox(3)
    for number in range(3):
        mailbox.put_nowait(number)
    mailbox.take_nowait()
    assert mailbox.statistics() == MailboxStatistics(capacity=3, waiting=2, peak=3, senders=0, received=1)
    assert repr(mailbox) == "<Mailbox open 2/3>"
    mailbox.close()
    assert repr(mailbox) == "<Mailbox closed 0/3>"
    assert Mailbox[int]().capacity == CAPACITY


async def test_a_sender_waits_for_room_and_nobody_overtakes_it() -> None:
    mailbox: Mailbox[int] = Mailbox(1)
    mailbox.put_nowait(0)
    async with anyio.create_task_group() as group:
        for number in range(1, 4):
            group.start_soon(mailbox.put, number)
            await settle()
        assert mailbox.statistics().senders == 3
        taken = []
        for _ in range(4):
            taken.append(mailbox.take_nowait())
            with pytest.raises(anyio.WouldBlock):
                if mailbox.statistics().senders:
                    mailbox.put_nowait(99)
                else:
                    raise anyio.WouldBlock
            await settle()
    assert taken == [0, 1, 2, 3]


async def test_closing_answers_everybody() -> None:
    mailbox: Mailbox[int] = Mailbox(2)
    refused: list[int] = []

    async def send(number: int) -> None:
        try:
            await mailbox.put(number)
        except MailboxClosedError:
            refused.append(number)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(send, number)
            await settle()
        assert mailbox.close() == [0, 1]
        assert mailbox.close() == []
    assert sorted(refused) == [2, 3, 4]
    for put in (mailbox.put_nowait,):
        with pytest.raises(MailboxClosedError):
            put(6)
    with pytest.raises(MailboxClosedError):
        await mailbox.put(6)
    with pytest.raises(anyio.WouldBlock):
        mailbox.take_nowait()


async def test_a_sender_whose_turn_had_come_is_refused_too() -> None:
    mailbox: Mailbox[int] = Mailbox(1)
    mailbox.put_nowait(0)
    refused: list[int] = []

    async def send() -> None:
        try:
            await mailbox.put(1)
        except MailboxClosedError:
            refused.append(1)

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        await settle()
        mailbox.take_nowait()
        assert mailbox.close() == []
    assert refused == [1]


class Post:
    """Senders of equal messages, each cancelled after so many steps, and a reader that takes some now and then."""

    def __init__(self, capacity: int, closes: bool, random: Random) -> None:
        self.mailbox: Mailbox[tuple[int, int]] = Mailbox(capacity)
        self.closes = closes
        self.random = random
        self.accepted: list[tuple[int, int]] = []
        self.received: list[tuple[int, int]] = []
        self.done = anyio.Event()

    async def send(self, sender: int) -> None:
        for number in range(3):
            message = (sender, number // 2)  # the first two are equal
            try:
                await self.mailbox.put(message)
            except MailboxClosedError:
                return
            self.accepted.append(message)
            await anyio.sleep(0)

    async def live(self, sender: int, steps: int) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self.send, sender)
                for _ in range(steps):
                    await anyio.sleep(0)
                scope.cancel()

    async def read(self) -> None:
        while not self.done.is_set():
            with contextlib.suppress(anyio.WouldBlock):
                for _ in range(self.random.randint(0, 2)):
                    self.received.append(self.mailbox.take_nowait())
            if self.closes and self.random.random() < 0.1:
                self.received.extend(self.mailbox.close())
            await anyio.sleep(0)

    async def run(self, lives: list[int]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self.read)
            async with anyio.create_task_group() as senders:
                for sender, steps in enumerate(lives):
                    senders.start_soon(self.live, sender, steps)
            self.done.set()
        self.received.extend(self.mailbox.close())


@pytest.mark.parametrize("backend", LOOPS)
@given(
    st.integers(1, 3),
    st.lists(st.integers(0, 8), min_size=1, max_size=15),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100)
def test_a_message_arrives_once_or_its_sender_knows_that_it_did_not(
    backend: str, capacity: int, lives: list[int], closes: bool, random: Random
) -> None:
    posts: list[Post] = []

    async def main() -> None:
        posts.append(Post(capacity, closes, random))
        await posts[0].run(lives)

    anyio.run(main, backend=backend)
    (post,) = posts
    assert sorted(post.received) == sorted(post.accepted)
    for sender in range(len(lives)):
        mine = [message for message in post.received if message[0] == sender]
        assert mine == sorted(mine)
    assert post.mailbox.statistics().peak <= capacity
    assert post.mailbox.statistics().senders == 0


async def test_equal_messages_of_different_senders_are_messages_of_their_own() -> None:
    mailbox: Mailbox[str] = Mailbox(1)
    mailbox.put_nowait("same")
    async with anyio.create_task_group() as group:
        group.start_soon(mailbox.put, "same")
        await settle()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as second:
                second.start_soon(mailbox.put, "same")
                await settle()
                scope.cancel()
        assert mailbox.take_nowait() == "same"
        await settle()
        assert mailbox.take_nowait() == "same"
        await settle()
    assert len(mailbox) == 0
