"""How samples are taken, and what a question's answer looks like."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING

import pytest

from benchmarks import bench_chain, peers
from benchmarks.chains import Load
from benchmarks.commands import main
from benchmarks.harness import QUESTIONS, Question, Session, describe, interleave, settled_heap
from benchmarks.results import STEP, Case, Sample, load
from benchmarks.sweeping import APART, ORDER, chosen, register

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def counting(label: str, calls: list[str]) -> Callable[[], Sample]:
    """Return a contender that notes its turn and returns how many turns there have been."""

    def contender() -> Sample:
        calls.append(label)
        return Sample(float(len(calls)))

    return contender


def failing() -> Sample:
    """Fail as an engine might."""
    message = "first line\nsecond line"
    raise RuntimeError(message)


def test_contenders_take_turns_and_warm_ups_are_thrown_away() -> None:
    """A B A B A B, of which the first pair counts for nothing."""
    calls: list[str] = []
    contenders = {label: counting(label, calls) for label in "AB"}
    samples, failures = interleave(contenders, repeats=2, warmups=1, tick=lambda: None)
    assert calls == list("ABABAB")
    assert {label: [sample.value for sample in found] for label, found in samples.items()} == {
        "A": [3.0, 5.0],
        "B": [4.0, 6.0],
    }
    assert not failures


def test_a_contender_that_fails_leaves_the_others_their_numbers() -> None:
    """It is dropped after its first failure, and the failure is kept."""
    contenders = {"bad": failing, "good": lambda: Sample(1.0)}
    samples, failures = interleave(contenders, repeats=2, warmups=0, tick=lambda: None)
    assert list(samples) == ["good"]
    assert describe(failures["bad"]) == "RuntimeError: first line"


def test_a_group_of_errors_is_described_by_its_first() -> None:
    """Nurseries wrap what their tasks raise."""
    assert describe(ExceptionGroup("outer", [ExceptionGroup("inner", [KeyError("k")])])) == "KeyError: 'k'"


def test_the_collector_is_on_during_a_sample_and_the_heap_is_thawed_after_it() -> None:
    """Garbage made in the sample is paid for in the sample."""
    with settled_heap():
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_a_failure_appears_in_the_answer(tmp_path: Path) -> None:
    """The report names the case and the side."""
    session = Session([], tmp_path)

    def run(session: Session) -> None:
        session.compare("case", STEP, {"bad": failing}, repeats=1)

    answer = session.ask(Question("name", "title", run))
    assert answer.failures == ["case, bad: RuntimeError: first line"]
    assert answer.cases == [Case("case", STEP, "bad")]


def test_every_question_is_registered_and_has_a_place_in_the_order() -> None:
    """A bench file that nobody runs would be noticed here."""
    register()
    assert set(QUESTIONS) == set(ORDER)


def test_an_unknown_side_is_named() -> None:
    """So are those that exist."""
    with pytest.raises(ValueError, match=r"'nobody'; there are .*actorgraph"):
        peers.sides(["nobody"])


def test_the_smallest_question_answers(tmp_path: Path) -> None:
    """A chain of two nodes on both event loops: the result has a case with one series a side."""
    sides = [peers.actorgraph(), peers.actorgraph("trio")]
    repeats = 2
    session = Session(sides, tmp_path, repeats=repeats)
    answer = session.ask(Question("chain", "tiny", partial(bench_chain.measure, load=Load(nodes=2, runs=1))))
    assert answer.failures == []
    (case,) = answer.cases
    assert case.unit == STEP
    assert case.baseline == "actorgraph"
    assert list(case.series) == ["actorgraph", "actorgraph on trio"]
    assert all(len(series.values) == len(series.cpu) == repeats for series in case.series.values())
    ratio = case.ratio("actorgraph on trio")
    assert ratio is not None
    assert ratio.low <= ratio.median <= ratio.high


@pytest.mark.slow
def test_a_sweep_prints_keeps_and_draws_what_it_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One question of one side; the machine's yardsticks are kept beside it."""
    words = ["--only", "chain", "--side", "actorgraph", "--repeats", "1"]
    assert main([*words, "--json", str(tmp_path / "found.json"), "--html", str(tmp_path / "found.html")]) == 0
    found = load(tmp_path / "found.json")
    assert [answer.question for answer in found.answers] == ["chain"]
    assert all(len(values) == 2 for values in found.yardsticks.values())
    assert found.machine["sweep"] == "short"
    assert "<h2>All figures</h2>" in (tmp_path / "found.html").read_text("utf-8")
    assert "yardstick: an fsync" in capsys.readouterr().out


def test_the_short_sweep_is_a_part_of_the_full_one() -> None:
    """Each has a database, a crash and a peer in it."""
    short, full = ([question.name for question in chosen(None, full=whole)] for whole in (False, True))
    assert {"durability", "crash", "sqlite-one"} <= set(short) < set(full)
    assert full == [name for name in ORDER if name not in APART]
