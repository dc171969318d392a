"""A run that fails and pauses on its way, and is resumed each time, ends as if nothing had happened."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from runtime.types import Command, interrupt
from tests.runtime.engine.reference import Conflict, LimitReached, Node, Reference, Sketch
from tests.runtime.engine.test_reference import build, sketches

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}
INPUT = {"log": ["in"]}


class Boom(Exception):  # noqa: N818 - what happens
    """A node has failed."""


class Trouble:
    """Makes nodes fail now and then, and some of them ask before they go on."""

    def __init__(self, random: Any, failures: int, *, asks: bool) -> None:
        self.random = random
        self.failures = failures
        self.asks = asks
        self.succeeded = 0

    def __call__(self, node: Node, given: Any) -> None:
        if self.asks and node.name in "ace" and interrupt(f"may {node.name}?") != "yes":
            pytest.fail("another question's answer")
        if self.failures and self.random.random() < 0.3:
            self.failures -= 1
            raise Boom
        self.succeeded += 1


async def run_to_the_end(graph: Any, durability: Any) -> Any:
    """Resume and answer until the run is done."""
    given: Any = INPUT
    for _ in range(200):
        try:
            result = await graph.ainvoke(given, CONFIG, durability=durability)
        except Boom:
            given = None
            continue
        questions = result.get("__interrupt__")
        if not questions:
            return result
        given = Command(resume={question.id: "yes" for question in questions})
    return pytest.fail("no end")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(
    sketches(ends=True),
    st.sampled_from(["sync", "async", "exit"]),
    st.integers(0, 5),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60)
def test_failures_and_pauses_leave_no_trace_in_the_state(
    backend: str, sketch: Sketch, durability: str, failures: int, asks: bool, random: Any
) -> None:
    """The same checkpoints, and every task has succeeded once."""
    reference = Reference(sketch)
    try:
        expected = reference.input(INPUT)
    except (LimitReached, Conflict):
        assume(False)
    trouble = Trouble(random, failures, asks=asks)
    graph = build(sketch, lambda: random.randint(0, 3), trouble).compile(InMemorySaver())

    async def main() -> list[Any]:
        assert await run_to_the_end(graph, durability) == expected
        return [one async for one in graph.aget_state_history(CONFIG)][::-1]

    history = anyio.run(main, backend=backend)
    told = [(one.metadata["source"], one.metadata["step"], one.next, one.values) for one in history]
    wanted = [(point.source, point.step, point.next, point.values) for point in reference.points]
    if durability == "exit":
        assert told[-1] == wanted[-1]
        assert all(one in wanted for one in told)
    else:
        assert told == wanted
    tasks = [name for point in reference.points for name in point.next if name != "__start__"]
    assert trouble.succeeded == len(tasks)
