"""``actorgraph demo``: runs that are really killed, and a verdict that can be negative."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from runtime.cli.demo_kill import Story, contradictions

if TYPE_CHECKING:
    from tests.runtime.cli.commands import Command

EXIT = Story("exit", "t", [], ["change_topic", "poem"], [], ["change_topic", "poem", "joke"], resumed=False)
SYNC = Story(
    "sync", "t", ["change_topic", "poem"], ["change_topic", "poem"], ["change_topic", "poem"], ["joke"], resumed=True
)
ASYNC = replace(SYNC, mode="async")
SLOW_DISK = replace(ASYNC, acknowledged=["change_topic"], kept=["change_topic"], ran_again=["poem", "joke"])


@pytest.mark.parametrize("story", [EXIT, SYNC, ASYNC, SLOW_DISK])
def test_promises_that_are_kept(story: Story) -> None:
    assert contradictions(story) == []


@pytest.mark.parametrize(
    ("story", "told"),
    [
        (replace(EXIT, kept=["change_topic"]), "exit: change_topic kept"),
        (replace(EXIT, resumed=True), "exit: the second process resumed"),
        (replace(EXIT, ran_again=["joke"]), "exit: change_topic, poem not kept, and not run again either"),
        (replace(ASYNC, kept=["change_topic"], ran_again=["poem", "joke"]), "async: poem acknowledged and lost"),
        (replace(ASYNC, ran_again=["poem", "joke"]), "async: poem kept, and run again nevertheless"),
        (replace(ASYNC, ran_again=[]), "async: joke not kept, and not run again either"),
        (replace(SLOW_DISK, mode="sync"), "sync: poem finished and lost"),
        (replace(SYNC, finished=["change_topic"]), "had finished at the kill"),
    ],
)
def test_promises_that_are_broken(story: Story, told: str) -> None:
    assert any(told in found for found in contradictions(story))


@pytest.mark.slow
@pytest.mark.timeout(120)  # up to six processes, on a machine that may be busy
def test_the_demo_as_json(process: Command) -> None:
    done = process("demo", "--json")
    assert (done.code, done.err) == (0, "")
    document = done.document
    assert document["contradictions"] == []
    seen = {mode["mode"]: (mode["kept"], mode["ran_again"], mode["resumed"]) for mode in document["modes"]}
    assert seen == {
        "exit": ([], ["change_topic", "poem", "joke"], False),
        "async": (["change_topic", "poem"], ["joke"], True),
        "sync": (["change_topic", "poem"], ["joke"], True),
    }
    assert all(mode["promise_held"] and mode["cost_per_step_us"] > 0 for mode in document["modes"])
    assert document["cost_without_saver_us"] > 0
    assert [row["step"] for row in document["history"]] == [3, 2, 1, 0, -1]
    assert document["history"][2]["next"] == ["poem", "joke"]
    fork = document["fork"]
    assert fork["from"] == document["history"][2]["checkpoint_id"]
    assert "corgi" in fork["output"]
    assert "ragdoll" in fork["old_output"]
    assert fork["old_branch_unchanged"]


@pytest.mark.slow
@pytest.mark.timeout(120)  # up to six processes, on a machine that may be busy
def test_the_demo_in_words_leaves_its_threads_in_a_file(process: Command, command: Command) -> None:
    shown = process("demo", "--mode", "async", "--db", "kept.db")
    assert (shown.code, shown.err) == (0, "")
    assert "\x1b" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "Every mode kept its promise." in shown.out
    assert "Look around: actorgraph threads --db kept.db" in shown.out
    (thread,) = command("threads", "--db", "kept.db", "--json").document["threads"]
    assert thread["thread"].startswith("demo-async-")
    assert thread["checkpoints"] == 8
    assert "branches off" in command("history", thread["thread"], "--db", "kept.db").out


@pytest.mark.slow
@pytest.mark.timeout(120)  # up to six processes, on a machine that may be busy
def test_a_mode_without_history_has_nothing_to_fork_from(process: Command) -> None:
    shown = process("demo", "--mode", "exit")
    assert shown.code == 0
    assert "there is no earlier point to fork from" in shown.out


def test_the_demo_needs_a_place(command: Command) -> None:
    failed = command("demo", "--db", "absent/x.db", "--json")
    assert (failed.code, failed.error["type"]) == (1, "FileNotFoundError")
