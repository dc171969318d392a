"""The same commands on a server: ``--db`` takes a URL, and tells no password."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from runtime.cli.databases import named

if TYPE_CHECKING:
    from tests.persistence.postgres.server import Server
    from tests.runtime.cli.commands import Command


def test_a_thread_lives_on_a_server(command: Command, app: str, postgres_url: str) -> None:
    run = ["run", f"{app}:graph", "--db", postgres_url, "--json"]
    assert command(*run, "--thread", "one", "--input", '{"count": 1}').document["output"]["count"] == 20
    assert command(*run, "--thread", "two", "--input", '{"count": 2}').code == 0
    found = command("threads", "--db", postgres_url, "--json", "--bytes").document
    assert found["total"] == 2
    assert [thread["thread"] for thread in found["threads"]] == ["two", "one"]
    assert [thread["checkpoints"] for thread in found["threads"]] == [4, 4]
    assert all(thread["bytes"] > 100 for thread in found["threads"])
    newest = found["threads"][1]["newest"]
    assert (newest["step"], newest["source"]) == (2, "loop")
    limited = command("threads", "--db", postgres_url, "--json", "--limit", "1").document
    assert limited["threads"][0]["thread"] == "two"
    assert "2 threads." in command("threads", "--db", postgres_url, "--limit", "0").out
    history = command("history", "one", "--db", postgres_url, "--json").document
    assert [row["step"] for row in history["checkpoints"]] == [2, 1, 0, -1]
    assert history["checkpoints"][1]["tasks"][0] | {"id": ""} == {"id": "", "name": "second", "outcome": "done"}
    shown = command("show", "one", "--db", postgres_url, "--json").document
    assert shown["values"]["count"] == 20
    older = history["checkpoints"][1]["checkpoint_id"]
    again = command(*run, "--thread", "one", "--resume", "--checkpoint", older)
    assert again.document["output"]["count"] == 20
    pruned = command("prune", "one", "--db", postgres_url, "--json").document["pruned"]
    assert pruned == [{"thread": "one", "before": 6, "after": 1}]
    assert command("delete", "two", "--db", postgres_url, "--yes").code == 0
    assert command("threads", "--db", postgres_url, "--json").document["total"] == 1


def test_a_question_is_answered_there(command: Command, app: str, postgres_url: str) -> None:
    run = ["run", f"{app}:questioning", "--db", postgres_url, "--thread", "t", "--json"]
    paused = command(*run, "--input", "{}").document
    assert json.dumps(paused["interrupts"]).count("which colour?") == 1
    assert command(*run, "--answer", '"red"').document["output"]["log"] == ["red"]


def test_looking_changes_nothing(command: Command, postgres: Server, postgres_url: str) -> None:
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
    ],
)
def test_no_password_is_told(given: str, shown: str) -> None:
    assert named(given) == shown


def test_a_server_that_is_not_there(command: Command) -> None:
    failed = command("threads", "--db", "postgresql://u:secret@localhost:1/db", "--json")
    assert failed.code == 1
    assert "localhost:1/db cannot be opened" in failed.error["message"]
    assert "secret" not in failed.err
