"""Engines of other kinds: they do the work that they are timed for, and are left out where they are missing."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from benchmarks import bench_peers, peers
from benchmarks.chains import Load
from benchmarks.durability.places import Place
from benchmarks.harness import Question, Session
from benchmarks.others import dbos_workflows, pydantic_graphs, restate_services

if TYPE_CHECKING:
    from pathlib import Path

TINY = Load(nodes=2, runs=2, together=True)


def needs(package: str) -> pytest.MarkDecorator:
    """Leave a test out where a package of the extra ``bench`` is missing."""
    return pytest.mark.skipif(
        find_spec(package) is None, reason=f"{package} is not installed: it is in the extra bench"
    )


@needs("dbos")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # another engine's affairs
def test_workflows_of_stored_steps_are_timed(tmp_path: Path) -> None:
    """Launched anew for each sample, in a place of its own."""
    for name in ("one", "two"):
        sample = dbos_workflows.sample(Place("sqlite", str(tmp_path / f"{name}.db")), TINY)
        assert sample.value > 0
        assert (tmp_path / f"{name}.db").stat().st_size > 0


@pytest.mark.skipif(
    not restate_services.settings(), reason="restate-server or its SDK is not here; see the extra bench"
)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_handlers_with_a_journal_are_timed(tmp_path: Path) -> None:
    """The server is gone afterwards, and its folder too."""
    assert restate_services.sample(tmp_path, TINY).value > 0
    assert list(tmp_path.iterdir()) == []


@needs("pydantic_graph")
@pytest.mark.filterwarnings("ignore")
def test_graphs_that_keep_nothing_are_timed() -> None:
    assert pydantic_graphs.sample(Load(3, 1)).value > 0


def test_a_schema_goes_where_the_other_engine_wants_it() -> None:
    """Not into the address: its driver knows no search_path there."""
    place = Place("postgres", "postgresql://me:@/db?host=/tmp/x&search_path=mine,public")
    found = dbos_workflows.config(place)
    assert found["system_database_url"] == "postgresql://me@/db?host=/tmp/x"
    assert found["dbos_system_schema"] == "mine"


@pytest.mark.slow
def test_the_engines_that_are_here_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone where nobody else is installed."""
    monkeypatch.setattr(dbos_workflows, "settings", list)
    monkeypatch.setattr(pydantic_graphs, "settings", list)
    monkeypatch.setattr(restate_services, "settings", list)

    def ask(session: Session) -> None:
        bench_peers.bare(session, Load(2, 1))
        bench_peers.stored(session, "sqlite", TINY, repeats=1)

    with Session([peers.actorgraph()], tmp_path, repeats=1) as session:
        answer = session.ask(Question("peers", "tiny", ask))
    assert answer.failures == []
    assert [case.name for case in answer.cases] == ["no database, 1 run", "sqlite, 2 runs at once"]
    assert all(list(case.series) == [peers.OURS] for case in answer.cases)
