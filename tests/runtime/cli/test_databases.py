"""The same commands on a server: ``--db`` takes a URL, and tells no password."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from runtime.cli.databases import named
from tests.runtime.cli.servers import empty_mongo, empty_redis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.persistence.mongo.server import MongoServer
    from tests.persistence.postgres.server import Server
    from tests.runtime.cli.commands import Command


@pytest.fixture(params=["postgres", "redis", "mongo"])
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database on each server, as a user would give it."""
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_url")
    elif request.param == "redis":
        with empty_redis(request.getfixturevalue("redis_server")) as url:
            yield url
    else:
        with empty_mongo(request.getfixturevalue("mongo_server")) as url:
            yield url


def stands(command: Command, db: str, *words: str) -> list[tuple[str, str, list[str]]]:
    """Return how threads stand, as listed."""
    found = command("threads", "--db", db, "--json", *words).document["threads"]
    return [(each["thread"], each["status"], each["next"]) for each in found]


def test_a_thread_lives_on_a_server(command: Command, app: str, server_url: str) -> None:
    run = ["run", f"{app}:graph", "--db", server_url, "--json"]
    assert command(*run, "--thread", "one", "--input", '{"count": 1}').document["output"]["count"] == 20
    assert command(*run, "--thread", "two", "--input", '{"count": 2}').code == 0
    found = command("threads", "--db", server_url, "--json", "--bytes").document
    assert found["total"] == 2
    assert [thread["thread"] for thread in found["threads"]] == ["two", "one"]
    assert [thread["checkpoints"] for thread in found["threads"]] == [4, 4]
    assert all(thread["bytes"] > 100 for thread in found["threads"])
    newest = found["threads"][1]["newest"]
    assert (newest["step"], newest["source"]) == (2, "loop")
    limited = command("threads", "--db", server_url, "--json", "--limit", "1").document
    assert limited["threads"][0]["thread"] == "two"
    assert "2 threads." in command("threads", "--db", server_url, "--limit", "0").out
    history = command("history", "one", "--db", server_url, "--json").document
    assert [row["step"] for row in history["checkpoints"]] == [2, 1, 0, -1]
    assert history["checkpoints"][1]["tasks"][0] | {"id": ""} == {"id": "", "name": "second", "outcome": "done"}
    shown = command("show", "one", "--db", server_url, "--json").document
    assert shown["values"]["count"] == 20
    older = history["checkpoints"][1]["checkpoint_id"]
    again = command(*run, "--thread", "one", "--resume", "--checkpoint", older)
    assert again.document["output"]["count"] == 20
    pruned = command("prune", "one", "--db", server_url, "--json").document["pruned"]
    assert pruned == [{"thread": "one", "before": 6, "after": 1}]
    assert command("delete", "two", "--db", server_url, "--yes").code == 0
    assert command("threads", "--db", server_url, "--json").document["total"] == 1


def test_a_question_is_answered_there(command: Command, app: str, server_url: str) -> None:
    run = ["run", f"{app}:questioning", "--db", server_url, "--thread", "t", "--json"]
    paused = command(*run, "--input", "{}").document
    assert json.dumps(paused["interrupts"]).count("which colour?") == 1
    assert stands(command, server_url) == [("t", "asking", ["asking"])]
    assert command(*run, "--answer", '"red"').document["output"]["log"] == ["red"]
    assert stands(command, server_url) == [("t", "done", [])]


def test_threads_tell_how_they_stand_there(command: Command, app: str, server_url: str) -> None:
    for graph, thread in (("contextual", "failed"), ("paused", "paused"), ("graph", "done")):
        command("run", f"{app}:{graph}", "--db", server_url, "--thread", thread, "--input", '{"count": 1}')
    told = [("done", "done", []), ("paused", "unfinished", ["second"]), ("failed", "failed", ["wanting"])]
    assert stands(command, server_url) == told
    assert stands(command, server_url, "--limit", "0") == told


def test_wrong_names_and_long_lists(command: Command, app: str, server_url: str) -> None:
    run = ["run", f"{app}:graph", "--db", server_url, "--json"]
    for name in ("a:%*", "é[1]", "c"):
        assert command(*run, "--thread", name, "--input", '{"count": 1}').code == 0
    assert command("threads", "--db", server_url, "--json", "--limit", "2").document["total"] == 3
    assert [row["thread"] for row in command("threads", "--db", server_url, "--json").document["threads"]] == [
        "c",
        "é[1]",
        "a:%*",
    ]
    missing = command("history", "other", "--db", server_url, "--json")
    assert (missing.code, missing.error["type"]) == (1, "ThreadNotFound")
    refused = command("delete", "c", "other", "--yes", "--db", server_url, "--json")
    assert (refused.code, refused.error["threads"]) == (1, ["other"])
    assert (
        command("show", "c", "--checkpoint", "none", "--db", server_url, "--json").error["type"] == "CheckpointNotFound"
    )
    assert command("prune", "--all", "--db", server_url, "--json").code == 0
    limited = command("history", "c", "--db", server_url, "--json", "--limit", "1").document
    assert (limited["total"], len(limited["checkpoints"])) == (1, 1)
    assert command("delete", "a:%*", "é[1]", "c", "--yes", "--db", server_url).code == 0


def test_looking_changes_nothing(
    command: Command, postgres: Server, postgres_url: str, mongo_server: MongoServer
) -> None:
    with empty_mongo(mongo_server) as url:
        failed = command("threads", "--db", url, "--json")
        assert (failed.code, failed.error["type"]) == (1, "BackendOpenError")
        assert mongo_server.client[url.rpartition("/")[2]].list_collection_names() == []
    failed = command("threads", "--db", postgres_url, "--json")
    assert failed.code == 1
    assert "holds no threads" in failed.error["message"]
    schema = postgres_url.partition("search_path=")[2].partition(",")[0]
    assert postgres.rows("SELECT 1 FROM pg_tables WHERE schemaname = $1", schema) == []


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://u:secret@host:1/db", "postgresql://u@host:1/db"),
        ("postgres://u:secret@/db?host=/x", "postgres://u@/db?host=/x"),
        ("postgresql://u@host/db", "postgresql://u@host/db"),
        ("file:with@sign.db", "file:with@sign.db"),
        ("redis://:secret@host:1/0", "redis://@host:1/0"),
        ("unix://u:secret@/x.sock?db=1&password=secret", "unix://u@/x.sock?db=1&"),
        ("mongodb://u:secret@h1:1,h2:2/db?replicaSet=r", "mongodb://u@h1:1,h2:2/db?replicaSet=r"),
    ],
)
def test_no_password_is_told(given: str, shown: str) -> None:
    assert named(given) == shown


@pytest.mark.parametrize("scheme", ["postgresql", "redis"])
def test_a_server_that_is_not_there(command: Command, scheme: str) -> None:
    failed = command("threads", "--db", f"{scheme}://u:secret@localhost:1/0", "--json")
    assert failed.code == 1
    assert "localhost:1/0 cannot be opened" in failed.error["message"]
    assert "secret" not in failed.err
