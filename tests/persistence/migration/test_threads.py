"""Threads come over whole, with every id, or stay behind whole; and whatever stops the work, it goes on."""

from __future__ import annotations

import dataclasses
import hashlib
import operator
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START
from langgraph.graph import StateGraph as PeerGraph

from persistence.errors import BackendOpenError
from persistence.memory import InMemorySaver
from persistence.migration import moving
from persistence.migration.constructors import Constructors, langchain_types
from persistence.migration.decoding import ForeignDecoder
from persistence.migration.moving import Tally, ThreadMover
from persistence.migration.postgres import PostgresSource
from persistence.migration.records import WritesOf
from persistence.migration.sqlite import SqliteSource
from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from tests.persistence.migration.peer import Peer, everything, put, sqlite_peer


@dataclasses.dataclass
class Note:
    text: str


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    note: Note
    messages: Annotated[list[Any], operator.add]


def graph(saver: Any, *, failing: bool = False) -> Any:
    def first(state: State) -> Any:
        return {"log": ["first"], "note": Note("é"), "messages": [HumanMessage("q", id="1"), AIMessage("a", id="2")]}

    def second(state: State) -> Any:
        if failing:
            msg = "no"
            raise ValueError(msg)
        return {"log": ["second"]}

    inner = PeerGraph(State).add_node("inner", lambda state: {"log": ["inner"]}).add_edge(START, "inner").compile()
    builder = PeerGraph(State).add_node("first", first).add_node("second", second).add_node("sub", inner)
    builder.add_edge(START, "first").add_edge("first", "second").add_edge("first", "sub")
    return builder.compile(saver)


def filled(peer: Peer, *threads: str) -> Any:
    """Run threads in LangGraph, the last of them twice, from its middle too; return all that it then has."""
    with peer.saver() as saver:
        for thread in threads:
            config: Any = {"configurable": {"thread_id": thread}, "metadata": {"user": "é"}}
            graph(saver).invoke({"log": [thread]}, config)
        with pytest.raises(ValueError, match="no"):
            graph(saver, failing=True).invoke({"log": ["again"]}, config)
        forked = [each.config for each in graph(saver).get_state_history(config)][-2]
        graph(saver).invoke(None, forked)
        return everything(saver)


class Plain:
    async def adopt(self, unit: Any, writes_of: WritesOf) -> None:
        """Leave everything as it is stored."""


TYPES = (Note, *langchain_types().values())


def mover(source: Any, target: Any, types: Iterable[type] = TYPES, *, dry: bool = False) -> ThreadMover:
    target.register_types(types)
    return ThreadMover(source, target, ForeignDecoder(Constructors(types)), Plain, dry=dry)


async def carry(peer: Peer, target: Any, types: Iterable[type] = TYPES) -> Tally:
    async with peer.source() as source:
        moves = mover(source, target, types)
        for thread in await source.threads():
            await moves.move(thread)
        return moves.tally


async def here(saver: Any) -> dict[tuple[str, str, str], Any]:
    return {tuple(each.config["configurable"].values()): each async for each in saver.alist(None)}


def like(ours: Any) -> Any:
    """Return a checkpoint as LangGraph's savers tell of it."""
    return {
        "checkpoint": ours.checkpoint,
        "metadata": ours.metadata,
        "parent": None if ours.parent_config is None else ours.parent_config["configurable"]["checkpoint_id"],
        "writes": [tuple(write) for write in ours.pending_writes or ()],
    }


def rows(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    try:
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    finally:
        connection.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A saver of ours, not yet open."""
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "sqlite":
        yield SqliteSaver(tmp_path / "ours.db")
    else:
        with request.getfixturevalue("postgres").schema() as url:
            yield PostgresSaver(url)


async def test_everything_comes_over(peer: Peer, target: Any) -> None:
    theirs = filled(peer, "1", "é {}")
    async with target:
        tally = await carry(peer, target)
        ours = await here(target)
    assert ours.keys() == theirs.keys()
    assert len({ns for _, ns, _ in ours}) > 1, "subgraphs have namespaces of their own"
    for key, found in theirs.items():
        assert like(ours[key]) == like(found)
    assert (tally.threads, tally.checkpoints, tally.problems, tally.present) == (2, len(theirs), [], 0)
    assert tally.writes == sum(len(found.pending_writes) for found in theirs.values())


async def test_again_there_is_nothing_to_do(peer: Peer, tmp_path: Path) -> None:
    filled(peer, "1", "2")
    async with SqliteSaver(tmp_path / "ours.db") as saver:
        await carry(peer, saver)
        before = rows(tmp_path / "ours.db")
        tally = await carry(peer, saver)
        assert rows(tmp_path / "ours.db") == before
    assert (tally.threads, tally.checkpoints, tally.present, tally.problems) == (0, 0, 2, [])


async def test_a_thread_that_went_on_there_is_caught_up_with(peer: Peer, tmp_path: Path) -> None:
    filled(peer, "1")
    async with SqliteSaver(tmp_path / "ours.db") as saver:
        await carry(peer, saver)
        theirs = filled(peer, "1")
        assert (await carry(peer, saver)).problems == []
        assert (await here(saver)).keys() == theirs.keys()


class Stopped(Exception):  # noqa: N818 - what a user does
    pass


class Stopping:
    """A saver whose user stops the work after so many units."""

    def __init__(self, saver: Any, after: int) -> None:
        self._saver = saver
        self._left = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    async def send(self, request: Any) -> Any:
        if not self._left:
            raise Stopped
        self._left -= 1
        return await self._saver.send(request)


@pytest.mark.parametrize("kept", [0, moving.KEPT], ids=["read twice", "kept"])
async def test_stopped_anywhere_it_goes_on(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(moving, "PAGE", 2)
    monkeypatch.setattr(moving, "UNDER_WAY", 3)
    monkeypatch.setattr(moving, "KEPT", kept)
    theirs = filled(peer, "1", "2")
    path = tmp_path / "ours.db"
    async with SqliteSaver(path) as saver:
        for after in (1, 3, 0, 6):
            with pytest.raises(Stopped):
                await carry(peer, Stopping(saver, after))
        tally = await carry(peer, saver)
        ours = await here(saver)
        resumed = rows(path)
    assert {key: like(found) for key, found in ours.items()} == {key: like(found) for key, found in theirs.items()}
    assert tally.problems == []
    async with SqliteSaver(tmp_path / "at_once.db") as saver:
        await carry(peer, saver)
    assert resumed == rows(tmp_path / "at_once.db")


async def test_the_head_of_the_root_comes_last(peer: Peer) -> None:
    """Whoever looks at a thread too early sees an older state of it, and never one whose subgraphs are missing."""
    filled(peer, "1")
    saver = InMemorySaver()
    with pytest.raises(Stopped):
        await carry(peer, Stopping(saver, 3))
    assert {ns == "" for _, ns, _ in await here(saver)} == {False}


# ---- what stays behind -----------------------------------------------------------------------------------------------


async def test_what_cannot_be_carried_stays_behind_whole(peer: Peer) -> None:
    theirs = filled(peer, "1")
    with peer.saver() as saver:
        put(saver, "plain", {"a": [1]})
        head = put(saver, "pickled", {"a": 1, "b": [complex(1, 2)]}) if peer.kind == "langgraph-postgres" else None
    ours = InMemorySaver()
    tally = await carry(peer, ours, langchain_types().values())
    assert {thread for thread, _, _ in await here(ours)} == {"plain"}
    assert tally.left == ({"1", "pickled"} if head else {"1"})
    assert tally.threads == 1
    told = [problem for problem in tally.problems if problem.thread_id == "1"]
    assert {problem.reason for problem in told} == {f"class {Note.__module__}:Note is not registered"}
    assert {problem.where for problem in told} >= {"channel 'note'", "a write to channel 'note'"}
    assert all(("1", problem.checkpoint_ns, problem.checkpoint_id) in theirs for problem in told)
    assert len(told) == len({(problem.checkpoint_ns, problem.where) for problem in told}), "each is told once"


async def test_pickles_are_named(peer: Peer) -> None:
    with peer.saver() as saver:
        place = put(saver, "1", {"a": 1, "b": [complex(1, 2)]})
    tally = await carry(peer, InMemorySaver())
    (problem,) = tally.problems
    assert (problem.thread_id, problem.checkpoint_id) == ("1", place)
    assert problem.reason.startswith("it is a pickle")


async def test_a_thread_that_went_on_here_is_left_alone(peer: Peer, tmp_path: Path) -> None:
    filled(peer, "1", "2")
    async with SqliteSaver(tmp_path / "ours.db") as saver:
        await carry(peer, saver)
        newest = await saver.aget_tuple({"configurable": {"thread_id": "1"}})
        assert newest is not None
        own: Any = {**newest.checkpoint, "id": "f" * 36}
        await saver.aput(newest.config, own, {"source": "loop", "step": 9}, {})
        before = rows(tmp_path / "ours.db")
        tally = await carry(peer, saver)
        assert rows(tmp_path / "ours.db") == before
    assert tally.left == {"1"}
    assert [problem.reason for problem in tally.problems] == [
        "the target has this thread already, and it went on there"
    ]


class Racing:
    """A saver in which somebody else moves the thread on as soon as it is looked at."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    async def send(self, request: Any) -> Any:
        if request.checkpoint_ns == "":
            config = {"configurable": {"thread_id": request.thread_id}}
            other: Any = {"v": 4, "id": "f" * 36, "ts": "", "channel_values": {}, "channel_versions": {}}
            other |= {"versions_seen": {}, "updated_channels": None}
            await self._saver.aput(config, other, {}, {})
        return await self._saver.send(request)


async def test_a_race_with_another_writer_is_lost_and_told(tmp_path: Path, peer: Peer) -> None:
    filled(peer, "1")
    async with SqliteSaver(tmp_path / "ours.db") as saver:
        tally = await carry(peer, Racing(saver))
        assert [key for key in await here(saver) if key[1] == ""] == [("1", "", "f" * 36)]
    assert tally.left == {"1"}
    assert "somebody else writes to it" in tally.problems[0].reason


async def test_a_dry_look_opens_no_target(peer: Peer, tmp_path: Path) -> None:
    theirs = filled(peer, "1", "2")
    with peer.saver() as saver:
        put(saver, "nan", {"a": 1})
    target = SqliteSaver(tmp_path / "ours.db")
    async with peer.source() as source:
        moves = mover(source, target, dry=True)
        for thread in await source.threads():
            await moves.move(thread)
    assert (moves.tally.threads, moves.tally.checkpoints) == (3, len(theirs) + 1)
    assert not (tmp_path / "ours.db").exists()


# ---- the source ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteSource]:
    async with SqliteSource(str(path)) as source:
        yield source


async def test_a_file_without_task_paths(tmp_path: Path) -> None:
    """As version 1 and the first of version 2 made it; there was metadata of bytes then, and of none."""
    path = tmp_path / "old #1.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,"
        " metadata);"
        "CREATE TABLE writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value);"
    )
    body = b'{"v": 1, "id": "a", "ts": "", "channel_values": {"k": [1]}, "channel_versions": {"k": 2}}'
    connection.execute("INSERT INTO checkpoints VALUES ('t', '', 'a', '', 'json', ?, ?)", (body, b'{"step": 1}'))
    connection.execute("INSERT INTO checkpoints VALUES ('t', '', 'b', 'a', 'json', ?, NULL)", (body,))
    connection.execute("INSERT INTO writes VALUES ('t', '', 'a', 'task', 0, 'k', 'json', ?)", (b"[2]",))
    connection.commit()
    connection.close()
    saver = InMemorySaver()
    async with opened(path) as source:
        moves = mover(source, saver)
        for thread in await source.threads():
            await moves.move(thread)
    assert moves.tally.problems == []
    ours = await here(saver)
    assert like(ours["t", "", "a"])["writes"] == [("task", "k", [2])]
    assert ours["t", "", "b"].parent_config is not None
    assert ours["t", "", "a"].parent_config is None
    assert ours["t", "", "a"].metadata == {"step": 1}
    assert ours["t", "", "b"].checkpoint["channel_values"] == {"k": [1]}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE checkpoints SET metadata = '{'", "it is damaged"),
        ("UPDATE checkpoints SET metadata = '[]'", "it is no dict"),
        ("UPDATE checkpoints SET metadata = '{\"a\": NaN}'", "JSON cannot keep"),
        ("UPDATE checkpoints SET checkpoint = x'ff'", "it is damaged"),
        ("UPDATE checkpoints SET type = 'pickle'", "it is a pickle"),
        ("UPDATE checkpoints SET thread_id = 'a' || char(0)", "holds a NUL"),
        ("UPDATE writes SET value = x'c1'", "it is damaged"),
    ],
)
async def test_damage_is_told(tmp_path: Path, damage: str, reason: str) -> None:
    one = sqlite_peer(tmp_path)
    with one.saver() as saver:
        graph(saver).invoke({"log": []}, {"configurable": {"thread_id": "1"}})
    connection = sqlite3.connect(one.url)
    connection.execute(damage)
    connection.commit()
    connection.close()
    saver = InMemorySaver()
    tally = await carry(one, saver)
    assert tally.problems
    assert reason in tally.problems[0].reason
    assert await here(saver) == {}


async def test_the_file_is_not_changed(tmp_path: Path) -> None:
    one = sqlite_peer(tmp_path)
    filled(one, "1")
    path = Path(one.url)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    await carry(one, InMemorySaver())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


async def test_other_files_are_refused(tmp_path: Path) -> None:
    async with SqliteSaver(tmp_path / "ours.db"):
        pass
    (tmp_path / "text").write_text("no database, but long enough to be looked at")
    sqlite3.connect(tmp_path / "empty.db").close()
    for name, words in (
        ("nowhere.db", "There is no file"),
        ("text", "file is not a database"),
        ("empty.db", "has no tables of LangGraph's"),
        ("ours.db", "was not written by LangGraph's SqliteSaver"),
    ):
        with pytest.raises(BackendOpenError, match=words):
            async with opened(tmp_path / name):
                pass


async def test_other_schemas_are_refused(postgres_url: str, postgres: Any) -> None:
    with pytest.raises(BackendOpenError, match="has no tables of LangGraph's"):
        async with PostgresSource(postgres_url):
            pass
    postgres.rows("CREATE TABLE checkpoints (thread_id text, checkpoint_ns text)", url=postgres_url)
    with pytest.raises(BackendOpenError, match="tables or columns of it are missing"):
        async with PostgresSource(postgres_url):
            pass
    with pytest.raises(BackendOpenError, match="cannot be opened"):
        async with PostgresSource("postgresql://nobody@127.0.0.1:1/none", connect_timeout=5):
            pass


async def test_a_schema_of_ours_is_refused(postgres_url: str) -> None:
    async with PostgresSaver(postgres_url) as saver:
        checkpoint: Any = {"v": 4, "id": "a", "ts": "", "channel_values": {}, "channel_versions": {}}
        checkpoint |= {"versions_seen": {}, "updated_channels": None}
        await saver.aput({"configurable": {"thread_id": "1"}}, checkpoint, {}, {})
    with pytest.raises(BackendOpenError, match="was written by this project's PostgresSaver"):
        async with PostgresSource(postgres_url):
            pass


async def test_a_value_without_a_version_is_found_again(peer: Peer) -> None:
    """A graph of one's own may store some."""
    with peer.saver() as saver:
        config = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
        checkpoint = {**empty_checkpoint(), "channel_values": {"small": 1}}
        saver.put(config, checkpoint, {}, {})
    ours = InMemorySaver()
    assert (await carry(peer, ours)).problems == []
    (found,) = (await here(ours)).values()
    assert found.checkpoint["channel_values"] == {"small": 1}
