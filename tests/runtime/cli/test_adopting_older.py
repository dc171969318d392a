"""Threads of older versions of LangGraph: what these stored otherwise, made of what the installed one stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt

from runtime.cli import main
from tests.runtime.cli import both
from tests.runtime.cli.both import Build
from tests.runtime.cli.test_adopting import ON, START, Input, answer, elsewhere, run_here, run_there, without_ids

PEER = JsonPlusSerializer()
Change = Callable[[Any], Any]


def rewritten(path: Path, checkpoint: Change, question: Change = lambda asked: asked) -> None:
    """Store every checkpoint and question anew, and forget the paths of tasks."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
        rows = connection.execute("SELECT rowid, type, checkpoint FROM checkpoints").fetchall()
        for row, kind, data in rows:
            held = PEER.dumps_typed(checkpoint(PEER.loads_typed((kind, data))))
            connection.execute("UPDATE checkpoints SET type = ?, checkpoint = ? WHERE rowid = ?", (*held, row))
        asked = "SELECT rowid, type, value FROM writes WHERE channel = '__interrupt__'"
        for row, kind, data in connection.execute(asked).fetchall():
            held = question(PEER.loads_typed((kind, data)))
            changed = held if isinstance(held, bytes) else PEER.dumps_typed(held)[1]
            connection.execute("UPDATE writes SET value = ? WHERE rowid = ?", (changed, row))
        connection.commit()


def in_format_3(held: Any) -> Any:
    """Sends were only stored with what was written against the parent."""
    held["channel_values"].pop("__pregel_tasks", None)
    held["channel_versions"].pop("__pregel_tasks", None)
    return {**held, "v": 3, "updated_channels": None, "pending_sends": []}


def in_format_2(held: Any) -> Any:
    """Edges had triggers of their own: start:node, the node that they leave, branch:source:condition:node."""
    edges = {"branch:to:ask": "start:ask", "branch:to:more": "ask", "branch:to:work": "branch:left:route:work"}
    for part in (held["channel_values"], held["channel_versions"], *held["versions_seen"].values()):
        for new, old in edges.items():
            if new in part:
                part[old] = part.pop(new)
    for new, old in edges.items():
        if old in held["channel_values"]:
            held["channel_values"][old] = new.rpartition(":")[2]
    return {**in_format_3(held), "v": 2}


def of_version_0(first_id: dict[str, str], asked: list[Interrupt]) -> bytes:
    """Questions had the namespace of their task, and all of a task's the id of its first one."""
    stored = [
        ormsgpack.Ext(
            2,
            ormsgpack.packb(
                (
                    "langgraph.types",
                    "Interrupt",
                    {"value": one.value, "resumable": True, "ns": [first_id[one.id]], "when": "during"},
                )
            ),
        )
        for one in asked
    ]
    return ormsgpack.packb(stored)


def places(path: Path) -> dict[str, str]:
    """Return the namespace of the only node that asks, by the ids of its questions."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT task_id, type, value FROM writes WHERE channel = '__interrupt__' AND checkpoint_ns = ''"
        ).fetchall()
    return {one.id: f"ask:{task}" for task, kind, data in rows for one in PEER.loads_typed((kind, data))}


def migrated(path: Path, *words: str) -> Path:
    target = path.with_name("ours.db")
    code = elsewhere(lambda: main(["migrate", "--from", "langgraph-sqlite", str(path), "--to", str(target), *words]))
    assert code == 0
    return target


@pytest.mark.parametrize(
    ("build", "before", "after"),
    [
        (both.fanned, [START], [answer("!")]),
        (both.asking, [START, answer("1")], [answer("2"), answer("3")]),
        (both.nested, [START], [answer(word) for word in "abcd"]),
        (both.keeping, [START, answer("1"), START], [answer("2"), START, answer("3")]),
        (both.parallel, [START], [ON]),
    ],
)
async def test_sends_in_writes_and_tasks_without_paths(
    tmp_path: Path, build: Build, before: list[Input], after: list[Input]
) -> None:
    there = tmp_path / "there.db"
    run_there(there, build, before)
    expected = run_there(copied(there), build, after)
    rewritten(there, in_format_3)
    found = await run_here(migrated(there), build, after)
    assert without_ids(found) == without_ids(expected)


def copied(path: Path) -> Path:
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    return copy


async def test_a_second_question_with_the_id_of_the_first(tmp_path: Path) -> None:
    """Here it has an id of its own, so that it is seen to wait and takes its answer."""
    there = tmp_path / "there.db"
    run_there(there, both.asking, [START, answer("1")])
    (place,) = set(places(there).values())
    rewritten(there, in_format_3, lambda asked: of_version_0({one.id: place for one in asked}, asked))
    ((output, asked), *_) = await run_here(migrated(there), both.asking, [ON])
    assert output == {"log": ["in"], "go": ""}
    ((key, value),) = asked
    assert value == "second?"
    ((output, _), *_) = await run_here(there.with_name("ours.db"), both.asking, [answer({key: "2"})])
    assert output["log"] == ["in", "1 2"]


async def test_edges_with_triggers_of_their_own(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    run_there(there, both.asking, [START])
    rewritten(there, in_format_2)
    outcomes = await run_here(migrated(there), both.asking, [ON, answer("1"), answer("2"), answer("3")])
    assert outcomes[3] == ({"log": ["in", "1 2", "3"], "go": ""}, [])


async def test_triggers_named_for_the_node_that_an_edge_leaves_need_the_graph(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there.db"
    run_there(there, both.asking, [START, answer("1"), answer("2")])
    rewritten(there, in_format_2)
    words = ["migrate", "--from", "langgraph-sqlite", str(there), "--to", str(tmp_path / "none.db"), "--dry-run"]
    assert elsewhere(lambda: main(words)) == 1
    told = " ".join(capfd.readouterr().out.split())
    assert "Name the graph that uses them: --graph MODULE:GRAPH" in told
    ours = migrated(there, "--graph", "tests.runtime.cli.both:asking_ours")
    outcomes = await run_here(ours, both.asking, [ON, answer("3")])
    assert outcomes[1] == ({"log": ["in", "1 2", "3"], "go": ""}, [])


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("UPDATE writes SET value = x'05' WHERE channel = '__interrupt__'", "what stands for a Send or a question"),
        ("UPDATE writes SET value = x'05' WHERE channel = '__pregel_tasks'", "what stands for a Send or a question"),
    ],
)
def test_what_would_stop_the_engine_half_way_stays_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], sql: str, reason: str
) -> None:
    there = tmp_path / "there.db"
    run_there(there, both.fanned, [START])
    with closing(sqlite3.connect(there)) as connection:
        connection.execute(sql)
        connection.commit()
    words = ["migrate", "--from", "langgraph-sqlite", str(there), "--to", str(tmp_path / "ours.db"), "--json"]
    assert elsewhere(lambda: main(words)) == 1
    assert reason in capfd.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        lambda held: {**held, "channel_versions": {"log": {}}},
        lambda held: {**held, "versions_seen": [1]},
        lambda held: {**held, "updated_channels": "log"},
        lambda held: {**held, "v": "new"},
    ],
)
def test_what_is_no_checkpoint_stays_behind(tmp_path: Path, capfd: pytest.CaptureFixture[str], change: Change) -> None:
    there = tmp_path / "there.db"
    run_there(there, both.parallel, [START])
    rewritten(there, change)
    words = ["migrate", "--from", "langgraph-sqlite", str(there), "--to", str(tmp_path / "ours.db"), "--json"]
    assert elsewhere(lambda: main(words)) == 1
    assert "it is no checkpoint" in capfd.readouterr().out
