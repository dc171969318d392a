"""The questions about shared commits, storage and growth, each once and tiny."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import bench_groups, bench_growth, bench_storage, bench_threads, peers
from benchmarks.durability.places import Place
from benchmarks.harness import Question, Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.results import Answer

pytestmark = pytest.mark.slow


def ask(folder: Path, work: Callable[[Session], object]) -> Answer:
    """Ask one question of this engine alone."""

    def run(session: Session) -> None:
        work(session)

    with Session([peers.actorgraph()], folder, repeats=1, quick=True) as session:
        answer = session.ask(Question("name", "title", run))
    assert answer.failures == []
    return answer


def test_runs_at_once_share_commits(tmp_path: Path) -> None:
    """One run commits its supersteps one by one; eight of them do not need eight times as many."""
    answer = ask(tmp_path, lambda session: bench_groups.over(session, (1, 8), (1.0,), repeats=1))
    per_commit = {case.at["runs"]: case.series for case in answer.cases if case.unit == bench_groups.BATCH}
    assert per_commit[1]["sync, +1 ms"].values[0] < 2 < per_commit[8]["sync, +1 ms"].values[0]
    (one, eight) = [case.series for case in answer.cases if case.unit == "µs/step"]
    assert list(one) == list(eight) == ["sync, +1 ms", "async", bench_groups.RAW]
    assert all(series.latency is not None for series in eight.values())


def test_a_thread_is_pruned_to_a_part_of_what_it_was(tmp_path: Path) -> None:
    answer = ask(tmp_path, lambda session: bench_storage.pruned(session, 40))
    (left,) = [case for case in answer.cases if case.unit == "of the bytes"]
    assert 0 < left.series[peers.OURS].values[0] < 1


def test_bytes_per_step_are_told_for_each_length(tmp_path: Path) -> None:
    """So that a picture can show whether they grow."""
    answer = ask(tmp_path, lambda session: bench_storage.measure(session, 40))
    steps = [case.at["steps"] for case in answer.cases if case.unit == bench_storage.BYTES]
    assert steps == [10, 20, 40, 80]


def test_growth_over_threads_has_an_exponent(tmp_path: Path) -> None:
    """It is kept with the figures, and said beside them."""
    past = bench_growth.Past(tmp_path)
    answer = ask(tmp_path, lambda session: bench_growth.measure(session, "threads", past.beside, (2, 4)))
    assert [case.at for case in answer.cases] == [
        {"over": "threads", "size": 2},
        {"over": "threads", "size": 4},
        {"over": "threads"},
    ]
    (note,) = answer.notes
    assert note.startswith("cost grows over threads as n^k with k = actorgraph")


def test_few_and_many_threads_are_asked_the_same(tmp_path: Path) -> None:
    side = peers.actorgraph()
    places = {size: Place("sqlite", str(tmp_path / f"{size}.db")) for size in (2, 4)}
    kind = bench_threads.Database("SQLite", side, places)
    answer = ask(tmp_path, lambda session: bench_threads.measure(session, kind, 3))
    assert [list(case.series) for case in answer.cases] == [["2 threads", "4 threads"]] * 4
    assert len(answer.notes) == 4
