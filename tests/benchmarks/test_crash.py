"""What a killed run is found to have lost."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from benchmarks import bench_crash, peers
from benchmarks.crash.killing import kill
from benchmarks.crash.victim import Victim, examine
from benchmarks.durability.grid import Cell
from benchmarks.durability.places import Place
from benchmarks.harness import Question, Session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def victim(folder: Path, mode: str) -> Victim:
    """Describe a run on SQLite."""
    return Victim(peers.OURS, Place("sqlite", str(folder / "killed.db")), mode, 1.0, folder / "ledger", steps=300)


def test_sync_loses_at_most_the_superstep_under_way(tmp_path: Path) -> None:
    """What the node had done but nobody was told of."""
    killed = victim(tmp_path, "sync")
    assert kill(killed, Random(3))
    assert 0 < killed.done() < killed.steps
    lost, again = killed.side.run(examine, killed)
    assert 0 <= again <= lost <= 1


def test_exit_loses_everything(tmp_path: Path) -> None:
    """Nothing is stored before the end."""
    killed = victim(tmp_path, "exit")
    assert kill(killed, Random(3))
    done = killed.done()
    assert killed.side.run(examine, killed) == (done, done)


def test_the_question_records_what_was_lost_and_what_the_mode_costs(tmp_path: Path) -> None:
    """Beside each other, so that they can be drawn in one picture."""
    with Session([peers.actorgraph()], tmp_path, repeats=1) as session:
        answer = session.ask(
            Question(
                "crash",
                "tiny",
                lambda asked: bench_crash.over(asked, Cell("sqlite", 8, 1.0, 1), asked.sides, ("sync",), kills=1),
            )
        )
    assert answer.failures == []
    cost, lost, again = answer.cases
    assert list(cost.series) == ["no checkpointer", "sync"]
    assert [case.unit for case in (lost, again)] == [bench_crash.LOST, bench_crash.AGAIN]
    assert lost.at["backend"] == cost.at["backend"] == "sqlite"
    assert len(lost.series["sync"].values) == 1
