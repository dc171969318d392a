"""What subgraphs inherit: context, store, config, durability, limits."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest

from persistence.memory import InMemorySaver, InMemoryStore
from runtime.config import get_config, get_store
from runtime.errors import GraphRecursionError
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime, get_runtime
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Log, chain, history
from tests.stories.nests import Runs, asked

pytestmark = pytest.mark.anyio


@dataclass
class User:
    """Context."""

    name: str


def looking(found: list[Any], look: Any) -> tuple[str, Any]:
    """A node that notes something it can see."""

    async def node(_state: Log) -> dict[str, Any]:
        found.append(look())
        return {}

    return "look", node


@pytest.mark.parametrize("form", ["node", "function", "sync"])
async def test_the_context(saver: Any, form: str) -> None:
    found: list[Any] = []
    child = chain(looking(found, lambda: get_runtime().context)).compile()

    async def call(_state: Log) -> dict[str, Any]:
        await child.ainvoke({"log": []})
        return {}

    def call_blocking(_state: Log) -> dict[str, Any]:
        child.invoke({"log": []})
        return {}

    node: Any = {"node": child, "function": call, "sync": call_blocking}[form]
    builder = StateGraph(Log, context_schema=User)
    builder.add_node("p", node)
    builder.add_edge(START, "p")
    await builder.compile(checkpointer=saver).ainvoke({}, CONFIG, context={"name": "ann"})
    assert found == [User("ann")]


async def test_a_context_of_its_own(saver: Any) -> None:
    found: list[Any] = []
    child = chain(looking(found, lambda: get_runtime().context)).compile()

    async def call(_state: Log) -> dict[str, Any]:
        await child.ainvoke({"log": []}, context=User("other"))
        return {}

    await chain(("f", call)).compile(checkpointer=saver).ainvoke({}, CONFIG, context=User("ann"))
    assert found == [User("other")]


async def test_the_store(saver: Any) -> None:
    found: list[Any] = []
    store, own = InMemoryStore(), InMemoryStore()
    inherits = chain(looking(found, get_store)).compile()
    has = chain(looking(found, get_store)).compile(store=own)
    graph = chain(("p", inherits), ("q", has)).compile(checkpointer=saver, store=store)
    await graph.ainvoke({}, CONFIG)
    assert found[0] is store
    assert found[1] is own


async def test_the_config(saver: Any) -> None:
    found: list[Any] = []
    child = chain(looking(found, get_config)).compile()
    graph = chain(("p", child)).compile(checkpointer=saver)
    config = {
        "configurable": {"thread_id": "t", "setting": 7},
        "metadata": {"user": "ann"},
        "tags": ["x"],
        "recursion_limit": 30,
    }
    await graph.ainvoke({}, config)
    (seen,) = found
    assert seen["configurable"]["setting"] == 7
    assert seen["configurable"]["thread_id"] == "t"
    assert seen["metadata"]["user"] == "ann"
    assert seen["metadata"]["langgraph_node"] == "look"
    assert seen["metadata"]["langgraph_checkpoint_ns"].count("|") == 1
    assert seen["tags"] == ["x"]
    assert seen["recursion_limit"] == 30


async def test_metadata_goes_into_its_checkpoints(saver: Any) -> None:
    graph = chain(("p", chain("s").compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, {**CONFIG, "metadata": {"user": "ann"}})
    assert {one.metadata["user"] async for one in saver.alist(CONFIG)} == {"ann"}


async def test_what_a_node_is_told_about_itself(saver: Any) -> None:
    infos: list[Any] = []

    async def look(_state: Log, runtime: Runtime[Any]) -> dict[str, Any]:
        infos.append(runtime.execution_info)
        return {}

    graph = chain(("p", chain(("look", look)).compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (info,) = infos
    assert info.thread_id == "t"
    assert info.checkpoint_ns.endswith(f"look:{info.task_id}")
    where = info.checkpoint_ns.rpartition("|")[0]
    stored = {one.config["configurable"]["checkpoint_id"] async for one in saver.alist(CONFIG)}
    assert where.startswith("p:")
    assert info.checkpoint_id in stored


def looping(name: str) -> Any:
    """A graph that would go on for ever."""
    builder = chain(name)
    builder.add_edge(name, name)
    return builder


async def test_the_step_limit_holds_inside(saver: Any) -> None:
    graph = chain(("p", looping("s").compile())).compile(checkpointer=saver)
    with pytest.raises(GraphRecursionError, match="Recursion limit of 5"):
        await graph.ainvoke({}, {**CONFIG, "recursion_limit": 5})
    inside = (await graph.aget_state(CONFIG, subgraphs=True)).tasks[0].state
    assert inside.values["log"] == ["s"] * 5
    assert inside.next == ("s",)


async def test_a_call_may_have_a_limit_of_its_own(saver: Any) -> None:
    child = looping("s").compile()

    async def call(_state: Log) -> dict[str, Any]:
        try:
            await child.ainvoke({"log": []}, {"recursion_limit": 3})
        except GraphRecursionError as error:
            return {"log": [str("of 3" in str(error))]}
        return {}

    assert await chain(("f", call)).compile(checkpointer=saver).ainvoke({}, CONFIG) == {"log": ["True"]}


async def test_each_level_counts_its_own_steps(saver: Any) -> None:
    child = chain("s1", "s2", "s3").compile()
    graph = chain(("p", child), ("q", child)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, {**CONFIG, "recursion_limit": 3})
    assert result["log"][-1] == "s3"


async def test_what_a_subgraph_sets_in_context_variables_stays_inside(saver: Any) -> None:
    mark: ContextVar[str] = ContextVar("mark", default="unset")

    async def put(_state: Log) -> dict[str, Any]:
        mark.set("set")
        return {}

    found: list[Any] = []
    graph = chain(("p", chain(("put", put)).compile()), looking(found, mark.get)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert found == ["unset"]


async def test_a_whole_conversation_with_an_agent_of_two_levels() -> None:
    saver = InMemorySaver()
    runs = Runs()

    async def think(state: Log) -> dict[str, Any]:
        runs["think"] += 1
        return {"log": [f"thought about {state['log'][-1]}"]}

    async def act(_state: Log) -> dict[str, Any]:
        runs["act"] += 1
        return {"log": [f"did {interrupt('may I?')}"]}

    agent = chain(("think", think), ("act", act)).compile(checkpointer=True)

    async def route(state: Log) -> dict[str, Any]:
        result = await agent.ainvoke({"log": [state["log"][-1]]})
        return {"log": result["log"][-1:]}

    graph = chain(("route", route)).compile(checkpointer=saver)
    for turn in ("one", "two"):
        assert asked(await graph.ainvoke({"log": [turn]}, CONFIG)) == ["may I?"]
        await graph.ainvoke(Command(resume=turn.upper()), CONFIG)
    assert (await graph.aget_state(CONFIG)).values["log"] == ["one", "did ONE", "two", "did TWO"]
    inside = {"configurable": {"thread_id": "t", "checkpoint_ns": "route"}}
    assert (await graph.aget_state(inside)).values["log"] == [
        "one",
        "thought about one",
        "did ONE",
        "two",
        "thought about two",
        "did TWO",
    ]
    assert runs == {"think": 2, "act": 4}
    assert len(await history(graph, inside)) == 8
