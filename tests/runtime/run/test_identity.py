"""What makes a function another one: its code and what it was made with, not what it counts."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple, TypedDict

import msgspec
import pytest

from runtime.graph import END, START, StateGraph
from runtime.run.identity import node_identity
from runtime.types import CachePolicy


class State(TypedDict, total=False):
    a: Any


def identity(function: Any, *, policy: CachePolicy | None = None) -> str:
    builder = StateGraph(State).add_node("n", function, cache_policy=policy)
    plan = builder.add_edge(START, "n").compile().program.plan
    return node_identity(plan, plan.nodes["n"])


def made(source: str, **names: Any) -> Any:
    """Return the function ``node`` of a piece of source."""
    space: dict[str, Any] = {"__name__": "somewhere", **names}
    exec(source, space)  # noqa: S102 - two versions of one function need two sources
    return space["node"]


def test_the_same_code_is_the_same_wherever_it_stands() -> None:
    one = made("def node(state):\n    return {'a': 1}\n")
    moved = made("\n\n# a comment\ndef node(state):\n\n    return {'a': 1}\n")
    assert identity(one) == identity(moved)


@pytest.mark.parametrize(
    "changed",
    [
        "def node(state):\n    return {'a': 2}\n",
        "def node(state):\n    return {'a': 1.0}\n",
        "def node(state):\n    return {'b': 1}\n",
        "def node(state):\n    return dict(a=1)\n",
        "async def node(state):\n    return {'a': 1}\n",
        "def node(state, *, more=1):\n    return {'a': 1}\n",
        "def node(state):\n    return {'a': (lambda: 1)()}\n",
        "node = lambda state: {'a': 1}\n",
    ],
)
def test_other_code_is_another(changed: str) -> None:
    assert identity(made("def node(state):\n    return {'a': 1}\n")) != identity(made(changed))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def node(state):\n    return [1 for _ in state]\n", "def node(state):\n    return [2 for _ in state]\n"),
        ("def node(state):\n    return state.one()\n", "def node(state):\n    return state.two()\n"),
        ("def node(state, *, m=1):\n    return m\n", "def node(state, *, m=2):\n    return m\n"),
        ("def node(state, m=1):\n    return m\n", "def node(state, m=2):\n    return m\n"),
        ("def node(state):\n    return state in {'a', 'b'}\n", "def node(state):\n    return state in {'a', 'c'}\n"),
    ],
)
def test_code_inside_names_and_defaults_count(before: str, after: str) -> None:
    assert identity(made(before)) != identity(made(after))
    assert identity(made(before)) == identity(made(before))


class Color(Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    left: int


@dataclass(frozen=True)
class Settings:
    model: str


class Struct(msgspec.Struct):
    model: str


class Plain:
    def __init__(self, model: str) -> None:
        self.model = model


def inner_one(state: Any) -> Any:
    return {"a": 1}


def inner_two(state: Any) -> Any:
    return {"a": 2}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        ("a", b"a"),
        ((1, ("x",)), (1, ("y",))),
        (frozenset("ab"), frozenset("ac")),
        (Color.RED, Color.BLUE),
        (Pair(1), Pair(2)),
        (Settings("a"), Settings("b")),
        (Struct("a"), Struct("b")),
        (Plain("a"), Plain("b")),
        (inner_one, inner_two),
        (functools.partial(inner_one, 1), functools.partial(inner_one, 2)),
        (functools.lru_cache(inner_one), functools.lru_cache(inner_two)),
        (int, float),
        (len, print),
        (None, ...),
    ],
)
def test_what_a_function_is_made_with_counts(one: Any, two: Any) -> None:
    def closing(held: Any) -> Any:
        def node(state: Any) -> Any:
            return held

        return node

    class Called:
        def __init__(self, held: Any) -> None:
            self.held = (held,)

        def __call__(self, state: Any) -> Any:
            return self.held

        def method(self, state: Any) -> Any:
            return self.held

    def taking(held: Any, state: Any) -> Any:
        return held

    makers: list[Callable[[Any], Any]] = [
        closing,
        Called,
        lambda held: Called(held).method,
        lambda held: functools.partial(taking, held),
    ]
    for make in makers:
        assert identity(make(one)) != identity(make(two))
        assert identity(make(one)) == identity(make(one))


def test_what_a_function_counts_does_not_count() -> None:
    def counting(start: int) -> Any:
        count = start

        async def node(state: Any) -> Any:
            nonlocal count
            count += 1

        return node

    def noting(seen: list[Any], box: Any) -> Any:
        def node(state: Any) -> Any:
            seen.append(state)
            box.model = "changed"

        return node

    class Counting:
        def __init__(self, start: int) -> None:
            self.count = start

        def __call__(self, state: Any) -> Any:
            self.count += 1

    assert identity(counting(1)) == identity(counting(2))
    assert identity(noting([], Plain("a"))) == identity(noting([1], Plain("b")))
    assert identity(Counting(1)) == identity(Counting(2))
    assert identity(Counting(1).__call__) == identity(Counting(2).__call__)


def test_decorated_functions_are_what_they_wrap() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def outer(state: Any) -> Any:
            return function(state)

        return outer

    class Decorator:
        def __init__(self, function: Any) -> None:
            functools.update_wrapper(self, function)

        def __call__(self, state: Any) -> Any:
            return self.__wrapped__(state)  # type: ignore[attr-defined]

    one = made("def node(state):\n    return 1\n")
    two = made("def node(state):\n    return 2\n")
    for wrap in (logged, Decorator, functools.cache):
        assert identity(wrap(one)) != identity(wrap(two))
        assert identity(wrap(one)) == identity(wrap(one))


def test_functions_that_refer_to_themselves_have_an_end() -> None:
    def deep(last: int) -> Any:
        def node(state: Any) -> Any:
            return node(state) if state else later(state)

        def later(state: Any) -> Any:
            return node(last)

        return node

    assert identity(deep(1)) != identity(deep(2))


def test_a_variable_that_is_not_set_yet_is_no_obstacle() -> None:
    def early() -> tuple[Any, str]:
        def node(state: Any) -> Any:
            return late

        found = identity(node)
        late = 1
        return node, found

    node, before = early()
    assert isinstance(node, FunctionType)
    assert before != identity(node)


def graph(
    *, end: str = "x", router: Any = None, ends: Any = None, schema: Any = State, more: tuple[str, ...] = ()
) -> str:
    builder = StateGraph(schema)
    builder.add_node("n", inner_one)
    builder.add_node("x", inner_one)
    for name in ("y", *more):
        builder.add_node(name, inner_one)
    builder.add_edge(START, "n")
    if router is None:
        builder.add_edge("n", end)
    else:
        builder.add_conditional_edges("n", router, ends)
    plan = builder.compile().program.plan
    return node_identity(plan, plan.nodes["n"])


def test_edges_routers_and_what_can_be_written_to_count() -> None:
    class More(TypedDict, total=False):
        a: Any
        b: Any

    one, two = made("def node(state):\n    return 'x'\n"), made("def node(state):\n    return 'y'\n")
    found = [
        graph(),
        graph(end="y"),
        graph(schema=More),
        graph(more=("z",)),
        graph(router=one),
        graph(router=two),
        graph(router=one, ends={"x": "x"}),
        graph(router=one, ends={"x": END}),
    ]
    assert len(set(found)) == len(found)
    assert graph(router=one, ends={"x": "x"}) == graph(router=one, ends={"x": "x"})


def test_the_key_function_counts() -> None:
    policies = [None, CachePolicy(), CachePolicy(key_func=lambda _: "a"), CachePolicy(key_func=lambda _: "b")]
    found = [identity(inner_one, policy=policy) for policy in policies]
    assert found[0] == found[1]
    assert len(set(found)) == 3


@pytest.mark.slow
def test_it_is_the_same_in_every_process() -> None:
    program = (
        "from runtime.graph import START, StateGraph\n"
        "from runtime.run.identity import node_identity\n"
        "from enum import Enum\n"
        "Color = Enum('Color', 'RED BLUE')\n"
        "class Box:\n"
        "    def __init__(self): self.names = frozenset('abcdef'); self.other = object()\n"
        "    def __call__(self, state): return state in {'a', 'b', 'c', Color.RED}\n"
        "plan = StateGraph(dict).add_node('n', Box()).add_edge(START, 'n').compile().program.plan\n"
        "print(node_identity(plan, plan.nodes['n']))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
