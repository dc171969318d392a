"""Commits to every backend: fenced between processes, cancelled without a trace, gone when deleted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import msgspec
import pytest

from persistence.contracts.backend import DeleteThread, Request
from persistence.errors import CheckpointConflictError, CorruptDataError, PersistenceClosedError
from persistence.writer.bridge import BRIDGE
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from persistence.writer.saver import GroupCommitSaver
    from tests.persistence.backends.places import Place

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_of_many_savers_that_follow_one_head_exactly_one_goes_on(place: Place) -> None:
    outcomes: list[str] = []

    async def follow(saver: GroupCommitSaver, name: str, head: str) -> None:
        one = replace(unit("t", f"{head}{name}", parent=head or None, value=[name]), expected_head=head)
        try:
            receipt = await saver.send(saver.encode(one))
            await receipt.wait()
            outcomes.append(name)
        except CheckpointConflictError:
            outcomes.append("refused")

    async with place.saver() as first, place.saver() as second, place.saver() as third:
        head = ""
        for _ in range(place.rounds):
            outcomes.clear()
            async with anyio.create_task_group() as nursery:
                for name, saver in (("a", first), ("b", second), ("c", third)):
                    nursery.start_soon(follow, saver, name, head)
            (winner,) = [name for name in outcomes if name != "refused"]
            assert sorted(outcomes) == sorted([winner, "refused", "refused"])
            head += winner
        stored = [one.checkpoint["id"] async for one in first.alist(config())]
    assert stored == [head[: place.rounds - number] for number in range(place.rounds)]


async def test_a_fenced_unit_may_be_sent_again(saver: GroupCommitSaver) -> None:
    """Its answer may have been lost; by then it is the head itself."""
    await put(saver, "1", {"a": 1})
    one = saver.encode(replace(unit("t", "2", parent="1"), expected_head="1"))
    await saver._backend.commit([one])
    await saver._backend.commit([one])
    await saver._backend.commit([one, saver.encode(replace(unit("t", "3", parent="2"), expected_head="2"))])
    with pytest.raises(CheckpointConflictError, match=r"'t'.*stored checkpoint 3 where none was expected.*9 was not"):
        await saver._backend.commit([saver.encode(replace(unit("t", "9"), expected_head=""))])
    with pytest.raises(CheckpointConflictError, match="stored checkpoint 3 where 7 was expected"):
        await saver._backend.commit([saver.encode(replace(unit("t", "9"), expected_head="7"))])
    assert [stored.checkpoint["id"] async for stored in saver.alist(None)] == ["3", "2", "1"]


async def test_a_fork_from_what_was_pruned_meanwhile_is_refused(saver: GroupCommitSaver) -> None:
    """It would be the newest checkpoint, and rest on what nobody can read. What comes with it is refused with it."""
    for number, parent in enumerate((None, "1", "2"), start=1):
        await put(saver, f"{number}", {"a": number}, parent=parent)
    fork = replace(unit("t", "4", parent="2"), expected_head="3")
    late = replace(unit("t", "6", parent="2"), expected_head="4")
    await saver._backend.commit([saver.encode(fork)])
    await saver.aprune(["t"])
    on_top = replace(unit("t", "7", parent="6"), expected_head="6")
    for batch in ([late], [late, on_top]):
        with pytest.raises(CheckpointConflictError, match=r"'t'.*checkpoint 2 is gone, pruned.*Checkpoint 6 was not"):
            await saver._backend.commit([saver.encode(one) for one in batch])
    # The one that is stored may be sent again, and from what is still there a fork may start.
    await saver._backend.commit([saver.encode(fork)])
    batch = [
        replace(unit("t", "5", parent="4"), expected_head="4"),
        replace(unit("t", "8", parent="4"), expected_head="5"),
    ]
    await saver._backend.commit([saver.encode(one) for one in batch])
    assert [stored.checkpoint["id"] async for stored in saver.alist(None)] == ["8", "5", "4"]


async def test_heads_are_compared_by_bytes(saver: GroupCommitSaver) -> None:
    """A language's order would put the small letter first."""
    await put(saver, "a", {"a": 1})
    batch = [unit("t", "Z", parent="a"), replace(unit("t", "b", parent="a"), expected_head="a")]
    await saver._backend.commit([saver.encode(one) for one in batch])
    batch = [unit("t", "é", parent="b"), replace(unit("t", "f", parent="b"), expected_head="b")]
    with pytest.raises(CheckpointConflictError, match="stored checkpoint é where b was expected"):
        await saver._backend.commit([saver.encode(one) for one in batch])


async def test_rows_of_one_key_in_one_batch(saver: GroupCommitSaver) -> None:
    """The last checkpoint and special row win, of ordinary ones the first."""
    batch = []
    for number in range(3):
        one = unit("t", "1", writes_to="1", value=[number])
        one.writes[0].writes[:] = [("a", number), ("__resume__", [number])]
        one.metadata = {"step": number}
        batch.append(saver.encode(one))
    for _ in range(2):
        await saver._backend.commit(batch)
        stored = await saver.aget_tuple(config())
        assert stored is not None
        assert stored.metadata == {"step": 2}
        assert stored.checkpoint["channel_values"] == {"a": [0]}
        assert stored.pending_writes == [("task", "__resume__", [2]), ("task", "a", 0)]


@pytest.mark.slow
async def test_cancelled_puts_and_reads_leave_no_connection_behind(place: Place) -> None:
    async with place.saver(pool_size=3) as saver:
        for number in range(3 * place.rounds):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as nursery:
                    nursery.start_soon(_put_many, saver, number)
                    nursery.start_soon(saver.aget_tuple, config())
                    for _ in range(number % 12):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
        async with anyio.create_task_group() as nursery:
            for _ in range(6):
                nursery.start_soon(saver.aget_tuple, config())
        stored = [one async for one in saver.alist(config())]
        assert all(one.checkpoint["channel_values"]["a"] == [one.checkpoint["id"]] * 50 for one in stored)
        assert place.counts()[0] == len(stored)
        assert place.open_transactions() == 0
    assert BRIDGE.users == 0


async def _put_many(saver: GroupCommitSaver, number: int) -> None:
    for part in range(3):
        checkpoint_id = f"{number:03}-{part}"
        await put(saver, checkpoint_id, {"a": [checkpoint_id] * 50})


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_tasks_cancelled_at_any_tick(place: Place) -> None:
    async with place.saver(pool_size=2) as saver:
        for number in range(3 * place.rounds):
            task = asyncio.get_running_loop().create_task(put(saver, f"{number:03}", {"a": [number]}))
            for _ in range(number % 12):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        stored = [one async for one in saver.alist(config())]
        assert place.counts()[0] == len(stored)


async def test_deleting_leaves_nothing_behind(saver: GroupCommitSaver, place: Place) -> None:
    for ns in ("", "child:1", "child:1|grandchild:2"):
        where = await put(saver, "1", {"a": [1]}, ns=ns)
        await saver.aput_writes(where, [("a", [1])], "task")
        await saver.aput_writes(config("t", "not yet stored", ns), [("a", [1])], "task")
    await saver.acopy_thread("t", "u")
    await saver.acopy_thread("none", "v")
    assert place.counts() == [6, 12, 6]
    await saver.adelete_thread("t")
    assert place.counts() == [3, 6, 3]
    await saver.adelete_thread("u")
    place.require_empty()


async def test_pruning_leaves_only_what_is_needed(saver: GroupCommitSaver, place: Place) -> None:
    for number in range(10):
        where = await put(saver, f"{number}", {"a": [number], "b": [number]}, run_id=f"{number % 2}")
        await saver.aput_writes(where, [("a", [1])], "task")
    await saver.adelete_for_runs(["0"])
    assert place.counts() == [5, 5, 10]
    await saver.aprune(["t"])
    assert place.counts() == [1, 1, 2]
    await saver.adelete_for_runs(["none"])
    assert place.counts() == [1, 1, 2]
    await saver.aprune(["t"], strategy="delete")
    place.require_empty()


async def test_a_damaged_checkpoint_is_not_kept_alone(saver: GroupCommitSaver, place: Place) -> None:
    """Older ones can still be read, and run on from."""
    await put(saver, "1", {"a": [1]})
    await put(saver, "1", {"a": [1]}, thread_id="u")
    await put(saver, "2", {"a": [2]}, thread_id="u")
    damaged = saver.encode(unit("t", "2", parent="1", value=[2]))
    await saver._backend.commit([msgspec.structs.replace(damaged, blobs=[])])
    with pytest.raises(CorruptDataError, match=r"Nothing was pruned.*thread 't' is damaged.*older one.*Checkpoint 2"):
        await saver.aprune(["u", "t"])
    assert place.counts()[0] == 4
    assert await saver.aget_tuple(config("t", "1")) is not None
    await put(saver, "3", {"a": [3]}, parent="1")
    await saver.aprune(["u", "t"])
    assert place.counts()[0] == 2
    await saver.aprune(["t"], strategy="delete")
    assert place.counts()[0] == 1


async def test_deletions_keep_their_place_between_units(saver: GroupCommitSaver) -> None:
    units = [saver.encode(unit("t", f"{number}", value=[number])) for number in range(4)]
    requests: list[Request] = [*units[:2], DeleteThread("t"), *units[2:]]
    for receipt in [saver.send_nowait(one) for one in requests]:
        await receipt.wait()
    assert saver.statistics().batches == 1
    assert [one.checkpoint["id"] async for one in saver.alist(config())] == ["3", "2"]


@pytest.mark.slow
async def test_a_value_of_twenty_megabytes(saver: GroupCommitSaver) -> None:
    value = [b"\0\xff" * 10_000_000, "x" * 1000]
    where = await put(saver, "1", {"a": value})
    await saver.aput_writes(where, [("a", value)], "task")
    await saver.acopy_thread("t", "u")
    for thread_id in ("t", "u"):
        stored = await saver.aget_tuple(config(thread_id))
        assert stored is not None
        assert stored.checkpoint["channel_values"]["a"] == value
        assert stored.pending_writes == [("task", "a", value)]


async def test_a_saver_that_was_closed_under_it_answers(saver: GroupCommitSaver) -> None:
    await saver._backend.close()
    await saver._backend.close()
    with pytest.raises(PersistenceClosedError):
        await saver.aget_tuple(config())
    with pytest.raises(PersistenceClosedError):
        await put(saver, "1", {})
