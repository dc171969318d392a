"""A law: an old question that is answered again gives what a run gives that was answered so from the beginning."""

from __future__ import annotations

from typing import Any, TypedDict

import anyio
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.stories.asking import all_of
from tests.stories.graphs import CONFIG, thread
from tests.stories.nests import questions


class Said(TypedDict):
    """What a graph was told and says."""

    said: str


def _nested(inner: Any) -> Any:
    several = st.lists(inner, min_size=1, max_size=3)
    kinds = [st.tuples(st.just(kind), several) for kind in ("call", "graph", "kept")]
    return st.one_of(*kinds, st.tuples(st.just("both"), several, several))


PROGRAMS = st.lists(st.recursive(st.sampled_from([("ask",), ("work",)]), _nested, max_leaves=6), min_size=1, max_size=4)


class Program:
    """A workflow made of steps; what each step says tells of everything that went before it."""

    def __init__(self, steps: list[Any], saver: Any) -> None:
        self.work, self.call = task(self._work, name="work"), task(self.run, name="call")
        self.flow = entrypoint(checkpointer=saver)(self._flow)
        self.steps = steps

    async def _flow(self, _given: int) -> str:
        return await self.run(self.steps, "", "")

    async def _work(self, place: str, said: str) -> str:
        return f"{place}({len(said)})"  # tells what it was given, in few letters

    async def run(self, steps: list[Any], place: str, said: str) -> str:
        """Do steps one after another."""
        for number, step in enumerate(steps):
            said = await self._step(step, f"{place}.{number}", said)
        return said

    async def _step(self, step: Any, place: str, said: str) -> str:
        kind, *below = step
        if kind == "ask":
            return f"{said} {place}={interrupt(f'{place} after {said}')}"
        if kind == "work":
            return f"{said} {await self.work(place, said)}"
        if kind == "call":
            return f"{await self.call(below[0], place, said)} called"
        if kind == "both":
            return "|".join(
                await all_of([self.call(each, f"{place}{side}", said) for each, side in zip(below, "lr", strict=True)])
            )
        return await self._graph(below[0], place, said, keeps=kind == "kept")

    async def _graph(self, steps: list[Any], place: str, said: str, *, keeps: bool) -> str:
        async def node(state: Said) -> Said:
            return {"said": await self.run(steps, place, state["said"])}

        builder = StateGraph(Said).add_node("node", node).add_edge(START, "node")
        result = await builder.compile(checkpointer=keeps or None).ainvoke({"said": said})
        return str(result["said"])


class Play:
    """One program on one saver, started anew for every call."""

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps
        self.saver = InMemorySaver()
        self.ids: dict[str, str] = {}

    async def call(self, given: Any, config: Any) -> Any:
        """Call the workflow, as another process would."""
        return await Program(self.steps, self.saver).flow.ainvoke(given, config)

    async def to_the_end(self, result: Any, config: Any, answers: dict[str, str]) -> str:
        """Answer whatever is asked, ``A`` if no answer is given, until there is a result."""
        while not isinstance(result, str):
            asked = questions(result)
            self.ids |= {question: each for question, each in asked.items() if question not in self.ids}
            reply = {asked[question]: answers.get(question, "A") for question in asked}
            result = await self.call(Command(resume=reply), config)
        return result

    async def stored(self) -> dict[str, Any]:
        """Return all that the thread has stored."""
        return {
            one.checkpoint["id"]: (one.checkpoint["channel_values"], sorted(map(repr, one.pending_writes or ())))
            async for one in self.saver.alist(CONFIG)
        }


async def holds(steps: list[Any], which: int, again: int) -> None:
    """Answer two old questions again, one after the other."""
    play = Play(steps)
    first = await play.call(1, CONFIG)
    paused = (await Program(steps, play.saver).flow.aget_state(CONFIG)).config
    await play.to_the_end(first, CONFIG, {})
    known = dict(play.ids)
    before = await play.stored()
    for number, index in enumerate((which, again)):
        question = sorted(known)[index % len(known)]
        result = await play.call(Command(resume={known[question]: "Z"}), paused)
        found = await play.to_the_end(result, CONFIG, {})
        anew = thread(f"anew {number}")
        expected = await play.to_the_end(await play.call(1, anew), anew, {question: "Z"})
        assert found == expected
    after = await play.stored()
    assert {key: after[key] for key in before} == before


def _asks(steps: Any) -> bool:
    return "ask" in repr(steps)


def _keeps_at_once(steps: Any) -> bool:
    """Tell whether calls made at once use graphs that keep their state; those are refused."""
    return any(step[0] == "both" and "kept" in repr(step) for step in _all(steps))


def _all(steps: Any) -> Any:
    for step in steps:
        yield step
        for below in step[1:]:
            yield from _all(below)


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@settings(max_examples=30)
@example(  # states that calls of one function share, kept below them
    steps=[
        ("call", [("graph", [("ask",)]), ("kept", [("ask",)])]),
        ("call", [("kept", [("work",)]), ("kept", [("ask",)])]),
    ],
    which=2,
    again=5,
)
@example(
    steps=[
        ("call", [("kept", [("work",)]), ("ask",), ("kept", [("ask",), ("ask",)])]),
        ("call", [("work",), ("kept", [("work",)])]),
    ],
    which=2,
    again=2,
)
@given(steps=PROGRAMS, which=st.integers(0, 9), again=st.integers(0, 9))
def test_as_if_it_had_been_answered_so_from_the_beginning(loop: str, steps: list[Any], which: int, again: int) -> None:
    assume(_asks(steps) and not _keeps_at_once(steps))
    anyio.run(holds, steps, which, again, backend=loop)
