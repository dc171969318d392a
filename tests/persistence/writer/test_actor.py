"""The persistence actor: natural batches, acks after commits, faults, draining."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from trio.testing import MockClock

from persistence.contracts.backend import CopyThread, DeleteThread, Rows
from persistence.errors import (
    BackendError,
    CheckpointConflictError,
    PersistenceClosedError,
    TransientBackendError,
)
from persistence.memory import InMemorySaver
from persistence.writer.actor import PersistenceActor
from persistence.writer.limits import Limits
from persistence.writer.receipts import Receipt
from tests.persistence.writer.faults import FaultyBackend
from tests.persistence.writer.samples import unit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

pytestmark = pytest.mark.anyio
virtual_time = pytest.mark.parametrize(
    "anyio_backend", [pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="virtual time")]
)
BUSY = TransientBackendError("busy")
encode = InMemorySaver().encode


def checkpoint(number: int, thread_id: str = "t") -> Rows:
    return encode(unit(thread_id, f"{number}", parent=f"{number - 1}"))


@asynccontextmanager
async def running(backend: FaultyBackend, **limits: Any) -> AsyncIterator[PersistenceActor]:
    actor = PersistenceActor(backend, Limits(**limits))
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(actor.run)
        try:
            yield actor
        finally:
            actor.close()
            if backend.gate is not None:
                backend.gate.set()


def states(receipts: Sequence[Receipt]) -> list[str]:
    return ["waiting" if not one.done else "failed" if one.error else "durable" for one in receipts]


async def test_an_idle_actor_commits_one_request_at_once() -> None:
    backend = FaultyBackend()
    async with running(backend) as actor:
        for number in range(3):
            await actor.send_nowait(checkpoint(number)).wait()
    assert [len(batch) for batch in backend.batches] == [1, 1, 1]


async def test_what_waits_while_it_is_busy_becomes_one_batch() -> None:
    backend = FaultyBackend()
    async with running(backend) as actor:
        backend.gate = anyio.Event()
        receipts = [actor.send_nowait(checkpoint(0, "first"))]
        await anyio.wait_all_tasks_blocked()
        receipts += [actor.send_nowait(checkpoint(number, f"t{number}")) for number in range(20)]
        assert states(receipts) == ["waiting"] * 21
        backend.gate.set()
        await receipts[-1].wait()
        assert states(receipts) == ["durable"] * 21
        statistics = actor.statistics()
    assert [len(batch) for batch in backend.batches] == [1, 20]
    assert (statistics.batches, statistics.units, statistics.largest_batch) == (2, 21, 20)
    assert (statistics.depth_items, statistics.depth_bytes, statistics.peak_items) == (0, 0, 20)
    assert statistics.commit_seconds_total >= statistics.commit_seconds_max >= statistics.commit_seconds_last > 0


async def test_batches_respect_their_limits() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()
    async with running(backend, batch_items=4) as actor:
        for number in range(10):
            actor.send_nowait(checkpoint(number))
        backend.gate.set()
    assert [len(batch) for batch in backend.batches] == [4, 4, 2]


async def test_acks_are_set_in_order_and_only_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FaultyBackend(poison=["3"])
    settled: list[int] = []
    settle = Receipt.settle

    def noting(receipt: Receipt, error: BaseException | None = None) -> None:
        settled.append(receipt.sequence)
        assert error is not None or f"{receipt.sequence}" in backend.committed
        settle(receipt, error)

    monkeypatch.setattr(Receipt, "settle", noting)
    async with running(backend, batch_items=5) as actor:
        for number in range(1, 13):
            actor.send_nowait(encode(unit(f"{number % 2}", f"{number}", parent=f"{number - 2}")))
    assert settled == list(range(1, 13))
    assert actor.statistics().failures == 5  # 3, and 5, 7, 9, 11 in its thread


async def test_a_full_channel_holds_its_senders_back() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()
    sent: list[int] = []

    async def produce(actor: PersistenceActor) -> None:
        for number in range(50):
            await actor.send(checkpoint(number))
            sent.append(number)

    async with running(backend, channel_items=5, batch_items=1) as actor, anyio.create_task_group() as nursery:
        nursery.start_soon(produce, actor)
        await anyio.wait_all_tasks_blocked()
        assert len(sent) == 6  # one is being committed, five wait
        assert actor.statistics().waiting_senders == 1
        backend.gate.set()
    assert len(sent) == 50
    assert actor.statistics().peak_items <= 5


@virtual_time
async def test_passing_faults_are_tried_again_with_growing_delays() -> None:
    backend = FaultyBackend([BUSY, BUSY, BUSY])
    started = anyio.current_time()
    async with running(backend, first_delay=1, longest_delay=100) as actor:
        await actor.send_nowait(checkpoint(1)).wait()
        assert anyio.current_time() - started == pytest.approx(1 + 2 + 4)
        assert (actor.statistics().retries, actor.statistics().failures) == (3, 0)
    assert backend.committed == ["1"]


@virtual_time
async def test_a_fault_that_lasts_fails_the_batch_and_the_actor_lives_on() -> None:
    backend = FaultyBackend([BUSY] * 4)
    async with running(backend, attempts=4) as actor:
        receipts = [actor.send_nowait(checkpoint(1, thread_id)) for thread_id in "ab"]
        for receipt in receipts:
            with pytest.raises(TransientBackendError, match="busy") as caught:
                await receipt.wait()
            assert caught.value.__cause__ is BUSY
        assert receipts[0].error is not receipts[1].error
        await actor.send_nowait(checkpoint(1, "c")).wait()
        assert (actor.statistics().failures, actor.statistics().retries) == (2, 3)
    assert backend.attempts == 5


@virtual_time
async def test_an_unknown_outcome_is_tried_again_and_changes_nothing() -> None:
    backend = FaultyBackend([("commit, then", BUSY), ("commit, then", TimeoutError())])
    async with running(backend) as actor:
        await actor.send_nowait(encode(unit("t", "1", writes_to="0", value="first"))).wait()
        await actor.send_nowait(encode(unit("t", writes_to="0", value="second"))).wait()
    page = backend.tables.load("t", "", "1")
    assert len(page.checkpoints) == 1
    assert backend.attempts == 4


@virtual_time
async def test_a_hanging_commit_is_given_up_and_tried_again() -> None:
    backend = FaultyBackend(["hang"])
    started = anyio.current_time()
    async with running(backend, commit_seconds=30, first_delay=0.5) as actor:
        await actor.send_nowait(checkpoint(1)).wait()
    assert anyio.current_time() - started == pytest.approx(30.5)
    assert backend.committed == ["1"]


async def test_only_the_guilty_unit_and_what_builds_on_it_fail() -> None:
    backend = FaultyBackend(poison=["2"])
    backend.gate = anyio.Event()
    async with running(backend) as actor:
        first = actor.send_nowait(checkpoint(1))
        guilty = actor.send_nowait(checkpoint(2))
        others = [actor.send_nowait(checkpoint(number, f"other {number}")) for number in range(9)]
        children = [actor.send_nowait(checkpoint(3)), actor.send_nowait(checkpoint(4))]
        fork = actor.send_nowait(encode(unit("t", "fork", parent="1")))
        backend.gate.set()
        await fork.wait()
        assert states([first, guilty, *children, fork]) == ["durable", "failed", "failed", "failed", "durable"]
        others_guilty = [number for number, one in enumerate(others) if one.error is not None]
        assert others_guilty == [2]  # its checkpoint has the poisoned id too, in a thread of its own
        late = actor.send_nowait(checkpoint(3))
        with pytest.raises(BackendError, match="builds on checkpoint 2.*cannot store"):
            await late.wait()
        backend.poison.clear()
        for number in (2, 3):
            await actor.send_nowait(checkpoint(number)).wait()
    assert [row[2] for row in backend.tables.threads["t"][""].checkpoints.values()] == ["1", "fork", "2", "3"]


async def test_lost_writes_take_the_checkpoint_made_from_them_along_but_not_their_siblings() -> None:
    backend = FaultyBackend(poison=["bad"])
    backend.gate = anyio.Event()
    async with running(backend) as actor:
        actor.send_nowait(checkpoint(1, "busy"))
        await anyio.wait_all_tasks_blocked()
        good = actor.send_nowait(encode(unit("t", writes_to="1", task_id="good")))
        bad = actor.send_nowait(encode(unit("t", writes_to="1", task_id="bad")))
        after = actor.send_nowait(encode(unit("t", writes_to="1", task_id="after")))
        made = actor.send_nowait(encode(unit("t", "2", parent="1")))
        child = actor.send_nowait(encode(unit("t", "3", parent="2")))
        backend.gate.set()
        await child.settled()
        assert states([good, bad, after, made, child]) == ["durable", "failed", "durable", "failed", "failed"]
        backend.poison.clear()
        again = [encode(unit("t", writes_to="1", task_id="bad")), encode(unit("t", "2", parent="1"))]
        for request in again:
            await actor.send_nowait(request).wait()


@virtual_time
async def test_a_fenced_batch_is_tried_again_and_a_lost_race_takes_the_rest_of_the_run_along() -> None:
    backend = FaultyBackend([("commit, then", BUSY)])
    backend.gate = anyio.Event()

    def fenced(number: int, expected: str) -> Rows:
        return encode(replace(unit("t", f"{number}", parent=expected or None), expected_head=expected))

    async with running(backend) as actor:
        won = [actor.send_nowait(fenced(1, "")), actor.send_nowait(fenced(2, "1"))]
        lost = [actor.send_nowait(fenced(3, "1")), actor.send_nowait(fenced(4, "3"))]
        backend.gate.set()
        await lost[1].settled()
        assert states([*won, *lost]) == ["durable", "durable", "failed", "failed"]
        assert all(isinstance(one.error, CheckpointConflictError) for one in lost)
        late = actor.send_nowait(fenced(5, "4"))
        with pytest.raises(CheckpointConflictError, match="builds on checkpoint 4"):
            await late.wait()


async def test_a_row_its_driver_cannot_bind_fails_alone() -> None:
    backend = FaultyBackend([OverflowError("int too large"), OverflowError("int too large")])
    backend.gate = anyio.Event()
    async with running(backend) as actor:
        receipts = [actor.send_nowait(checkpoint(1, thread_id)) for thread_id in "ab"]
        backend.gate.set()
        with pytest.raises(BackendError, match="OverflowError: int too large"):
            await receipts[0].wait()
        await receipts[1].wait()


async def test_barriers_wait_for_what_was_sent_for_the_thread() -> None:
    backend = FaultyBackend([BackendError("refused")])
    async with running(backend) as actor:
        backend.gate = anyio.Event()
        refused = actor.send_nowait(checkpoint(1, "a"))
        await anyio.wait_all_tasks_blocked()
        other = actor.send_nowait(checkpoint(1, "b"))
        await actor.barrier("never seen")
        backend.gate.set()
        await actor.barrier("a")
        assert refused.error is not None
        assert not other.done
        await actor.barrier("b")
        assert other.done
        wide = actor.send_nowait(CopyThread("b", "c"))
        await actor.barrier("any thread may be touched by a copy")
        assert wide.done
        deletion = actor.send_nowait(DeleteThread("b"))
        await actor.barrier(None)
        assert deletion.done
        await actor.barrier(None)
        assert not actor._latest  # nothing is remembered of threads that are at rest


async def test_closing_drains_and_then_refuses() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()
    async with running(backend, batch_items=2) as actor:
        receipts = [actor.send_nowait(checkpoint(number)) for number in range(7)]
        await anyio.wait_all_tasks_blocked()
        actor.close()
        with pytest.raises(PersistenceClosedError):
            actor.send_nowait(checkpoint(8))
        backend.gate.set()
    assert states(receipts) == ["durable"] * 7
    assert actor.stopped.is_set()


async def test_accepted_units_survive_the_cancellation_of_everything_around() -> None:
    backend = FaultyBackend()
    backend.gate = anyio.Event()
    with anyio.CancelScope() as scope:
        async with running(backend, batch_items=2) as actor:
            receipts = [actor.send_nowait(checkpoint(number)) for number in range(7)]
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            scope.cancel()
            actor.close()
            backend.gate.set()
    assert scope.cancel_called
    assert states(receipts) == ["durable"] * 7


async def test_when_the_backend_dies_nobody_is_left_waiting() -> None:
    backend = FaultyBackend([PersistenceClosedError("the connection is gone")])
    failures: list[str] = []

    async def send(actor: PersistenceActor, number: int) -> None:
        try:
            receipt = await actor.send(checkpoint(number))
            await receipt.wait()
        except PersistenceClosedError as error:
            failures.append(str(error))

    actor = PersistenceActor(backend, Limits(channel_items=2, batch_items=1))
    async with anyio.create_task_group() as nursery:
        for number in range(6):
            nursery.start_soon(send, actor, number)
        await anyio.wait_all_tasks_blocked()
        nursery.start_soon(actor.run)
    assert len(failures) == 6
    assert any("the connection is gone" in failure for failure in failures)
    with pytest.raises(PersistenceClosedError):
        await actor.send(checkpoint(9))
    assert actor.statistics().depth_items == 0


async def test_torn_down_from_outside_it_answers_everybody() -> None:
    """A loop that cancels every task at its end, shields or not."""

    class Torn(BaseException):
        pass

    class TornBackend(FaultyBackend):
        async def commit(self, batch: Sequence[Any]) -> None:
            raise Torn

    actor = PersistenceActor(TornBackend(), Limits(batch_items=1))
    receipts = [actor.send_nowait(checkpoint(number)) for number in range(3)]
    with pytest.raises(Torn):
        await actor.run()
    for receipt in receipts:
        with pytest.raises(PersistenceClosedError, match="not known to be saved"):
            await receipt.wait()


async def test_faults_during_the_drain_are_tried_again_too() -> None:
    backend = FaultyBackend([BUSY, BUSY])
    async with running(backend, first_delay=0.001) as actor:
        receipt = actor.send_nowait(checkpoint(1))
    assert states([receipt]) == ["durable"]


async def test_the_memory_of_the_actor_stays_flat_over_many_threads() -> None:
    backend = FaultyBackend()
    async with running(backend, channel_items=64) as actor:
        for number in range(2000):
            await actor.send(checkpoint(1, f"t{number}"))
    assert not actor._latest
    assert actor.statistics().units == 2000


async def test_the_statistics_tell_how_long_units_waited_for_a_busy_writer() -> None:
    now, backend = 0.0, FaultyBackend()
    backend.gate = anyio.Event()
    actor = PersistenceActor(backend, now=lambda: now)
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(actor.run)
        actor.send_nowait(checkpoint(0, "first"))
        await anyio.wait_all_tasks_blocked()  # it is being committed
        receipts = [actor.send_nowait(checkpoint(0, "second"))]
        now = 2.0
        receipts.append(actor.send_nowait(checkpoint(0, "third")))
        now = 3.0
        backend.gate.set()
        for receipt in receipts:
            await receipt.wait()
        seen = actor.statistics()
        actor.close()
    assert (seen.queue_seconds_total, seen.queue_seconds_last, seen.queue_seconds_max) == (3 + 1, 3, 3)
    assert (seen.commit_seconds_total, seen.commit_seconds_last, seen.units) == (3, 0, 3)
