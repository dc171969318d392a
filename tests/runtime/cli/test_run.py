"""``actorgraph run``: graphs from modules, threads in files, failures that say how to go on."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runtime.cli.commands import Command

START = '{"count": 1}'


def test_the_result_is_shown_with_where_it_was_kept(app: str, command: Command) -> None:
    done = command("run", f"{app}:graph", "--input", START, "--thread", "t", "--db", "x.db")
    assert done.code == 0
    assert "count     20" in done.out
    assert '- {"role": "user", "text": "hello"}' in done.out
    assert "Done: thread t, step 2, checkpoint" in done.out


@pytest.mark.slow
def test_json_is_the_only_output_whatever_nodes_print(app: str, process: Command) -> None:
    done = process("run", f"{app}:graph", "--input", START, "--thread", "t", "--db", "x.db", "--json")
    assert done.code == 0
    assert done.document["output"]["log"] == ["first", "second"]
    assert done.document["thread"] == "t"
    assert (done.document["step"], done.document["next"], done.document["interrupts"]) == (2, [], [])
    assert "printed by a node" in done.err
    assert "printed by a child of a node" in done.err


@pytest.mark.parametrize("name", ["graph", "compiled", "build", "build_slowly"])
def test_a_graph_may_be_described_compiled_or_made_by_a_function(app: str, command: Command, name: str) -> None:
    done = command("run", f"{app}:{name}", "--input", START, "--thread", "t", "--db", "x.db", "--json")
    assert done.document["output"]["count"] == 20
    listed = command("threads", "--db", "x.db", "--json").document
    assert [thread["thread"] for thread in listed["threads"]] == ["t"]


def test_without_a_file_nothing_is_kept(app: str, command: Command, tmp_path: Path) -> None:
    done = command("run", f"{app}:graph", "--input", START, "--json")
    assert done.document == {"thread": None, "output": done.document["output"]}
    assert not list(tmp_path.glob("*.db*"))


def test_a_thread_gets_a_name_if_none_is_given(app: str, command: Command) -> None:
    done = command("run", f"{app}:graph", "--input", START, "--db", "x.db", "--json")
    listed = command("threads", "--db", "x.db", "--json").document
    assert [thread["thread"] for thread in listed["threads"]] == [done.document["thread"]]


@pytest.mark.slow
def test_input_can_come_from_standard_input(app: str, process: Command) -> None:
    done = process("run", f"{app}:graph", "--input", "-", "--json", text='{"count": 4}')
    assert done.document["output"]["count"] == 50


def test_a_compiled_graph_keeps_its_breakpoints_and_the_printed_command_goes_on(app: str, command: Command) -> None:
    name = "two words; 'quoted'\nand a line"
    paused = command("run", f"{app}:paused", "--input", START, "--thread", name, "--db", "x.db", "--durability", "sync")
    assert paused.code == 0
    assert "Paused before second" in paused.out
    _, _, told = paused.out.partition("Go on: ")
    words = shlex.split(told)
    assert words[0] == "actorgraph"
    assert words[-2:] == ["--durability", "sync"]
    done = command(*words[1:], "--json")
    assert done.document["output"]["log"] == ["first", "second"]


def test_a_failure_names_the_node_and_how_to_go_on(app: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    failed = command("run", f"{app}:graph", "--input", START, "--thread", "t", "--db", "x.db")
    assert failed.code == 1
    assert "error: Node 'second' failed: ValueError: boom [bold]\n" in failed.err
    assert f"{app}.py:" in failed.err
    assert "Thread 't' is saved up to step 1; left to run: second." in failed.err
    (tmp_path / "broken").unlink()
    words = shlex.split(failed.err.strip().rpartition(": ")[2])
    done = command(*words[1:], "--json")
    assert done.document["output"]["log"] == ["first", "second"], "first must not run again"


def test_a_failure_as_json(app: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    failed = command("run", f"{app}:graph", "--input", START, "--thread", "t", "--db", "x.db", "--json")
    assert (failed.code, failed.out) == (1, "")
    said = failed.err[failed.err.index('{"error"') :]
    assert '"node": "second"' in said
    assert '"next": ["second"]' in said
    assert f'"resume": "actorgraph run {app}:graph --resume --thread t --db x.db"' in said


def test_the_whole_traceback_on_demand(app: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    failed = command("run", f"{app}:graph", "--input", START, "--traceback")
    assert "Traceback (most recent call last)" in failed.err
    assert "raise ValueError" in failed.err


@pytest.mark.parametrize(
    ("mode", "inside"),
    [
        ("values", lambda chunks: chunks[-1]["count"] == 20),
        ("updates", lambda chunks: [list(chunk) for chunk in chunks] == [["first"], ["second"]]),
        ("custom", lambda chunks: chunks == []),
        ("tasks", lambda chunks: [chunk["name"] for chunk in chunks] == ["first", "first", "second", "second"]),
        ("checkpoints", lambda chunks: [chunk["metadata"]["step"] for chunk in chunks] == [-1, 0, 1, 2]),
        ("debug", lambda chunks: {chunk["type"] for chunk in chunks} == {"checkpoint", "task", "task_result"}),
    ],
)
def test_streams(app: str, command: Command, mode: str, inside: Callable[[list[object]], bool]) -> None:
    words = ("run", f"{app}:graph", "--input", START, "--thread", "t", "--db", "x.db", "--stream", mode)
    streamed = command(*words, "--json").document
    assert inside(streamed["chunks"])
    assert streamed["next"] == []
    assert command(*words).code == 0


def test_a_question_can_be_answered(app: str, command: Command) -> None:
    asked = command("run", f"{app}:questioning", "--input", START, "--thread", "t", "--db", "x.db")
    assert asked.code == 0
    assert "which colour?" in asked.out
    assert "Waiting for an answer" in asked.out
    assert "--answer JSON --thread t" in asked.out
    done = command("run", f"{app}:questioning", "--answer", '"blue"', "--thread", "t", "--db", "x.db", "--json")
    assert done.document["output"]["log"] == ["blue"]


def test_a_question_of_a_run_that_is_not_kept_is_told(app: str, command: Command) -> None:
    words = ("run", f"{app}:questioning", "--input", START)
    for mode in ((), ("--stream", "updates"), ("--stream", "custom")):
        asked = command(*words, *mode)
        assert asked.code == 0
        assert "which colour?" in asked.out
        assert "it cannot be answered: run it again with --db FILE" in " ".join(asked.out.split())
        (question,) = command(*words, *mode, "--json").document["interrupts"]
        assert question["value"] == "which colour?"


def test_a_pause_that_nothing_keeps_is_told_of_once(
    app: str, command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    command("run", f"{app}:questioning", "--input", START)
    assert caplog.messages == []  # the screen tells it
    command("run", f"{app}:paused", "--input", START)
    (told,) = caplog.messages
    assert "paused (interrupt_before), and cannot be resumed" in told


def test_an_answer_that_makes_its_node_fail_can_be_given_anew(app: str, command: Command) -> None:
    words = ("run", f"{app}:numbers", "--thread", "t", "--db", "x.db")
    command(*words, "--input", START)
    failed = command(*words, "--answer", '"some"', "--json")
    assert command(*words, "--resume").code == 1, "the answer is kept"
    assert "The node had been given an answer and keeps it" in failed.error["hint"]
    assert "update_state" not in failed.error["hint"]
    again = command(*shlex.split(failed.error["ask_again"])[1:], "--json")
    assert [question["value"] for question in again.document["interrupts"]] == ["how many?"]
    assert command(*words, "--answer", "3", "--json").document["output"]["count"] == 3


def test_a_run_that_lacks_its_context_is_told_the_option(app: str, command: Command) -> None:
    words = ("run", f"{app}:contextual", "--input", START)
    assert "give one with --context JSON" in command(*words).err
    assert "--context" not in command(*words, "--context", '{"whom": "Ann"}').err


def test_an_unknown_checkpoint_is_answered_with_a_command(app: str, command: Command) -> None:
    words = ("run", f"{app}:graph", "--thread", "a thread", "--db", "x.db")
    command(*words, "--input", START)
    refused = command(*words, "--resume", "--checkpoint", "bad", "--json")
    assert refused.error["type"] == "CheckpointNotFoundError"
    assert refused.error["message"].endswith("List the known ones: actorgraph history 'a thread' --db x.db")


def test_an_answer_without_a_question_is_refused(app: str, command: Command) -> None:
    words = ("run", f"{app}:paused", "--thread", "t", "--db", "x.db")
    command(*words, "--input", START)
    refused = command(*words, "--answer", '"blue"', "--json")
    assert (refused.code, refused.error["type"]) == (1, "NoPendingQuestion")
    assert "has no question that waits for an answer" in refused.error["message"]
    assert refused.error["hint"] == f"Go on without one: actorgraph run {app}:paused --resume --thread t --db x.db"
    assert command(*words, "--resume", "--json").document["output"]["log"] == ["first", "second"], "nothing had run"
    assert "It has run to its end." in command(*words, "--answer", '"blue"').err
    absent = command(*words[:3], "absent", *words[4:], "--answer", "1", "--json")
    assert (absent.code, absent.error["type"]) == (1, "ThreadNotFound")


def test_the_printed_command_has_what_the_run_was_given(app: str, command: Command) -> None:
    words = ("run", f"{app}:contextual", "--thread", "t", "--db", "x.db", "--input", "{}")
    asked = command(*words, "--context", '{"who": "Ann\'s"}', "--recursion-limit", "7")
    assert "for Ann's?" in asked.out
    told = shlex.split(asked.out.partition("Answer it: ")[2])
    assert told[-2:] == ["--recursion-limit", "7"]
    done = command(*("1" if word == "JSON" else word for word in told[1:]), "--json")
    assert done.document["output"]["log"] == [1]


def test_input_becomes_what_the_schema_names(app: str, command: Command) -> None:
    words = ("run", f"{app}:receiving", "--json", "--input")
    one = '{"role": "user", "text": "hello"}'
    done = command(*words, f'{{"message": {one}, "messages": [{one}]}}')
    assert done.document["output"]["log"] == ["hello", "user"]
    wrong = command(*words, '{"message": {"role": "user"}, "messages": []}')
    assert (wrong.code, wrong.error["type"]) == (1, "InvalidInput")
    assert "'message' is no Message: Object missing required field `text`" in wrong.error["message"]


def test_a_run_from_a_checkpoint_is_a_new_branch(app: str, command: Command) -> None:
    words = ("run", f"{app}:graph", "--thread", "t", "--db", "x.db", "--json")
    command(*words, "--input", START)
    before = command("history", "t", "--db", "x.db", "--json").document["checkpoints"]
    at = next(row["checkpoint_id"] for row in before if row["step"] == 1)
    again = command(*words, "--resume", "--checkpoint", at)
    assert again.document["output"]["count"] == 20
    after = command("history", "t", "--db", "x.db", "--json").document["checkpoints"]
    assert [row["source"] for row in after[:2]] == ["loop", "fork"]
    assert after[1]["parent_id"] == at
    assert after[2:] == before


def test_exit_saves_once(app: str, command: Command) -> None:
    command("run", f"{app}:graph", "--input", START, "--thread", "t", "--db", "x.db", "--durability", "exit")
    assert command("history", "t", "--db", "x.db", "--json").document["total"] == 1


@pytest.mark.parametrize(
    ("target", "given", "code", "told"),
    [
        ("nowhere_to_be_found:graph", START, 1, "There is no module 'nowhere_to_be_found'"),
        ("app.py:graph", START, 1, "write app:GRAPH"),
        (
            "APP:nothing",
            START,
            1,
            "has no 'nothing'. It has these graphs: both, compiled, contextual, flow, graph, headless, numbers, own, ",
        ),
        ("APP:not_a_graph", START, 1, "is a int, not a graph"),
        ("APP:Message", START, 1, "is a type, not a graph"),
        ("APP:build_badly", START, 1, "RuntimeError: no graph today"),
        ("APP:build_for", START, 1, "missing 1 required positional argument"),
        ("APP:headless", START, 1, "does not compile"),
        ("importing_badly:graph", START, 1, "'importing_badly' cannot be imported: ZeroDivisionError"),
        ("lacking:graph", START, 1, "'lacking' cannot be imported: ModuleNotFoundError: No module named 'absent'"),
        ("APP", START, 2, "write MODULE:GRAPH"),
        (
            "APP:graph",
            "hello",
            2,
            "--input is not JSON (Expecting value: line 1 column 1 (char 0)): 'hello'; a ",
        ),
        ("APP:graph", "{count: 1}", 2, "--input is broken JSON: line 1, column 2, behind '{', there is 'count: 1}'."),
        ("APP:graph", '{"count": 1', 2, "--input is broken JSON: line 1, column 12, behind '{\"count\": 1', it ends."),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_cannot_be_run_is_told_and_leaves_no_file(
    app: str, command: Command, tmp_path: Path, target: str, given: str, code: int, told: str, *, as_json: bool
) -> None:
    (tmp_path / "importing_badly.py").write_text("1 / 0")
    (tmp_path / "lacking.py").write_text("import absent")
    words = ["run", target.replace("APP", app), "--input", given, "--thread", "t", "--db", "x.db"]
    failed = command(*words, *(["--json"] if as_json else []))
    assert failed.code == code
    assert failed.out == ""
    assert told in (failed.error["message"] if as_json else failed.err)
    assert not (tmp_path / "x.db").exists()


def test_advice_is_given_in_options_of_the_command(app: str, command: Command) -> None:
    own = command("run", f"{app}:own", "--input", START)
    assert (own.code, "is compiled with a saver of its own" in own.err, "give --db FILE" in own.err) == (2, True, True)
    words = ["run", f"{app}:both", "--thread", "t", "--db", "x.db"]
    asked = command(*words, "--input", START)
    refused = command(*words, "--answer", "1")
    assert """when resuming: --answer '{"ID": ANSWER}'.""" in refused.err
    assert "Command(" not in refused.err
    for told in (asked.out, refused.err):
        line = shlex.split(told.partition("Answer it: ")[2].splitlines()[0])
        answers = json.loads(line[line.index("--answer") + 1])
        assert list(answers.values()) == ["...", "..."]
    done = command(*line[1:], "--json").document
    assert (done["output"]["log"], done["next"]) == (["...", "..."], [])
    words = ["run", f"{app}:graph", "--recursion-limit", "1", "--thread", "limited", "--db", "x.db"]
    limited = command(*words, "--input", START)
    assert "The state is saved; go on with --resume, or raise --recursion-limit." in limited.err
    line = shlex.split(limited.err.partition("Go on with thread 'limited': ")[2])
    assert command(*line[1:], "--json").document["output"]["log"] == ["first", "second"]
    assert "To go further, raise --recursion-limit." in command(*words[:4], "--input", START).err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--input", START, "--thread", "t"], 2, "need --db FILE"),
        (["--resume", "--db", "x.db"], 1, "There is no file 'x.db'"),
        (["--resume", "--thread", "t", "--db", "x.db"], 1, "There is no file 'x.db'"),
        (["--answer", "1", "--thread", "t"], 2, "need --db FILE"),
        (["--input", START, "--db", "absent/x.db"], 1, "absent/x.db cannot be opened"),
        (["--input", START, "--resume"], 2, "not allowed with"),
        ([], 2, "one of the arguments --input --resume --answer is required"),
        (["--input", START, "--recursion-limit", "0"], 2, "at least 1"),
        (["--input", START, "--context", "{"], 2, "is broken JSON"),
        (["--input", START, "--recursion-limit", "1"], 1, "Recursion limit"),
        (["--input", "7"], 1, ""),
    ],
)
def test_what_does_not_fit_together(app: str, command: Command, words: list[str], code: int, told: str) -> None:
    failed = command("run", f"{app}:graph", *words)
    assert failed.code == code
    assert told in failed.err
    assert "Traceback" not in failed.err


def test_resuming_needs_a_thread_that_exists(app: str, command: Command, db: str) -> None:
    failed = command("run", f"{app}:graph", "--resume", "--thread", "absent", "--db", db, "--json")
    assert failed.code == 1
    assert failed.error["type"] == "EmptyInputError"
    assert "'absent'" in failed.error["message"]
    assert command("run", f"{app}:graph", "--resume", "--db", db).code == 2
