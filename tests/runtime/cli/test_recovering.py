"""``actorgraph recover``: by which name a graph's threads are found, and what is said of those that are not."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from runtime.cli.recovering import how_many
from tests.runtime.cli.servers import empty_redis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.runtime.cli.commands import Command

    Dying = Callable[..., None]

START = '{"count": 1}'


@pytest.fixture
def dying(app: str, command: Command) -> Dying:
    """Leave a thread as a process does that died before its second node, under the name of its graph."""

    def die(thread: str, *named: str) -> None:
        words = ["--input", START, "--thread", thread, "--db", "x.db", *named]
        assert command("run", f"{app}:paused", *words).code == 0
        with closing(sqlite3.connect("x.db")) as raw, raw:
            raw.execute("UPDATE checkpoint_leases SET held = 1 WHERE thread_id = ?", [thread])

    return die


@pytest.mark.parametrize("target", ["graph", "compiled", "build", "build_slowly"])
def test_the_name_is_given_or_that_of_the_graph(app: str, command: Command, dying: Dying, target: str) -> None:
    dying("plain")
    dying("named", "--name", "orders")
    recover = ["recover", f"{app}:{target}", "--db", "x.db", "--json"]
    rows: dict[str, str] = {}
    for given, name in (([], "LangGraph"), (["--name", "orders"], "orders")):
        found = command(*recover, *given).document
        assert found["graph"] == name
        rows |= {row["thread"]: row["status"] for row in found["recovered"]}
    assert rows == {"plain": "finished", "named": "finished"}


def test_where_only_others_died_it_says_their_names_and_how_to_choose(app: str, command: Command, dying: Dying) -> None:
    dying("one", "--name", "the orders")
    dying("two", "--name", "the orders")
    told = command("recover", f"{app}:graph", "--db", "x.db")
    assert told.code == 0
    text = told.out.replace("\n", " ")
    assert f"No run of {app}:graph died at work in x.db (the graph's name is 'LangGraph')." in text
    assert "2 threads of graphs with other names died there too and were left alone: 'the orders' (2)." in text
    words = shlex.split(told.out.strip().rpartition(": ")[2])
    assert words[0] == "actorgraph"
    done = command(*words[1:])
    assert "2 threads were continued." in done.out
    assert "other names" not in done.out


@pytest.mark.parametrize(
    ("became", "told"),
    [
        (["finished", "waiting", "failed"], "3 threads were continued."),
        (["finished", "taken", "taken"], "1 thread was continued; 2 threads were taken by others."),
        (["taken"], "0 threads were continued; 1 thread was taken by others."),
    ],
)
def test_what_others_took_is_counted_apart(became: list[str], told: str) -> None:
    assert how_many([{"status": status} for status in became], dry_run=False) == told


def test_it_tells_of_what_was_stopped_and_continues_it_when_told_to(app: str, command: Command, dying: Dying) -> None:
    """One stands at a breakpoint of another graph of that name: for this one, it was stopped."""
    for thread, target in (("stopped", "paused"), ("asking", "questioning"), ("done", "graph")):
        command("run", f"{app}:{target}", "--input", START, "--thread", thread, "--db", "x.db")
    command("run", f"{app}:paused", "--input", START, "--thread", "other", "--db", "x.db", "--name", "other")
    dying("died")
    recover = ["recover", f"{app}:graph", "--db", "x.db"]
    planned = command(*recover, "--dry-run", "--json").document
    assert ([row["thread"] for row in planned["recovered"]], planned["unfinished"]) == (["died"], ["stopped"])
    planned = command(*recover, "--dry-run", "--unfinished", "--json").document
    assert ([row["thread"] for row in planned["recovered"]], planned["unfinished"]) == (["died", "stopped"], [])
    told = command(*recover)
    assert "1 thread was continued." in told.out
    assert "1 thread of this graph is unfinished, and nobody is at work there" in told.out.replace("\n", " ")
    words = shlex.split(told.out.strip().rpartition("as well: ")[2])
    (row,) = command(*words[1:], "--json").document["recovered"]
    assert (row["thread"], row["status"]) == ("stopped", "finished")
    assert "is left to continue" in command(*words[1:]).out
    assert command(*recover, "--json").document["unfinished"] == []
    paused = command("recover", f"{app}:paused", "--name", "other", "--unfinished", "--db", "x.db", "--json").document
    assert paused["recovered"] == [], "it stands at a breakpoint of its own graph"


@pytest.mark.slow
def test_of_several_names_none_is_chosen(app: str, command: Command, dying: Dying) -> None:
    for name in ("mails", "orders"):
        dying(name, "--name", name)
    dying("mine")
    recover = ["recover", f"{app}:graph", "--db", "x.db", "--dry-run"]
    assert command(*recover, "--json").document["others"] == {"mails": 1, "orders": 1}
    told = command(*recover).out.replace("\n", " ")
    assert "'mails' (1), 'orders' (1)" in told
    assert "--name" not in told, "it found what is its own"
    told = command(*recover, "--name", "nobody").out
    assert "--name NAME" in told


def test_a_dry_run_shows_the_graph_and_what_is_next(app: str, command: Command, dying: Dying) -> None:
    dying("t", "--name", "orders")
    recover = ["recover", f"{app}:graph", "--name", "orders", "--db", "x.db", "--dry-run"]
    (row,) = command(*recover, "--json").document["recovered"]
    assert (row["thread"], row["graph"], row["next"], row["error"]) == ("t", "orders", ["second"], None)
    told = command(*recover).out.splitlines()
    assert told[0].split() == ["Thread", "Graph", "Next", "Epoch", "Error"]
    assert told[2].split()[:3] == ["t", "orders", "second"]
    assert command(*recover, "--json").document["recovered"], "nothing was changed"


def test_a_dry_run_shows_which_thread_another_graph_must_continue(app: str, command: Command, dying: Dying) -> None:
    dying("t")
    recover = ["recover", f"{app}:questioning", "--db", "x.db", "--dry-run"]
    (row,) = command(*recover, "--json").document["recovered"]
    assert row["next"] is None
    assert row["error"].startswith("OrphanedTaskError: ")
    assert "OrphanedTaskError" in command(*recover).out


def test_what_a_run_prints_to_go_on_keeps_its_name(app: str, command: Command) -> None:
    words = ["--input", START, "--thread", "t", "--db", "x.db", "--name", "orders"]
    paused = command("run", f"{app}:paused", *words)
    words = shlex.split(paused.out.rpartition("Go on: ")[2])
    assert words[-2:] == ["--name", "orders"]
    assert command(*words[1:]).code == 0


@pytest.fixture
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database, whose threads have no leases."""
    with empty_redis(request.getfixturevalue("redis_server")) as url:
        yield url


def test_without_leases_the_hint_can_be_pasted(app: str, command: Command, redis_url: str) -> None:
    command("run", f"{app}:paused", "--input", START, "--thread", "t", "--db", redis_url)
    failed = command("recover", f"{app}:graph", "--db", redis_url)
    assert failed.code == 1
    assert "keeps no leases" in failed.err
    first, second = (line.partition(": ")[2] for line in failed.err.splitlines()[1:])
    listed = command(*shlex.split(first)[1:], "--json").document
    assert [thread["thread"] for thread in listed["threads"]] == ["t"]
    words = shlex.split(second)
    assert words[-2:] == ["--thread", "ID"]
    done = command(*words[1:-1], "t")
    assert "Done: thread t" in done.out
