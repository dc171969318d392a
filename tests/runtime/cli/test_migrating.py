"""``actorgraph migrate``: what it says, what it leaves behind, and that it goes on where it was stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from persistence.migration.records import Problem
from persistence.mongo import MongoDBSaver, MongoDBStore
from persistence.redis import RedisSaver, RedisStore
from persistence.sqlite import SqliteSaver, SqliteStore
from runtime.cli import main
from tests.persistence.migration.peer import Peer, postgres_peer, put, sqlite_peer
from tests.runtime.cli import both
from tests.runtime.cli.both import PEER
from tests.runtime.cli.commands import Command, environment
from tests.runtime.cli.servers import empty_mongo, empty_redis
from tests.runtime.cli.test_terminal import on_a_terminal

CONFIG: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture(params=["sqlite", "postgres"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Peer:
    """An empty database for LangGraph, of either kind."""
    if request.param == "sqlite":
        return sqlite_peer(tmp_path)
    url: Any = request.getfixturevalue("postgres_url")
    return postgres_peer(url)


def fill(peer: Peer) -> None:
    """Leave a thread that waits, one whose classes only a graph knows, one with a pickle, and items."""
    with peer.saver() as saver:
        both.asking(PEER).compile(saver).invoke({"log": ["in"]}, CONFIG)
        order = {"customer": both.Customer(name="N")}
        both.ordering(PEER).compile(saver).invoke(order, {"configurable": {"thread_id": "order"}})
        put(saver, "pickled", {"a": [complex(1, 2)]})
    with peer.store() as store:
        store.put(("users", "1"), "name", {"first": "N"})


def migrate(command: Command, peer: Peer, to: str, *words: str) -> Any:
    return command("migrate", "--from", peer.kind, peer.url, "--to", to, *words)


def test_a_dry_run_tells_what_stays_behind_and_why(command: Command, peer: Peer, tmp_path: Path) -> None:
    fill(peer)
    result = migrate(command, peer, "ours.db", "--dry-run", "--json")
    assert result.code == 1
    told = result.document
    assert (told["threads"], told["items"], told["dry_run"]) == (1, 1, True)
    assert told["left_behind"] == ["order", "pickled"]
    module = both.__name__
    reasons = {problem["reason"] for problem in told["problems"] if problem["thread"] == "order"}
    assert reasons == {f"class {module}:{name} is not registered" for name in ("Customer", "Line", "Colour")}
    (pickled,) = [problem for problem in told["problems"] if problem["thread"] == "pickled"]
    assert pickled["where"] == ("the checkpoint" if peer.kind == "langgraph-sqlite" else "channel 'a'")
    assert pickled["reason"] == "it is a pickle, which could run any code when it is read"
    assert pickled["checkpoint"]
    assert not (tmp_path / "ours.db").exists()


def test_it_says_so_in_words(command: Command, tmp_path: Path) -> None:
    one = sqlite_peer(tmp_path)
    fill(one)
    result = migrate(command, one, "ours.db", "--dry-run")
    text = " ".join(result.out.split())
    assert "Cannot be carried because" in text
    assert "it is a pickle, which could run" in text
    assert "--graph MODULE:GRAPH" in text
    assert "Would carry 1 thread, 2 checkpoints" in text
    assert "2 threads left behind, whole" in text
    assert result.code == 1


def test_what_is_carried_is_answered_and_the_rest_stays(command: Command, peer: Peer, tmp_path: Path) -> None:
    fill(peer)
    graph = f"{both.__name__}:ordering_ours"
    result = migrate(command, peer, "ours.db", "--graph", graph, "--json")
    assert result.code == 1, "the pickle stays behind"
    assert (result.document["threads"], result.document["left_behind"]) == (2, ["pickled"])
    again = migrate(command, peer, f"sqlite:///{tmp_path}/ours.db", "--graph", graph, "--json").document
    assert (again["threads"], again["items"], again["present"], again["left_behind"]) == (0, 0, 3, ["pickled"])
    with SqliteSaver("ours.db") as saver:
        compiled = both.asking(both.OURS).compile(saver)
        for word in ("1", "2"):
            compiled.invoke(both.OURS.Command(resume=word), CONFIG)
        assert compiled.invoke(both.OURS.Command(resume="3"), CONFIG)["log"] == ["in", "1 2", "3"]
        order = both.ordering(both.OURS).compile(saver)
        paid = order.invoke(both.OURS.Command(resume=True), {"configurable": {"thread_id": "order"}})
        assert paid["customer"] == both.Customer(name="N", tags={"new"})
        assert paid["lines"] == [both.Line("chair", both.Colour.RED)]
    with SqliteStore("ours.db") as store:
        item = store.get(("users", "1"), "name")
        assert item is not None
        assert item.value == {"first": "N"}


def test_threads_that_came_over_stand_as_they_did(command: Command, peer: Peer) -> None:
    """LangGraph keeps the versions of channels that started a node and are empty since."""
    asked, done = ({"configurable": {"thread_id": name}} for name in ("asked", "done"))
    with peer.saver() as saver:
        both.asking(PEER).compile(saver).invoke({"log": ["in"]}, asked)
        both.nested(PEER).compile(saver).invoke({"log": ["in"]}, {"configurable": {"thread_id": "below"}})
        ended = both.asking(PEER).compile(saver)
        for given in ({"log": ["in"]}, *(PEER.Command(resume=word) for word in "123")):
            ended.invoke(given, done)
    migrate(command, peer, "ours.db")

    def told() -> dict[str, Any]:
        found = command("threads", "--db", "ours.db", "--json").document["threads"]
        return {each["thread"]: (each["status"], each["next"]) for each in found}

    assert told() == {"asked": ("asking", ["ask"]), "below": ("asking", ["sub"]), "done": ("done", [])}
    with SqliteSaver("ours.db") as saver:
        compiled = both.asking(both.OURS).compile(saver)
        for word in "123":
            compiled.invoke(both.OURS.Command(resume=word), asked)
    assert told()["asked"] == ("done", [])


def test_to_a_server(command: Command, peer: Peer, postgres: Any) -> None:
    fill(peer)
    with postgres.schema() as url:
        result = migrate(command, peer, url, "--graph", f"{both.__name__}:ordering_ours", "--json")
        assert (result.document["threads"], result.document["items"]) == (2, 1)
        assert postgres.rows("SELECT count(DISTINCT thread_id) FROM checkpoints", url=url) == [(2,)]
        again = migrate(command, peer, url, "--graph", f"{both.__name__}:ordering_ours", "--json").document
        assert (again["threads"], again["items"], again["present"]) == (0, 0, 3)


@pytest.mark.parametrize("kind", ["redis", "mongo"])
def test_to_a_server_without_tables(
    command: Command, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    one = sqlite_peer(tmp_path)
    fill(one)
    graph = ("--graph", f"{both.__name__}:ordering_ours", "--json")
    server: Any = request.getfixturevalue(f"{kind}_server")
    saver_of, store_of = (RedisSaver, RedisStore) if kind == "redis" else (MongoDBSaver, MongoDBStore)
    with (empty_redis if kind == "redis" else empty_mongo)(server) as url:
        result = migrate(command, one, url, *graph)
        assert (result.document["threads"], result.document["items"]) == (2, 1)
        again = migrate(command, one, url, *graph).document
        assert (again["threads"], again["items"], again["present"]) == (0, 0, 3)
        with saver_of(url) as saver, store_of(url) as store:
            compiled = both.asking(both.OURS).compile(saver)
            for word in ("1", "2"):
                compiled.invoke(both.OURS.Command(resume=word), CONFIG)
            assert compiled.invoke(both.OURS.Command(resume="3"), CONFIG)["log"] == ["in", "1 2", "3"]
            item = store.get(("users", "1"), "name")
            assert item is not None
            assert item.value == {"first": "N"}


def test_passwords_are_not_told(command: Command, tmp_path: Path) -> None:
    one = sqlite_peer(tmp_path)
    fill(one)
    result = migrate(command, one, "postgresql://me:secret@127.0.0.1:1/db", "--dry-run", "--json")
    assert result.document["to"] == "postgresql://me@127.0.0.1:1/db"
    result = migrate(command, one, "postgresql://me:secret@127.0.0.1:1/db")
    assert result.code == 1
    assert "secret" not in result.out + result.err


def test_everything_carried_is_success(command: Command, tmp_path: Path) -> None:
    one = sqlite_peer(tmp_path)
    with one.saver() as saver:
        put(saver, "1", {"a": 1})
    assert migrate(command, one, "ours.db").code == 0
    result = migrate(command, one, "ours.db")
    assert (result.code, result.err) == (0, "")
    assert "Carried 0 threads" in result.out
    assert "1 were there already." in result.out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_a_bar_shows_how_far_it_is(tmp_path: Path) -> None:
    one = sqlite_peer(tmp_path)
    fill(one)
    words = ("migrate", "--from", one.kind, one.url, "--to", "ours.db")
    code, seen = on_a_terminal(tmp_path, *words)
    assert code == 1
    assert "3/3" in seen
    assert "Thread pickled, 1 checkpoint" in seen
    assert "1/1" in seen, "the items have one of their own"


# ---- stopped ---------------------------------------------------------------------------------------------------------


def stored(path: Path) -> list[Any]:
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute("SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints")
            return sorted(rows.fetchall())
        except sqlite3.OperationalError:
            return []


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle_it_goes_on(tmp_path: Path, how: signal.Signals, command: Command) -> None:
    one = sqlite_peer(tmp_path)
    with one.saver() as saver:
        for number in range(60):
            for step in range(6):
                put(saver, f"{number:02}", {"a": ["x" * 500, step]})
    ours = tmp_path / "ours.db"
    words = ["migrate", "--from", one.kind, one.url, "--to", str(ours)]
    started = subprocess.Popen(
        [sys.executable, "-m", "runtime.cli", *words],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 15
    while not stored(ours) and time.monotonic() < deadline:
        os.sched_yield()
    started.send_signal(how)
    _, errors = started.communicate(timeout=15)
    some = stored(ours)
    assert 0 < len(some) < 360
    assert started.returncode == (-9 if how is signal.SIGKILL else 130), errors
    assert command(*words, "--json").code == 0
    with closing(sqlite3.connect(one.url)) as connection:
        theirs = connection.execute("SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints").fetchall()
    assert stored(ours) == sorted(theirs)


# ---- wrong usage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "to", "words"),
    [
        (("mongodb", "x.db"), "ours.db", "--from knows langgraph-sqlite and langgraph-postgres, not 'mongodb'"),
        (("langgraph-sqlite", "postgresql://h/db"), "ours.db", "--from langgraph-sqlite needs a file"),
        (("langgraph-postgres", "x.db"), "ours.db", "--from langgraph-postgres needs a URL"),
        (("langgraph-sqlite", "mysql://h/db"), "ours.db", "is no database that is known here"),
        (("langgraph-sqlite", "x.db"), "redis+unix://h/0", "is no database that is known here"),
        (("langgraph-sqlite", "x.db"), "sqlite://", "is no database that is known here"),
    ],
)
def test_wrong_addresses_are_refused(command: Command, source: tuple[str, str], to: str, words: str) -> None:
    result = command("migrate", "--from", *source, "--to", to, "--json")
    assert result.code == 2
    assert words in result.error["message"]


def test_a_source_that_is_not_there_is_told_and_nothing_is_made(command: Command, tmp_path: Path) -> None:
    result = command("migrate", "--from", "langgraph-sqlite", "none.db", "--to", "ours.db", "--json")
    assert result.code == 1
    assert "There is no file 'none.db'" in result.error["message"]
    assert list(tmp_path.iterdir()) == []


def test_the_source_cannot_be_the_target(command: Command, peer: Peer) -> None:
    fill(peer)
    result = migrate(command, peer, peer.url, "--json")
    assert result.code == 1
    assert "LangGraph" in result.error["message"] or "another program" in result.error["message"]
    with peer.saver() as saver:
        assert both.asking(PEER).compile(saver).get_state(CONFIG).next == ("ask",)


def test_many_problems_are_cut_on_a_terminal(command: Command, tmp_path: Path) -> None:
    one = sqlite_peer(tmp_path)
    with one.saver() as saver:
        for number in range(60):
            put(saver, f"{number:02}", {"a": [complex(1, 2)]})
    assert "and 10 more: --json lists all." in " ".join(migrate(command, one, "ours.db", "--dry-run").out.split())
    problems = migrate(command, one, "ours.db", "--dry-run", "--json").document["problems"]
    assert len(problems) == 60
    assert set(problems[0]) == {"thread", "namespace", "checkpoint", "where", "reason"}
    assert len(Problem._fields) == len(problems[0])
    assert main(["migrate", "--from", one.kind, one.url, "--to", "ours.db", "--dry-run"]) == 1


@pytest.mark.slow
def test_a_driver_that_is_missing_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['asyncpg'] = None; from runtime.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["migrate", "--from", "langgraph-postgres", "postgresql://h/old", "--to", "ours.db", "--dry-run"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install 'actorgraph[postgres]'" in done.stderr
