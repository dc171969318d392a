"""Runs are cancelled before every step of the event loop: nothing leaks, and nothing that had finished is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cancellation.cancelling import TWICE, Way, every_mode, every_saver, every_way, sweep
from tests.cancellation.trials import Answer, Asked, Build, Left, Run, Streamed, Update
from tests.cancellation.working import Work

awaited_or_streamed = pytest.mark.parametrize("trial", [Run, Streamed], ids=["awaited", "streamed"])


def trials(trial: type[Run], build: Build, durability: str) -> Callable[[Any], Run]:
    """Return what makes the trial of a sweep."""
    return lambda saver: trial(build, durability, saver)


@every_way
@every_saver
@every_mode
@awaited_or_streamed
def test_a_run_can_be_cancelled_anywhere(way: Way, kind: str, durability: str, trial: type[Run], folder: Path) -> None:
    assert sweep(way, kind, folder, trials(trial, Work.fan, durability)) > 10


@every_way
@pytest.mark.parametrize("kind", ["memory", pytest.param("sqlite", marks=pytest.mark.slow), "narrow"])
@every_mode
@pytest.mark.parametrize("trial", [Run, pytest.param(Streamed, marks=pytest.mark.sweep)], ids=["awaited", "streamed"])
def test_a_run_with_a_subgraph_can_be_cancelled_anywhere(
    way: Way, kind: str, durability: str, trial: type[Run], folder: Path
) -> None:
    assert sweep(way, kind, folder, trials(trial, Work.nest, durability)) > 10


@every_way
@every_mode
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_with_nodes_in_threads_can_be_cancelled_anywhere(
    way: Way, kind: str, durability: str, folder: Path
) -> None:
    assert sweep(way, kind, folder, trials(Run, Work.threads, durability)) > 10


@pytest.mark.parametrize("way", TWICE, ids=lambda way: way.name)
@every_saver
@every_mode
@pytest.mark.parametrize("trial", [Run, pytest.param(Streamed, marks=pytest.mark.sweep)], ids=["awaited", "streamed"])
def test_a_run_can_be_cancelled_while_it_is_being_cancelled(
    way: Way, kind: str, durability: str, trial: type[Run], folder: Path
) -> None:
    assert sweep(way, kind, folder, trials(trial, Work.fan, durability)) > 10


@every_way
@every_mode
@pytest.mark.parametrize("kind", ["memory", "narrow"])
def test_leaving_a_stream_can_be_cancelled_anywhere(way: Way, kind: str, durability: str, folder: Path) -> None:
    assert sweep(way, kind, folder, trials(Left, Work.nest, durability)) > 5


@every_way
@every_mode
@pytest.mark.parametrize("kind", ["memory", "narrow"])
def test_a_run_that_comes_to_questions_can_be_cancelled_anywhere(
    way: Way, kind: str, durability: str, folder: Path
) -> None:
    assert sweep(way, kind, folder, trials(Asked, Work.questions, durability)) > 10


@every_way
@every_saver
@every_mode
def test_an_answer_is_taken_or_the_question_stays(way: Way, kind: str, durability: str, folder: Path) -> None:
    assert sweep(way, kind, folder, trials(Answer, Work.ask, durability)) > 3


@every_way
@every_saver
def test_an_update_is_there_or_it_is_not(way: Way, kind: str, folder: Path) -> None:
    taken = sweep(way, kind, folder, trials(Update, Work.ask, "sync"))
    # In memory there is nothing to wait for, and so no step between.
    assert taken > 1 or kind == "memory"
