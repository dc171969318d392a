"""What of a node's config LangChain finds by itself: all but the node's place, and made only if somebody looks."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, dispatch_custom_event
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import ensure_config, var_child_runnable_config

from runtime.config import get_config
from runtime.context import scope
from tests.stories.graphs import CONFIG, Log, chain, collect

SETTINGS: dict[str, Any] = {"configurable": {"thread_id": "7", "color": "red"}, "tags": ["t"], "metadata": {"m": 1}}


async def test_runnables_find_the_nodes_config_without_being_given_it() -> None:
    found: list[Any] = []

    def node(_state: Log) -> None:
        found.append((ensure_config(), get_config()))

    async def waiting(_state: Log) -> None:
        found.append((ensure_config(), get_config()))

    await chain(("n", node), ("w", waiting)).compile().ainvoke({}, SETTINGS)
    for seen, own in found:
        assert seen["tags"] == ["t"]
        assert seen["configurable"] == {"thread_id": "7", "color": "red"}
        assert seen["metadata"] == {**own["metadata"], "checkpoint_ns": own["configurable"]["checkpoint_ns"]}
        assert own["configurable"].keys() > seen["configurable"].keys()


async def test_a_runnable_may_be_a_node_and_hands_its_config_on() -> None:
    found: list[Any] = []
    inner: Any = RunnableLambda(lambda _given, config: found.append(config["metadata"]["langgraph_node"]))

    def node(state: Any) -> None:
        (RunnableLambda(lambda given: given) | inner).invoke(state)

    await chain(("n", node)).compile().ainvoke({})
    assert found == ["n"]


class Hears(BaseCallbackHandler):
    """Notes events of the program's own."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_custom_event(self, name: str, data: Any, **_more: Any) -> None:
        """Note it."""
        self.told.append((name, data))


@pytest.mark.parametrize("listening", [False, True])
async def test_a_node_tells_events_of_its_own(listening: bool) -> None:
    """Whether anybody listens or not; and hands on its callbacks alone."""

    def node(_state: Log, config: dict[str, Any]) -> None:
        dispatch_custom_event("seen", {"n": 1})
        telling: Any = RunnableLambda(lambda given: dispatch_custom_event("inner", given))
        telling.invoke(2, {"callbacks": config["callbacks"]})

    hears = Hears()
    await chain(("n", node)).compile().ainvoke({}, {"callbacks": [hears]} if listening else {})
    assert hears.told == ([("seen", {"n": 1}), ("inner", 2)] if listening else [])


async def test_the_config_is_a_mapping_like_any_other() -> None:
    def node(_state: Log) -> None:
        for look in (
            dict,
            lambda config: {**config},
            lambda config: config.copy(),
            lambda config: dict(config.items()),
        ):
            seated: Any = var_child_runnable_config.get()
            assert seated
            assert sorted(look(seated)) == ["callbacks", "configurable", "metadata", "tags"]
            assert len(seated) == len(list(seated.values())) == 4
            assert "tags" in seated
            assert seated["tags"] == seated.get("tags") == ["t"]
            assert seated["callbacks"].handlers == []

    await chain(("n", node)).compile().ainvoke({}, SETTINGS)


@pytest.mark.parametrize("options", [{}, {"stream_mode": "values"}])
async def test_nothing_is_made_for_a_node_that_does_not_look(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_scope: Any) -> Any:
        msg = "somebody looked"
        raise AssertionError(msg)

    monkeypatch.setattr(scope.Scope, "config", property(refuse))
    graph = chain("n").compile()
    assert await graph.ainvoke({}, CONFIG) == {"log": ["n"]}
    await collect(graph.astream({}, CONFIG, **options))


def test_langchain_is_not_imported_unless_somebody_listens() -> None:
    """Importing it takes longer than most programs' first superstep."""
    program = """
import sys
from typing import TypedDict
import runtime.callbacks, runtime.config, runtime.graph
from runtime.graph import START, StateGraph
class State(TypedDict):
    n: int
graph = StateGraph(State).add_node("a", lambda state: {"n": 1}).add_edge(START, "a").compile()
graph.invoke({"n": 0})
list(graph.stream({"n": 0}, stream_mode=["values", "updates", "custom", "tasks", "checkpoints", "debug"]))
assert "langchain_core" not in sys.modules
list(graph.stream({"n": 0}, stream_mode="messages"))
assert "langchain_core.runnables.config" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
