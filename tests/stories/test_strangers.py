"""What a program still imports from LangGraph is refused in words, where it would be lost or fail far from there."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph import types as there
from langgraph.checkpoint.memory import InMemorySaver as TheirSaver
from langgraph.store.memory import InMemoryStore as TheirStore

from runtime.errors import InvalidUpdateError
from runtime.graph import START
from runtime.types import Command
from tests.stories.graphs import CONFIG, chain

pytestmark = pytest.mark.anyio

RETURNED = {
    "a Command": there.Command(update={"log": ["x"]}),
    "one of several": [{"log": ["x"]}, there.Command(goto="n")],
    "a Send": there.Send("n", {}),
    "a Send in a Command": Command(goto=there.Send("n", {})),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", RETURNED)
async def test_what_a_node_returns(saver: Any, case: str) -> None:
    graph = chain(("n", lambda _state: RETURNED[case])).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match=r"LangGraph's own \w+ \(langgraph\.types\): import \w+ from runtime"):
        await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("n",)


@pytest.mark.parametrize("ends", [None, ["n"]])
async def test_what_a_router_returns(ends: Any) -> None:
    builder = chain("n").add_conditional_edges(START, lambda _state: there.Send("n", {}), ends)
    with pytest.raises(InvalidUpdateError, match="LangGraph's own Send"):
        await builder.compile().ainvoke({})


async def test_what_is_given_as_input(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="The input of graph 'LangGraph' is LangGraph's own Command"):
        await graph.ainvoke(there.Command(resume="yes"), CONFIG)
    assert (await graph.aget_state(CONFIG)).config.get("configurable", {}).get("checkpoint_id") is None


@pytest.mark.parametrize("kind", [TheirSaver, type("Own", (TheirSaver,), {})])
def test_a_saver(kind: Any) -> None:
    with pytest.raises(
        TypeError, match=r"checkpointer is of LangGraph \(langgraph\..*import it from persistence.memory"
    ):
        chain("n").compile(checkpointer=kind())


def test_a_store() -> None:
    with pytest.raises(TypeError, match=r"store is of LangGraph \(langgraph\..*made of persistence.store.BaseStore"):
        chain("n").compile(store=TheirStore())


async def test_a_function_that_looks_for_a_graph_of_theirs() -> None:
    graph = chain(("n", lambda _state: there.interrupt("?"))).compile()
    with pytest.raises(KeyError) as failed:
        await graph.ainvoke({})
    assert any("functions of LangGraph's fail here" in note for note in failed.value.__notes__)
