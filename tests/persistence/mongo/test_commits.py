"""Commits to MongoDB: whole or invisible, fenced between processes, cancelled without a trace, of any size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pymongo.monitoring import CommandListener

from persistence.contracts.backend import DeleteThread, Rows
from persistence.contracts.checkpoint import TaskWrites, Unit
from persistence.errors import BackendError, CheckpointConflictError, CorruptDataError
from persistence.mongo import MongoDBSaver, writing
from persistence.mongo.chunks import NAMES
from persistence.mongo.listing import look_into
from persistence.writer.batching import Merged
from tests.persistence.writer.samples import checkpoint, config, put, unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio
MIB = 2**20


class Commands(CommandListener):
    """Notes which commands were sent."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, event: Any) -> None:
        if event.command_name not in {"hello", "endSessions", "getMore"}:
            self.names.append(event.command_name)

    def succeeded(self, event: Any) -> None:
        """Note nothing."""

    def failed(self, event: Any) -> None:
        """Note nothing."""

    def taken(self) -> list[str]:
        """Return what was sent since the last call."""
        names, self.names = self.names, []
        return names


async def commit(saver: MongoDBSaver, *units: Unit) -> None:
    await saver._backend.commit([saver.encode(one) for one in units])


async def everything(saver: MongoDBSaver, thread_id: str = "t") -> list[Any]:
    return [one async for one in saver.alist({"configurable": {"thread_id": thread_id}})]


async def test_a_batch_is_one_command_and_a_read_two(mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    commands = Commands()
    async with MongoDBSaver(**mongo, connect_arguments={"event_listeners": [commands]}) as saver:
        transactions = mongo_server.settings.get("transactions") is None
        await put(saver, "0", {"a": [0]})
        await saver.aget_tuple(config())
        commands.taken()
        one = replace(unit("t", "1", parent="0", writes_to="0", value=[1]), expected_head="0")
        await commit(saver, one)
        assert commands.taken() == ["find", "update", *["commitTransaction"] * transactions]
        await commit(saver, *[unit(f"t{number}", "1", value=[1]) for number in range(50)])
        assert commands.taken() == ["update", *["commitTransaction"] * transactions]
        await commit(saver, unit(writes_to="1", value=[2]))
        assert commands.taken() == ["update"]  # one document is whole by itself
        await saver.aget_tuple(config())
        assert commands.taken() == ["find", "find"]
        assert len([each async for each in saver.alist(None, limit=16)]) == 16
        assert commands.taken() == ["find", "find"]


async def test_two_that_compared_the_head_at_once_do_not_both_store(
    saver: MongoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison passes for both; the index decides."""

    async def passes(*_: object) -> None:
        """Find everything as it was."""

    await put(saver, "1", {"a": 1})
    monkeypatch.setattr(writing, "_check", passes)
    await commit(saver, replace(unit("t", "2", parent="1"), expected_head="1"))
    await commit(saver, replace(unit("t", "2", parent="1"), expected_head="1"))
    with pytest.raises(CheckpointConflictError, match="has moved on"):
        await commit(saver, replace(unit("t", "3", parent="1"), expected_head="1"))
    await commit(saver, replace(unit("u", "3"), expected_head="1"), replace(unit("t", "3", ns="n"), expected_head="1"))
    assert [one.checkpoint["id"] for one in await everything(saver)] == ["3", "2", "1"]


@pytest.mark.parametrize("below", [False, True], ids=["head", "anchor"])
async def test_a_thread_that_is_deleted_once_the_head_was_compared_stays_deleted(
    mongo: dict[str, Any], mongo_server: MongoServer, monkeypatch: pytest.MonkeyPatch, below: bool
) -> None:
    """The comparison saw it; the transaction conflicts with who deletes it, and is tried again."""
    if mongo_server.settings.get("transactions") is False:
        pytest.skip("what this is about is a transaction")
    rows, check, deleted = mongo_server.database[f"{mongo['prefix']}_threads"], writing._check, 0

    async def overtaken(session: Any, merged: Merged) -> None:
        nonlocal deleted
        await check(session, merged)
        deleted += rows.delete_many({"thread_id": "t"}).deleted_count

    async with MongoDBSaver(**mongo) as saver:
        await put(saver, "1", {"a": [1]})
        one = replace(unit("t", "2", parent="1"), expected_head="1")
        if below:
            one = replace(unit("t", "2", ns="n"), expected_head="", anchor=("", "1"))
        monkeypatch.setattr(writing, "_check", overtaken)
        receipt = await saver.send(saver.encode(one))
        with pytest.raises(CheckpointConflictError):
            await receipt.wait()
    assert deleted
    assert list(rows.find({"thread_id": "t"})) == []


async def test_a_head_is_free_again_when_what_followed_it_is_deleted(saver: MongoDBSaver) -> None:
    await put(saver, "1", {"a": 1})
    for name in ("2", "3"):
        one = replace(unit("t", name, parent="1"), expected_head="1")
        one.metadata = {"run_id": "r"}
        await commit(saver, one)
        await saver.adelete_for_runs(["r"])
    assert [one.checkpoint["id"] for one in await everything(saver)] == ["1"]


def operations(saver: MongoDBSaver, units: Sequence[Unit]) -> list[Any]:
    merged = Merged()
    for one in units:
        rows: Rows = saver.encode(one)
        merged.add(rows)
    return writing.stored(merged)


@pytest.mark.slow
async def test_a_batch_that_was_cut_off_anywhere_shows_nothing_half_done(
    saver: MongoDBSaver,
) -> None:
    """As on a server that has no transactions, and dies."""
    server: Any = saver._backend
    large = b"x" * (9 * MIB)
    units = [unit("t", "1", value=[0])]
    for number in range(2, 5):
        one = unit("t", f"{number}", parent=f"{number - 1}", value=large if number == 3 else [number])
        one.writes.append(TaskWrites(f"{number - 1}", "task", "", [("a", number), ("b", number), ("__resume__", 1)]))
        units.append(one)
    await commit(saver, units[0])
    batch = operations(saver, units[1:])
    for cut in range(len(batch) + 1):
        await server._server.write(lambda session, cut=cut: session.change(batch[:cut]))
        stored = await everything(saver)
        names = [one.checkpoint["id"] for one in stored]
        assert names == [f"{number}" for number in range(len(stored), 0, -1)]
        for one in stored:
            writes = [channel for _, channel, _ in one.pending_writes or ()]
            assert writes in ([], ["__resume__", "a", "b"])
            if one is not stored[0]:
                assert writes
    assert len(stored) == 4
    await commit(saver, *units)
    assert await everything(saver) == stored


async def test_a_thread_whose_deletion_was_cut_off_is_gone_or_readable(
    saver: MongoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await commit(saver, unit("t", f"{number}", parent=None, writes_to=f"{number}", value=[number]))
    held: Any = saver._backend
    done: list[Any] = []

    async def note(given: Sequence[Any]) -> int:
        done.extend(given)
        return 0

    async def plan(session: Any) -> None:
        monkeypatch.setattr(session, "change", note)
        await writing.commit(session, [DeleteThread("t")])

    await held._server.write(plan)
    monkeypatch.undo()
    for cut in range(len(done) + 1):
        await held._server.write(lambda session, cut=cut: session.change(done[:cut]))
        assert len(await everything(saver)) == (3 if cut == 0 else 0)


@pytest.mark.slow
async def test_values_of_any_size_come_back_and_leave_nothing_behind(
    saver: MongoDBSaver, mongo: dict[str, Any], mongo_server: MongoServer
) -> None:
    huge, large, other = bytes(range(256)) * (MIB // 256) * 9, b"x" * (2 * MIB), b"y" * (2 * MIB)
    where = await put(saver, "1", {"large": huge, "small": 1})
    await saver.aput_writes(where, [("a", large), ("b", other), ("c", 1), ("__resume__", [large])], "task")
    await saver.aput_writes(where, [("a", other), ("__resume__", [other])], "task")
    await saver.acopy_thread("t", "u")
    for thread_id in ("t", "u"):
        stored = await saver.aget_tuple(config(thread_id))
        assert stored is not None
        assert stored.checkpoint["channel_values"] == {"large": huge, "small": 1}
        assert [value for _, _, value in stored.pending_writes or ()] == [[other], large, other, 1]
    await put(saver, "2", {"small": 2}, parent="1")
    await saver.aprune(["t"])
    assert mongo_server.kinds(mongo["prefix"])["chunk"] == 2 + 1 + 1 + 1  # those of the copy
    await saver.adelete_thread("u")
    assert mongo_server.kinds(mongo["prefix"]) == {"checkpoint": 1}


@pytest.mark.slow
async def test_a_checkpoint_with_many_channels_is_large_itself(saver: MongoDBSaver) -> None:
    values = {f"channel {number:07}": number for number in range(150_000)}
    await put(saver, "1", values)
    stored = await saver.aget_tuple(config())
    assert stored is not None
    assert stored.checkpoint["channel_values"] == values


@pytest.mark.slow
async def test_what_no_document_can_hold_is_refused_alone_before_anything_is_sent(
    saver: MongoDBSaver, mongo: dict[str, Any], mongo_server: MongoServer
) -> None:
    await put(saver, "1", {"a": 1})
    before = mongo_server.kinds(mongo["prefix"])
    long = "x" * NAMES
    good = saver.send_nowait(saver.encode(unit("a", "1", writes_to="0", value=["x"])))
    many = [(f"channel {number}", number) for number in range(100_000)]
    bad = [
        unit("t", "2", parent="1", writes_to="1", value=[1], task_id=long),
        Unit("t", "", [TaskWrites("1", "many", "", many)]),
        Unit("t", "", [], checkpoint("3", {}), None, {"note": long}),
        Unit("t", "", [], checkpoint("4", {long: [1]}), None, {}, {long: [1]}),
    ]
    receipts = [saver.send_nowait(saver.encode(one)) for one in bad]
    await good.wait()
    for receipt in receipts:
        with pytest.raises(BackendError, match="bytes of names and metadata.*nothing was saved"):
            await receipt.wait()
    await saver.adelete_thread("a")
    assert mongo_server.kinds(mongo["prefix"]) == before


@pytest.mark.slow
async def test_a_damaged_document_is_told_of_and_others_stay_readable(
    saver: MongoDBSaver, mongo: dict[str, Any], mongo_server: MongoServer
) -> None:
    for number in range(6):
        await put(saver, f"{number}", {"a": [number], "large": b"x" * (9 * MIB) if number == 4 else [number]})
    documents = mongo_server.database[f"{mongo['prefix']}_threads"]
    documents.update_one({"kind": "checkpoint", "checkpoint_id": "0"}, {"$set": {"checkpoint": 7}})
    documents.update_one({"kind": "checkpoint", "checkpoint_id": "1"}, {"$unset": {"type": 1}})
    documents.delete_one({"kind": "blob", "version": "2.a"})
    documents.update_one({"kind": "blob", "version": "3.a"}, {"$set": {"blob": {"digest": 1}}})
    documents.delete_one({"kind": "chunk"})
    for number in range(5):
        with pytest.raises(CorruptDataError, match=f"Checkpoint {number} of thread 't'"):
            await saver.aget_tuple(config("t", f"{number}"))
    assert [one.checkpoint["id"] async for one in saver.alist(config(), limit=1)] == ["5"]
    await saver.aprune(["t"])
    assert mongo_server.kinds(mongo["prefix"]) == {"checkpoint": 1, "blob": 2}


async def test_deleting_leaves_nothing_behind(
    saver: MongoDBSaver, mongo: dict[str, Any], mongo_server: MongoServer
) -> None:
    for ns in ("", "child:1", "child:1|grandchild:2"):
        where = await put(saver, "1", {"a": [1]}, ns=ns, run_id="r")
        await saver.aput_writes(where, [("a", [1])], "task")
        await saver.aput_writes(config("t", "not yet stored", ns), [("a", [1])], "task")
    await saver.acopy_thread("t", "u")
    await saver.acopy_thread("t", "t")
    await saver.acopy_thread("none", "v")
    assert mongo_server.kinds(mongo["prefix"]) == {"checkpoint": 6, "writes": 12, "blob": 6}
    await saver.aprune(["t", "u"])
    assert mongo_server.kinds(mongo["prefix"]) == {"checkpoint": 6, "writes": 6, "blob": 6}
    await saver.adelete_thread("t")
    assert mongo_server.kinds(mongo["prefix"]) == {"checkpoint": 3, "writes": 3, "blob": 3}
    await saver.adelete_for_runs([])
    await saver.adelete_for_runs(["r", "s"])
    assert mongo_server.kinds(mongo["prefix"]) == {}


def test_the_newest_threads_are_four_commands(mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    """However many there are: a walk back from the newest checkpoint, numbers, the heads, what their tasks did."""
    commands = Commands()

    async def fill() -> None:
        async with MongoDBSaver(**mongo) as saver:
            batch = [unit(f"t{number % 7}", f"{number:02}", value=[1], ns="n" * (number % 2)) for number in range(35)]
            await commit(saver, *batch)

    anyio.run(fill)
    settings = {key: value for key, value in mongo.items() if key not in {"source", "transactions"}}
    with look_into(mongo["source"], **settings, connect_arguments={"event_listeners": [commands]}) as listing:
        commands.taken()
        found = listing.threads(3)
        assert commands.taken() == ["find", "aggregate", "find", "find"]
        assert found == listing.threads()[:3]
    assert [(one.thread_id, one.namespaces, one.checkpoints) for one in found] == [
        ("t6", 2, 5),
        ("t5", 2, 5),
        ("t4", 2, 5),
    ]
    assert [one.newest.checkpoint_id for one in found] == ["34", "26", "32"]
