"""Values that LangGraph keeps as a chain of writes: folded again, or their threads stay behind."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from persistence.sqlite import SqliteSaver
from runtime.cli import main
from tests.runtime.cli import both
from tests.runtime.cli.both import OURS
from tests.runtime.cli.test_adopting import START, answer, elsewhere, run_there

GRAPH = ("--graph", f"{both.__name__}:folding_ours")


def refusing(value: list[str], writes: Any) -> list[str]:
    msg = "not any more"
    raise ValueError(msg)


def refusing_ours() -> Any:
    """Return a graph whose reducer has changed."""
    state: Any = TypedDict("state", {"log": Annotated[list[str], OURS.DeltaChannel(refusing)]})
    return OURS.StateGraph(state).add_node("one", lambda state: {"log": ["one"]}).add_edge(OURS.START, "one")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A database with one thread that has run twice."""
    path = tmp_path / "there.db"
    run_there(path, both.folding, [START, answer("1"), START, answer("2")])
    return path


def told(path: Path, capfd: pytest.CaptureFixture[str], *words: str) -> set[str]:
    """Return the reasons for which something stays behind."""
    given = ["migrate", "--from", "langgraph-sqlite", str(path), "--to", str(path.with_name("ours.db")), *words]
    capfd.readouterr()
    code = elsewhere(lambda: main([*given, "--json"]))
    reasons = {problem["reason"] for problem in json.loads(capfd.readouterr().out)["problems"]}
    assert code == (1 if reasons else 0)
    return reasons


async def test_every_point_of_the_past_has_its_value(there: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert told(there, capfd, *GRAPH) == set()
    async with SqliteSaver(there.with_name("ours.db")) as saver:
        graph = both.folding(OURS).compile(saver)
        config: Any = {"configurable": {"thread_id": "1"}}
        values = [each.values.get("log", []) async for each in graph.aget_state_history(config)]
    assert values[0] == ["in", "one", "1", "in", "one", "2"]
    assert all(one == values[0][: len(one)] for one in values)
    assert [len(one) for one in values] == [6, 5, 4, 3, 3, 2, 1, 0]


def test_without_the_graph_nobody_knows_the_reducer(there: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reason = "the value of channel 'log' follows from its reducer: the graph that has it must be named"
    assert told(there, capfd) == {reason}
    elsewhere(lambda: main(["migrate", "--from", "langgraph-sqlite", str(there), "--to", "x.db", "--dry-run"]))
    assert "--graph MODULE:GRAPH" in capfd.readouterr().out


def test_a_reducer_that_refuses_is_told(there: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (reason,) = told(there, capfd, "--graph", f"{__name__}:refusing_ours")
    assert reason == "the reducer of channel 'log' fails: ValueError: not any more"


def test_a_chain_that_was_cut_is_told(there: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(there)) as connection:
        connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = (SELECT min(checkpoint_id) FROM checkpoints)")
        connection.commit()
    (reason,) = told(there, capfd, *GRAPH)
    assert reason.startswith("the value of channel 'log' follows from checkpoint ")
    assert reason.endswith(", which is not there")
