"""Every way in which a graph can be below another: as a node, called in one, kept, stateless, in a workflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from persistence.memory import InMemorySaver
from runtime.func import entrypoint, task
from runtime.graph import StateGraph
from tests.stories.graphs import Log, chain

Builder = StateGraph[Any, Any, Any, Any]


def node(builder: Builder, saver: Any, **options: Any) -> Any:
    """Put it below as a node, compiled with these options."""
    return chain(("p", builder.compile(**options))).compile(checkpointer=saver)


def _called(builder: Builder, saver: Any) -> Any:
    child = builder.compile()

    async def call(state: Log) -> Any:
        return await child.ainvoke(state)

    return chain(("p", call)).compile(checkpointer=saver)


def _called_in_a_thread(builder: Builder, saver: Any) -> Any:
    child = builder.compile()

    def call(state: Log) -> Any:
        return child.invoke(state)

    return chain(("p", call)).compile(checkpointer=saver)


def _in_a_workflow(builder: Builder, saver: Any) -> Any:
    child = builder.compile()

    @entrypoint(checkpointer=saver)
    async def workflow(state: Log) -> Any:
        return await child.ainvoke(state)

    return workflow


def _in_a_task(builder: Builder, saver: Any) -> Any:
    child = builder.compile()

    @task
    async def run(state: Log) -> Any:
        return await child.ainvoke(state)

    async def call(state: Log) -> Any:
        return await run(state)

    return chain(("p", call)).compile(checkpointer=saver)


PLACES: dict[str, Callable[[Builder, Any], Any]] = {
    "a node": node,
    "two levels down": lambda builder, saver: node(chain(("q", builder.compile())), saver),
    "kept": lambda builder, saver: node(builder, saver, checkpointer=True),
    "stateless": lambda builder, saver: node(builder, saver, checkpointer=False),
    "a saver of its own": lambda builder, saver: node(builder, saver, checkpointer=InMemorySaver()),
    "called": _called,
    "called in a thread": _called_in_a_thread,
    "in a workflow": _in_a_workflow,
    "in a task": _in_a_task,
}
