"""``threads``, ``history`` and ``show``: what a file holds, told without a graph and without touching the file."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from persistence.sqlite import SqliteSaver, SqliteStore
from runtime.cli.unregistered import ShowingSerializer
from runtime.graph import START, StateGraph
from runtime.types import Send, interrupt

if TYPE_CHECKING:
    from tests.runtime.cli.commands import Command

HOSTILE = [
    'it\'s "quoted" `$(x)`',
    "two\nlines\tand a tab",
    "[red]markup[/red] [/] \\[bold]",
    "\x1b[31mred\x1b[0m\x07",
    "日本語 ☃ 👩‍👩‍👧 é",
    "right\u202eto left",
    "' OR 1=1; --",
    "x" * 200,
]


def change(db: str, statement: str, *values: object) -> int:
    """Change a database behind its owner's back; return how many rows were changed."""
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        return connection.execute(statement, values).rowcount


def test_threads_are_listed_last_active_first(command: Command, db: str) -> None:
    found = command("threads", "--db", db, "--json").document
    assert (found["db"], found["total"]) == (db, 3)
    assert [thread["thread"] for thread in found["threads"]] == ["forked", "failed", "done"]
    assert [thread["checkpoints"] for thread in found["threads"]] == [6, 3, 4]
    assert [thread["newest"]["step"] for thread in found["threads"]] == [3, 1, 2]
    done = found["threads"][2]
    assert done.keys() == {"thread", "status", "next", "namespaces", "checkpoints", "newest"}
    assert done["newest"].keys() == {"checkpoint_id", "namespace", "parent_id", "step", "source", "created_at"}
    assert done["newest"]["source"] == "loop"


def test_threads_in_words(command: Command, db: str) -> None:
    shown = command("threads", "--db", db).out
    newest = command("threads", "--db", db, "--json").document["threads"][0]["newest"]["checkpoint_id"]
    assert newest in shown
    assert "step 1, loop, " in shown
    assert "3 threads." in shown
    assert "The 2 newest of 3 threads; --limit 0 lists all." in command("threads", "--db", db, "--limit", "2").out


def joined() -> StateGraph:
    builder = StateGraph(dict)
    for name in "abc":
        builder.add_node(name, lambda _state: None)
    return builder.add_edge(["a", "b"], "c").add_edge(START, "a").add_edge(START, "b")


def test_threads_tell_how_they_stand(command: Command, app: str) -> None:
    words = ("--db", "x.db", "--thread")
    command("run", f"{app}:graph", "--input", '{"count": 1}', *words, "done")
    command("run", f"{app}:paused", "--input", '{"count": 1}', *words, "paused")
    command("run", f"{app}:questioning", "--input", '{"count": 1}', *words, "asking")
    command("run", f"{app}:contextual", "--input", '{"count": 1}', *words, "failed")
    command("run", f"{app}:flow", "--input", "1", *words, "flow")
    with SqliteSaver("x.db") as saver:
        joined().compile(saver, interrupt_before=["c"]).invoke({}, {"configurable": {"thread_id": "join"}})
        sends = (
            StateGraph(dict).add_node("w", lambda _state: None).add_conditional_edges(START, lambda _: [Send("w", 1)])
        )
        sends.compile(saver, interrupt_before=["w"]).invoke({}, {"configurable": {"thread_id": "sends"}})
    found = command("threads", "--db", "x.db", "--json").document["threads"]
    assert {each["thread"]: (each["status"], each["next"]) for each in found} == {
        "done": ("done", []),
        "paused": ("unfinished", ["second"]),
        "asking": ("asking", ["asking"]),
        "failed": ("failed", ["wanting"]),
        "flow": ("done", []),
        "join": ("unfinished", ["c?"]),
        "sends": ("unfinished", ["Sends"]),
    }
    shown = command("threads", "--db", "x.db").out
    assert "next: second" in shown
    assert "failed" in shown
    change("x.db", "UPDATE checkpoints SET checkpoint = 'not JSON'")
    damaged = command("threads", "--db", "x.db", "--json").document["threads"]
    assert {each["status"] for each in damaged} == {"damaged"}


def test_limits(command: Command, db: str) -> None:
    assert len(command("threads", "--db", db, "--json", "--limit", "2").document["threads"]) == 2
    assert len(command("threads", "--db", db, "--json", "--limit", "0").document["threads"]) == 3
    history = command("history", "done", "--db", db, "--json", "--limit", "3").document
    assert (history["total"], [row["step"] for row in history["checkpoints"]]) == (4, [2, 1, 0])


def test_bytes_count_what_the_rows_hold(command: Command, db: str) -> None:
    def held() -> dict[str, int]:
        found = command("threads", "--db", db, "--json", "--bytes").document["threads"]
        return {thread["thread"]: thread["bytes"] for thread in found}

    before = held()
    grown = change(
        db,
        "UPDATE checkpoint_blobs SET blob = CAST(blob || zeroblob(1000) AS BLOB) "
        "WHERE thread_id = 'done' AND channel = 'log'",
    )
    after = held()
    assert after == {**before, "done": before["done"] + 1000 * grown}
    assert grown
    assert " KiB" in command("threads", "--db", db, "--bytes").out


def test_a_listing_reads_one_checkpoint_a_thread(command: Command, db: str) -> None:
    """Everything but the newest checkpoint may be damaged beyond reading."""
    change(db, "UPDATE checkpoint_blobs SET blob = x'00'")
    change(
        db,
        "UPDATE checkpoints SET checkpoint = 'not JSON', metadata = '{' WHERE checkpoint_id NOT IN "
        "(SELECT max(checkpoint_id) FROM checkpoints GROUP BY thread_id)",
    )
    found = command("threads", "--db", db, "--json").document
    assert [thread["newest"]["step"] for thread in found["threads"]] == [3, 1, 2]
    rows = command("history", "done", "--db", db, "--json").document["checkpoints"]
    assert [row["step"] for row in rows] == [2, None, None, None]
    assert command("history", "done", "--db", db).code == 0


def test_history_tells_what_ran_and_where_it_branched(command: Command, db: str) -> None:
    found = command("history", "forked", "--db", db, "--json").document
    assert (found["thread"], found["total"]) == ("forked", 6)
    rows = found["checkpoints"]
    assert [row["source"] for row in rows] == ["loop", "fork", "loop", "loop", "loop", "input"]
    assert rows[1]["parent_id"] == rows[3]["checkpoint_id"]
    assert [task["name"] for task in rows[3]["tasks"]] == ["second"]
    assert rows[4]["updated"] == ["count"]
    assert rows[4]["metadata"] == {"source": "loop", "step": 0, "parents": {}}
    shown = command("history", "forked", "--db", db).out
    assert shown.count("branches off") == 2
    assert shown.count(rows[3]["checkpoint_id"]) == 3


def test_history_is_in_the_order_of_the_saver(command: Command, db: str) -> None:
    rows = command("history", "forked", "--db", db, "--json").document["checkpoints"]
    with SqliteSaver(db, serde=ShowingSerializer()) as saver:
        ids = [
            found.config["configurable"]["checkpoint_id"]
            for found in saver.list({"configurable": {"thread_id": "forked"}})
        ]
    assert [row["checkpoint_id"] for row in rows] == ids


def test_history_tells_of_failures(command: Command, db: str) -> None:
    rows = command("history", "failed", "--db", db, "--json").document["checkpoints"]
    assert [(task["name"], task["outcome"]) for task in rows[0]["tasks"]] == [("second", "failed")]
    assert "(failed)" in command("history", "failed", "--db", db).out


def test_a_question_is_shown_to_a_process_that_has_no_graph(process: Command, tmp_path: Path) -> None:
    builder = StateGraph(dict).add_node("ask", lambda _state: {"answer": interrupt("sure?")}).add_edge(START, "ask")
    with SqliteSaver(tmp_path / "asked.db") as saver:
        builder.compile(saver).invoke({}, {"configurable": {"thread_id": "t"}})
    (asked,) = process("show", "t", "--db", "asked.db", "--json").document["tasks"]
    assert "unregistered" not in json.dumps(asked)
    assert "sure?" in json.dumps(asked)


def test_tasks_of_sends_are_told_by_their_node(command: Command, tmp_path: Path) -> None:
    builder = StateGraph(dict).add_node("a", lambda _state: None).add_node("w", lambda _state: None)
    builder.add_edge(START, "a").add_conditional_edges("a", lambda _state: [Send("w", n) for n in range(2)], ["w"])
    with SqliteSaver(tmp_path / "sent.db") as saver:
        builder.compile(saver).invoke({}, {"configurable": {"thread_id": "t"}})
    rows = command("history", "t", "--db", "sent.db", "--json").document["checkpoints"]
    assert [task["name"] for task in rows[1]["tasks"]] == ["w (Send 0)", "w (Send 1)"]
    assert "w (Send 0), w (Send 1)" in command("history", "t", "--db", "sent.db", "--graph").out
    shown = command("show", "t", "--db", "sent.db", "--checkpoint", rows[1]["checkpoint_id"], "--json").document
    assert (shown["next"], [task["name"] for task in shown["tasks"]]) == (["w (Send)"], ["w (Send 0)", "w (Send 1)"])
    change("sent.db", "UPDATE checkpoint_blobs SET blob = x'00'")
    change("sent.db", "UPDATE checkpoints SET checkpoint = 'not JSON'")
    rows = command("history", "t", "--db", "sent.db", "--json").document["checkpoints"]
    assert [task["name"] for task in rows[1]["tasks"]] == ["Send 0", "Send 1"]


def test_a_file_without_threads_is_told_by_what_it_holds(command: Command, tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "memory.db") as store:
        store.put(("a",), "k", {"v": 1})
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript("CREATE TABLE checkpoints (thread_id TEXT); CREATE TABLE writes (thread_id TEXT);")
    assert "holds no threads: it is the file of a store." in command("threads", "--db", "memory.db").err
    told = command("history", "t", "--db", "old.db").err
    assert "actorgraph migrate --from langgraph-sqlite old.db --to NEW_FILE" in told
    (tmp_path / "old.db").unlink()
    sqlite3.connect(tmp_path / "old.db").close()
    assert "no saver of this library has written it" in command("threads", "--db", "old.db").err


def test_show_the_newest_checkpoint(command: Command, db: str) -> None:
    found = command("show", "done", "--db", db, "--json").document
    assert (found["step"], found["source"], found["next"], found["tasks"]) == (2, "loop", [], [])
    assert found["values"]["count"] == 20
    assert found["values"]["log"] == ["first", "second"]
    (message,) = found["values"]["messages"]
    assert message["type"].startswith("<unregistered type prepared_app:Message")
    assert message["content"] == {"role": "user", "text": "hello"}
    shown = command("show", "done", "--db", db).out
    assert '- <unregistered type prepared_app:Message> {"role": "user", "text":' in shown
    assert "nothing: the thread is done" in shown


def test_show_what_failed_and_what_is_next(command: Command, db: str) -> None:
    found = command("show", "failed", "--db", db, "--json").document
    assert found["next"] == ["second"]
    (task,) = found["tasks"]
    assert (task["name"], task["outcome"], task["error"]) == ("second", "failed", "ValueError('boom [bold]')")
    shown = command("show", "failed", "--db", db).out
    assert "ValueError('boom [bold]')" in shown


def test_show_an_earlier_checkpoint(command: Command, db: str) -> None:
    rows = command("history", "done", "--db", db, "--json").document["checkpoints"]
    first = command("show", "done", "--db", db, "--checkpoint", rows[3]["checkpoint_id"], "--json").document
    assert (first["step"], first["values"], first["input"], first["next"]) == (-1, {}, {"count": 1}, ["__start__"])
    later = command("show", "done", "--db", db, "--checkpoint", rows[2]["checkpoint_id"], "--json").document
    assert later["next"] == ["first"]
    (task,) = later["tasks"]
    assert (task["outcome"], task["writes"]["count"], task["writes"]["log"]) == ("done", 2, ["first"])
    shown = command("show", "done", "--db", db, "--checkpoint", rows[3]["checkpoint_id"]).out
    assert "Input, not yet applied" in shown


def test_metadata_of_the_program_is_shown(command: Command, db: str) -> None:
    change(
        db,
        "UPDATE checkpoints SET metadata = ? "
        "WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'done')",
        '{"source":"loop","step":2,"tenant":"acme"}',
    )
    assert command("show", "done", "--db", db, "--json").document["metadata"]["tenant"] == "acme"
    assert "tenant  acme" in command("show", "done", "--db", db).out


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE checkpoint_blobs SET blob = x'0011223344' WHERE channel = 'log'", "channel 'log' cannot be read"),
        ("UPDATE checkpoint_blobs SET type = 'msgpack+aes' WHERE channel = 'log'", "encrypted"),
        ("DELETE FROM checkpoint_blobs WHERE channel = 'log'", "channel 'log' has no stored value"),
        ("UPDATE checkpoints SET type = 'json:00000000'", "its checksum does not match"),
    ],
)
def test_damage_is_told_beside_what_is_still_known(command: Command, db: str, statement: str, told: str) -> None:
    change(db, statement)
    found = command("show", "done", "--db", db, "--json")
    assert found.code == 1
    assert told in found.document["damage"]
    assert (found.document["step"], found.document["values"]) == (2, None)
    shown = command("show", "done", "--db", db)
    assert shown.code == 1
    assert "They cannot be read." in shown.out
    assert command("history", "done", "--db", db).code == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_taken_literally(app: str, command: Command, name: str) -> None:
    start = ("run", f"{app}:graph", "--input", '{"count": 1}', "--thread", name, "--db", "x.db")
    assert command(*start, "--json").document["thread"] == name
    assert [thread["thread"] for thread in command("threads", "--db", "x.db", "--json").document["threads"]] == [name]
    assert command("history", name, "--db", "x.db", "--json").document["thread"] == name
    assert command("show", name, "--db", "x.db", "--json").document["thread"] == name
    texts = [
        command("run", f"{app}:graph", "--resume", "--thread", name, "--db", "x.db").out,
        command("threads", "--db", "x.db").out,
        command("history", name, "--db", "x.db").out,
        command("show", name, "--db", "x.db").out,
        command("show", name, "--checkpoint", name, "--db", "x.db").err,
        command("prune", name, "--db", "x.db").out,
        command("delete", name, "--yes", "--db", "x.db").out,
        command("show", name, "--db", "x.db").err,
    ]
    for text in texts:
        assert text
        assert not {char for char in text if char != "\n" and not char.isprintable() and char != "\u200d"}
    if "[red]" in name:
        assert all("[red]markup[/red]" in text for text in texts[:2])
    assert command("threads", "--db", "x.db", "--json").document["threads"] == []


@pytest.mark.parametrize(
    "words", [["threads"], ["threads", "--bytes"], ["history", "forked"], ["show", "done"], ["show", "failed"]]
)
@pytest.mark.slow
def test_text_fits_80_columns_without_colours(process: Command, db: str, words: list[str]) -> None:
    shown = process(*words, "--db", db)
    assert shown.code == 0
    assert shown.err == ""
    assert "\x1b" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    assert all(line == line.rstrip() for line in shown.out.splitlines())


def fingerprints(folder: Path) -> dict[str, str]:
    """Return what every file in a folder holds."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


LOOKING = [["threads", "--bytes"], ["history", "done"], ["show", "done"], ["history", "absent"], ["show", "absent"]]


@pytest.mark.parametrize("words", LOOKING)
def test_looking_changes_nothing(command: Command, db: str, tmp_path: Path, words: list[str]) -> None:
    before = fingerprints(tmp_path)
    command(*words, "--db", db)
    assert fingerprints(tmp_path) == before


def test_looking_needs_no_lock(command: Command, db: str) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        busy.execute("DELETE FROM checkpoints")
        assert command("threads", "--db", db, "--json").document["total"] == 3


@pytest.mark.parametrize("words", LOOKING)
def test_looking_creates_no_file(command: Command, tmp_path: Path, words: list[str]) -> None:
    failed = command(*words, "--db", "absent.db", "--json")
    assert (failed.code, failed.error["type"]) == (1, "BackendOpenError")
    assert "There is no file 'absent.db'" in failed.error["message"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [*LOOKING, ["prune", "--all"], ["delete", "x", "--yes"]])
@pytest.mark.parametrize("kind", ["text", "empty", "other program", "newer", "folder"])
def test_other_files_are_refused_and_left_alone(
    command: Command, db: str, tmp_path: Path, words: list[str], kind: str
) -> None:
    other = tmp_path / "other"
    if kind == "text":
        other.write_text("just a text, long enough to be looked at as a header of a database")
    elif kind == "empty":
        other.touch()
    elif kind == "folder":
        other.mkdir()
    elif kind == "newer":
        Path(db).rename(other)
        change(str(other), "INSERT INTO checkpoint_migrations VALUES (9999)")
    else:
        change(str(other), "CREATE TABLE bookmarks (url TEXT)")
    before = None if kind == "folder" else other.read_bytes()
    failed = command(*words, "--db", "other", "--json")
    assert failed.code == 1
    assert failed.error["type"] in ("BackendOpenError", "SchemaVersionError")
    assert before is None or other.read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("other-")]


def test_names_that_do_not_exist(command: Command, db: str) -> None:
    absent = command("show", "absent", "--db", db, "--json")
    assert (absent.code, absent.error["type"]) == (1, "ThreadNotFound")
    assert command("history", "absent", "--db", db, "--json").error["type"] == "ThreadNotFound"
    wrong = command("show", "done", "--db", db, "--checkpoint", "absent", "--json")
    assert (wrong.code, wrong.error["type"]) == (1, "CheckpointNotFound")
    elsewhere = command("show", "done", "--db", db, "--namespace", "sub:1", "--json")
    assert "in namespace 'sub:1'" in elsewhere.error["message"]
    assert elsewhere.error["hint"] == f"List them: actorgraph history done --db {db}"


def test_a_workflow_that_is_done_shows_its_result(app: str, command: Command) -> None:
    command("run", f"{app}:flow", "--input", '"clay"', "--thread", "t", "--db", "x.db")
    found = command("show", "t", "--db", "x.db", "--json").document
    assert (found["result"], found["remembered"], found["values"]) == ("made of clay", "made of clay", {})
    shown = command("show", "t", "--db", "x.db").out
    assert "Result" in shown
    assert "made of clay" in shown
    assert "none yet" not in shown


def test_threads_of_subgraphs_show_the_main_namespace(command: Command, db: str) -> None:
    """A namespace sorts after the main one, whose newest checkpoint speaks for the thread."""
    change(
        db,
        "INSERT INTO checkpoints SELECT thread_id, 'sub:1', 'ffff' || checkpoint_id, NULL, type, checkpoint, metadata "
        "FROM checkpoints WHERE thread_id = 'done'",
    )
    found = command("threads", "--db", db, "--json").document["threads"][0]
    assert (found["thread"], found["namespaces"], found["checkpoints"]) == ("done", 2, 8)
    assert (found["newest"]["namespace"], found["newest"]["step"]) == ("", 2)
    assert "in sub:1" in command("history", "done", "--db", db).out
    assert json.dumps(found)


def test_a_thread_with_subgraphs_only(command: Command, db: str) -> None:
    change(db, "UPDATE checkpoints SET checkpoint_ns = 'sub:1' WHERE thread_id = 'done'")
    found = command("threads", "--db", db, "--json").document["threads"]
    assert {thread["thread"]: thread["newest"]["namespace"] for thread in found}["done"] == "sub:1"
    assert command("threads", "--db", db).out.count("in sub:1") == 1
