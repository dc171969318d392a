"""Threads that vanish: all documents of one have one date, later after each write and read; the last writer decides.

The server deletes by itself, which is its own business; the tests move dates instead of waiting.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from persistence.mongo import MongoDBSaver, writing
from persistence.mongo.chunks import MIB
from persistence.mongo.lifetimes import GRACE, LINES
from persistence.mongo.listing import look_into
from persistence.writer.batching import Merged
from tests.persistence.mongo.test_commits import Commands
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio
HOUR: Any = {"default_ttl": 60}
LENGTH = timedelta(hours=1)


class Documents:
    """What is stored, behind the savers' backs."""

    def __init__(self, server: MongoServer, prefix: str) -> None:
        self.all: Any = server.database[f"{prefix}_threads"]

    def dates(self, thread_id: str = "t") -> set[datetime | None]:
        """Return the dates of a thread's documents."""
        return {each.get("vanishes_at") for each in self.all.find({"thread_id": thread_id})}

    def date(self, thread_id: str = "t") -> datetime:
        """Return the one date that all documents of a thread have."""
        (found,) = self.dates(thread_id)
        assert found is not None
        return found.replace(tzinfo=UTC)

    def age(self, by: timedelta, thread_id: str = "t") -> None:
        """Let some time pass for a thread."""
        self.all.update_many({"thread_id": thread_id}, {"$set": {"vanishes_at": self.date(thread_id) - by}})


@pytest.fixture
def documents(mongo: dict[str, Any], mongo_server: MongoServer) -> Documents:
    return Documents(mongo_server, mongo["prefix"])


def fresh(date: datetime, length: timedelta = LENGTH) -> bool:
    """Whether a date is that of something written or read just now."""
    return timedelta(minutes=-1) < date - datetime.now(UTC) - length <= length / LINES


async def fill(saver: MongoDBSaver, thread_id: str = "t") -> None:
    where = await put(saver, "1", {"a": [1]}, thread_id=thread_id)
    await saver.aput_writes(where, [("a", [1]), ("__resume__", 1)], "task")
    await put(saver, "2", {"a": [2]}, thread_id=thread_id, ns="child")


async def everything(saver: MongoDBSaver, where: Any = None, **options: Any) -> list[Any]:
    return [one async for one in saver.alist(where, **options)]


async def test_every_document_of_a_thread_has_one_date(mongo: dict[str, Any], documents: Documents) -> None:
    async with MongoDBSaver(**mongo, ttl=HOUR) as saver:
        await fill(saver)
        await put(saver, "3", {"large": b"x" * 9 * MIB})
        await saver.acopy_thread("t", "u")
    kinds = {each["kind"] for each in documents.all.find({"thread_id": "u"})}
    assert kinds == {"checkpoint", "blob", "writes", "chunk"}
    assert fresh(documents.date("t"))
    assert fresh(documents.date("u"))
    indexes = documents.all.index_information()
    assert indexes["vanishing"]["expireAfterSeconds"] == GRACE


async def test_writing_and_reading_start_it_again(mongo: dict[str, Any], documents: Documents) -> None:
    async with MongoDBSaver(**mongo, ttl=HOUR) as saver:
        await fill(saver)
        documents.age(LENGTH / 2)
        await saver.aput_writes(config("t", "1"), [("b", 1)], "other task")
        assert fresh(documents.date())
        for read in (
            lambda: saver.aget_tuple(config()),
            lambda: saver.aget_tuple(config("t", "1")),
            lambda: everything(saver),
            lambda: everything(saver, config(), filter={"source": "loop"}),
        ):
            documents.age(LENGTH / 2)
            assert await read()
            assert fresh(documents.date())
        documents.age(LENGTH / 2)
        assert await saver.aget_tuple(config("u")) is None
        assert await saver.aget_tuple(config("t", "9")) is None
        assert not fresh(documents.date())


async def test_a_thread_is_dated_anew_only_now_and_then(mongo: dict[str, Any]) -> None:
    """Neither reads nor writes cost a command more while the date is the same."""
    commands = Commands()
    long: Any = {"default_ttl": 1e6}
    async with MongoDBSaver(**mongo, ttl=long, connect_arguments={"event_listeners": [commands]}) as saver:
        await fill(saver)
        commands.taken()
        await saver.aget_tuple(config())
        assert commands.taken() == ["find", "find"]
        await put(saver, "3", {"a": [3]})
        assert [name for name in commands.taken() if name != "commitTransaction"] == ["delete", "update"]


@pytest.mark.parametrize("ttl", [{"default_ttl": 60, "refresh_on_read": False}, 3600])
async def test_reading_need_not(mongo: dict[str, Any], documents: Documents, ttl: Any) -> None:
    """A plain number is seconds, after which what was not written again is gone."""
    async with MongoDBSaver(**mongo, ttl=ttl) as saver:
        await fill(saver)
        assert fresh(documents.date())
        documents.age(LENGTH / 2)
        assert await saver.aget_tuple(config()) is not None
        assert [one.checkpoint["id"] for one in await everything(saver)] == ["2", "1"]
        assert not fresh(documents.date())


async def test_the_last_writer_decides(mongo: dict[str, Any], documents: Documents) -> None:
    minute: Any = {"default_ttl": 1}
    async with MongoDBSaver(**mongo, ttl=HOUR) as passing:
        async with MongoDBSaver(**mongo) as staying, MongoDBSaver(**mongo, ttl=minute) as short:
            await fill(passing)
            await short.aget_tuple(config())
            assert fresh(documents.date())
            await short.aput_writes(config("t", "1"), [("b", 1)], "third task")
            assert fresh(documents.date(), timedelta(minutes=1))
            await passing.aget_tuple(config())
            await staying.aget_tuple(config())
            assert fresh(documents.date())
            await staying.aput_writes(config("t", "1"), [("b", 1)], "other task")
            assert documents.dates() == {None}
            await passing.aget_tuple(config())
            assert documents.dates() == {None}
        await passing.aput_writes(config("t", "1"), [("b", 1)], "fourth task")
        assert fresh(documents.date())


async def test_what_has_vanished_is_not_seen_before_the_server_deletes_it(
    mongo: dict[str, Any], documents: Documents, mongo_server: MongoServer
) -> None:
    async with MongoDBSaver(**mongo, ttl=HOUR) as saver:
        await fill(saver)
        await fill(saver, "u")
        documents.age(2 * LENGTH)
        assert await saver.aget_tuple(config()) is None
        assert await saver.aget_tuple(config("t", "1")) is None
        assert {one.config["configurable"]["thread_id"] for one in await everything(saver)} == {"u"}
        assert await everything(saver, config(), filter={"source": "loop"}) == []
        await saver.acopy_thread("t", "v")
        assert documents.dates("v") == set()
    with look_into(mongo_server.url, database=mongo["database"], prefix=mongo["prefix"]) as listing:
        assert [thread.thread_id for thread in listing.threads()] == ["u"]
        assert (listing.thread_count(), listing.checkpoint_count("t"), listing.checkpoints("t")) == (1, 0, [])
    assert not fresh(documents.date("t")), "looking does not start it again"


async def test_a_thread_that_comes_again_is_a_new_one(mongo: dict[str, Any], documents: Documents) -> None:
    async with MongoDBSaver(**mongo, ttl=HOUR) as saver:
        await fill(saver)
        documents.age(2 * LENGTH)
        first = replace(unit("t", "0", value=[0]), expected_head="")
        await saver._backend.commit([saver.encode(first)])
        assert [one.checkpoint["id"] for one in await everything(saver)] == ["0"]
        await saver._backend.commit([saver.encode(replace(unit("t", "1", parent="0"), expected_head="0"))])
        assert [one.checkpoint["id"] for one in await everything(saver)] == ["1", "0"]
        assert fresh(documents.date())


async def test_a_batch_that_was_cut_off_anywhere_vanishes_as_a_whole(
    mongo: dict[str, Any], documents: Documents
) -> None:
    """As on a server that has no transactions, and dies: nothing that is there goes before what rests on it."""
    async with MongoDBSaver(**mongo, ttl=HOUR) as saver:
        await fill(saver)
        server: Any = saver._backend

        async def cut_off(session: Any, cut: int) -> int:
            batch = writing.kept(session, merged)
            await session.change(batch[:cut])
            return len(batch)

        merged = Merged()
        merged.add(saver.encode(unit("t", "3", writes_to="1", value=[3])))
        cut, end = 2, 3
        while cut < end:
            documents.age(LENGTH / 2)
            end = await server._server.write(lambda session, cut=cut: cut_off(session, cut))
            assert fresh(documents.date())
            assert await saver.aget_tuple(config()) is not None
            cut += 1
        assert end > 4


async def test_a_life_without_a_date_is_one_for_ever(mongo: dict[str, Any], documents: Documents) -> None:
    aeon: Any = {"default_ttl": 1e13}
    async with MongoDBSaver(**mongo, ttl=aeon) as saver:
        await fill(saver)
        assert len(await everything(saver)) == 2
    assert documents.dates() == {None}


@pytest.mark.parametrize("ttl", [{"default_ttl": 0}, {"minutes": 1}, {"default_ttl": "1"}, 0, -1, "1", True])
def test_impossible_times_are_refused(ttl: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="ttl|TTL"):
        MongoDBSaver("mongodb://localhost", ttl=ttl)
