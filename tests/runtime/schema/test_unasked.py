"""Classes whose ``__getattr__`` raises anything but AttributeError: they work as states, or it is said why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypedDict

import pytest

from persistence.memory import InMemoryCache, InMemorySaver
from runtime.errors import GraphDefinitionError
from runtime.graph import START, StateGraph
from runtime.schema import introspect, types_in, updates_of
from runtime.schema.instances import apart, input_of
from runtime.types import CachePolicy
from tests.stories.graphs import CONFIG


@dataclass
class Counter:
    n: int = 0

    def __getattr__(self, name: str) -> NoReturn:
        raise KeyError(name)


class Plain:
    n: int
    other: int

    def __init__(self, n: int) -> None:
        self.n = n

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)


class Strict(type):
    def __getattr__(cls, name: str) -> NoReturn:
        message = f"no {name}"
        raise RuntimeError(message)


class Made(metaclass=Strict):
    n: int


@pytest.mark.parametrize("make", [Counter, Plain])
def test_what_an_instance_stands_for(make: Callable[[int], Any]) -> None:
    value = make(3)
    assert updates_of(value) == [("n", 3)]
    assert input_of(value, ()) == [("n", 3)]
    assert apart(value).n == 3


def test_what_a_property_of_a_field_raises_is_raised() -> None:
    class Failing:
        n: int

        def __getattr__(self, name: str) -> NoReturn:
            raise KeyError(name)

    class Below(Failing):
        @property
        def n(self) -> NoReturn:  # type: ignore[override]  # a computed field
            message = "computing it failed"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="computing it failed"):
        updates_of(Below())


@pytest.mark.parametrize("make", [Counter, Plain])
async def test_a_run_takes_and_returns_instances(make: Callable[[int], Any]) -> None:
    async def node(_state: Any) -> Any:
        return make(4)

    graph = StateGraph(make).add_node("node", node).add_edge(START, "node").compile()
    assert (await graph.ainvoke(make(1)))["n"] == 4


async def test_one_is_saved_and_edited() -> None:
    builder: Any = StateGraph(Counter).add_node("node", lambda state: Counter(state.n + 1)).add_edge(START, "node")
    graph = builder.compile(InMemorySaver())
    assert (await graph.ainvoke(Counter(1), CONFIG))["n"] == 2
    await graph.aupdate_state(CONFIG, Counter(8))
    assert (await graph.aget_state(CONFIG)).values == {"n": 8}


async def test_a_cached_node_may_hold_one() -> None:
    held = Plain(5)
    builder: Any = StateGraph(Counter).add_edge(START, "node")
    builder.add_node("node", lambda state: {"n": state.n + held.n}, cache_policy=CachePolicy())
    graph = builder.compile(cache=InMemoryCache())
    assert (await graph.ainvoke({"n": 1}))["n"] == 6


def test_a_class_that_cannot_be_asked_is_refused_in_words() -> None:
    with pytest.raises(GraphDefinitionError, match=r"'Made' cannot be read.*'Strict' raises RuntimeError: no __\w+"):
        introspect(Made)


async def test_such_a_class_may_be_a_values() -> None:
    class State(TypedDict):
        n: int
        made: Made

    hints = {"n": int, "made": Made}
    State.__annotations__ = hints  # local to this test
    assert Made in types_in(State)
    made = Made()

    async def node(state: Any) -> Any:
        assert state["made"] is made
        return {"n": 2}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    assert await graph.ainvoke({"n": 1, "made": made}) == {"n": 2, "made": made}
