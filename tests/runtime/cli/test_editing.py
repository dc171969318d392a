"""``prune`` and ``delete``: all of it or nothing, and only what was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.runtime.cli.commands import Command


def counts(command: Command, db: str) -> dict[str, int]:
    """Return the number of checkpoints of every thread."""
    found = command("threads", "--db", db, "--json").document["threads"]
    return {thread["thread"]: thread["checkpoints"] for thread in found}


def test_prune_keeps_the_newest_checkpoint(command: Command, db: str) -> None:
    before = command("show", "failed", "--db", db, "--json").document
    pruned = command("prune", "failed", "--keep-latest", "--db", db, "--json")
    assert pruned.document == {"db": db, "pruned": [{"thread": "failed", "before": 3, "after": 1}]}
    assert counts(command, db) == {"forked": 6, "failed": 1, "done": 4}
    assert command("show", "failed", "--db", db, "--json").document == before


def test_prune_all(command: Command, db: str) -> None:
    shown = command("prune", "--all", "--keep-latest", "--db", db)
    assert shown.code == 0
    assert "10 checkpoints dropped." in shown.out
    assert counts(command, db) == {"forked": 1, "failed": 1, "done": 1}
    assert "0 checkpoints dropped." in command("prune", "--all", "--db", db).out


@pytest.mark.parametrize(
    ("words", "told"), [([], "say --all for every thread in it."), (["done", "--all"], "say --all: not both.")]
)
def test_prune_wants_either_names_or_all(command: Command, db: str, words: list[str], told: str) -> None:
    refused = command("prune", *words, "--db", db)
    assert refused.code == 2
    assert told in refused.err
    assert counts(command, db) == {"forked": 6, "failed": 3, "done": 4}


def test_delete(command: Command, db: str) -> None:
    deleted = command("delete", "done", "forked", "done", "--yes", "--db", db, "--json")
    assert deleted.document["deleted"] == [
        {"thread": "done", "checkpoints": 4},
        {"thread": "forked", "checkpoints": 6},
    ]
    assert counts(command, db) == {"failed": 3}
    assert "Deleted 1 thread with 3 checkpoints." in command("delete", "failed", "--yes", "--db", db).out


@pytest.mark.parametrize("words", [["delete", "done", "absent", "--yes"], ["prune", "done", "absent"]])
def test_nothing_is_done_if_one_name_is_wrong(command: Command, db: str, words: list[str]) -> None:
    failed = command(*words, "--db", db, "--json")
    assert (failed.code, failed.error["threads"]) == (1, ["absent"])
    assert counts(command, db) == {"forked": 6, "failed": 3, "done": 4}


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.slow
def test_nothing_is_deleted_if_nobody_can_be_asked(
    process: Command, command: Command, db: str, as_json: list[str]
) -> None:
    refused = process("delete", "done", "--db", db, *as_json, text="y\n")
    assert refused.code == 2
    assert "pass --yes" in refused.err
    assert counts(command, db)["done"] == 4
