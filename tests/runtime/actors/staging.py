"""A run that has not begun: everything that node actors need of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio.testing

from runtime.actors.node import NodeActor
from runtime.actors.outcomes import COMPLETED, Outcome
from runtime.engine.tasks import Moment, Task
from runtime.graph import START, StateGraph
from runtime.run.conductor import Conductor
from runtime.run.pacing import pacer
from runtime.run.program import Call
from runtime.types import Send
from runtime.types.config import parse_config
from tests.runtime.engine.sketching import Everything

VIRTUAL = pytest.mark.parametrize(
    "anyio_backend", [pytest.param(("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}), id="virtual")]
)
"""On a clock that jumps to whatever is waited for."""

MOMENT = Moment("checkpoint", "", 1, 10)


def graph(function: Any, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    """Describe a graph of one node."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    return builder.add_node("node", function, **options).add_edge(START, "node")


def stage(**nodes: Callable[..., Any]) -> Conductor:
    """Return a run of a graph with these nodes."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    for name, function in nodes.items():
        builder.add_node(name, function)
        builder.set_entry_point(name)
    return of(builder)


def of(builder: StateGraph[Any, Any, Any, Any], **options: Any) -> Conductor:
    """Return a run of a graph."""
    program = builder.compile(**options).program
    return Conductor(program, Call({}, parse_config(None), None, "async", frozenset(), frozenset(), "enqueue"), pacer())


def task_of(run: Conductor, name: str, given: Any = None, index: int = 0) -> Task:
    """Return a task that a Send started."""
    return Task(run.plan.nodes[name], MOMENT, send=Send(name, given), index=index)


async def handled(run: Conductor, name: str = "node", given: Any = None) -> tuple[Outcome, Task]:
    """Have a node actor handle a task; return how it ended, and the task."""
    task = task_of(run, name, given)
    return await NodeActor(task.node, run).handle(task), task


async def result(function: Any, given: Any = None) -> Any:
    """Return what a node with this function writes under ``last``."""
    run = stage(node=function)
    outcome, task = await handled(run, given=given)
    assert outcome is COMPLETED, outcome
    return dict(task.writes or ())["last"]
