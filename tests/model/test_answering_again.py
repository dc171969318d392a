"""Laws: an old question that is answered again gives what a run gives that was answered so from the beginning."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

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


class Said(TypedDict, total=False):
    """What a graph was told and says; and all that it ever did, where it keeps its state."""

    said: str
    done: Annotated[list[str], operator.add]


class Told(TypedDict):
    """What the nodes of a graph said, in the order of supersteps and names."""

    said: Annotated[list[str], operator.add]


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
            before = len(state.get("done", ()))
            return {"said": await self.run(steps, place, f"{state['said']} {before}"), "done": [place]}

        builder = StateGraph(Said).add_node("node", node).add_edge(START, "node")
        result = await builder.compile(checkpointer=keeps or None).ainvoke({"said": said})
        return f"{result['said']} {','.join(result['done'])}"

    def layered(self, layers: list[list[Any]], saver: Any) -> Any:
        """Return a graph whose supersteps have one node, or two, for each of these programs."""
        builder, before = StateGraph(Told), [START]
        for depth, layer in enumerate(layers):
            names = [f"n{depth}{number}" for number in range(len(layer))]
            for name, steps in zip(names, layer, strict=True):
                builder.add_node(name, self._node(name, steps))
                builder.add_edge(before if len(before) > 1 else before[0], name)
            before = names
        return builder.compile(checkpointer=saver)

    def _node(self, name: str, steps: list[Any]) -> Any:
        async def node(state: Told) -> Told:
            return {"said": [await self.run(steps, name, str(len("".join(state["said"]))))]}

        return node


class Play:
    """One program on one saver, started anew for every call."""

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps
        self.saver = InMemorySaver()
        self.ids: dict[str, str] = {}
        self.places: dict[str, Any] = {}
        """By question, the checkpoint at which it was put."""

    @property
    def graph(self) -> Any:
        """The program, as another process would make it."""
        return Program(self.steps, self.saver).flow

    async def call(self, given: Any, config: Any) -> Any:
        """Call the program."""
        return await self.graph.ainvoke(given, config)

    async def to_the_end(self, result: Any, config: Any, answers: dict[str, str]) -> Any:
        """Answer whatever is asked, ``A`` if no answer is given, until there is a result."""
        while not isinstance(result, str) and "__interrupt__" in result:
            asked = questions(result)
            place = (await self.graph.aget_state(config)).config
            self.ids |= {question: each for question, each in asked.items() if question not in self.ids}
            self.places |= {question: place for question in asked if question not in self.places}
            reply = {asked[question]: answers.get(question, "A") for question in asked}
            result = await self.call(Command(resume=reply), config)
        return result

    async def stored(self) -> dict[str, Any]:
        """Return all that the thread has stored."""
        return {
            one.checkpoint["id"]: (one.checkpoint["channel_values"], sorted(map(repr, one.pending_writes or ())))
            async for one in self.saver.alist(CONFIG)
        }


class LayeredPlay(Play):
    """A graph whose nodes are programs."""

    @property
    def graph(self) -> Any:
        """The graph, as another process would make it."""
        return Program([], None).layered(self.steps, self.saver)


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


async def holds_in_layers(layers: list[Any], which: int, again: int) -> None:
    """Answer two old questions of a graph again, after its second turn, and let it take another turn."""
    play = LayeredPlay(layers)
    turn_of: dict[str, int] = {}
    for turn in (1, 2):
        await play.to_the_end(await play.call({"said": ["x"]}, CONFIG), CONFIG, {})
        turn_of |= {question: turn for question in play.ids if question not in turn_of}
    known, places = dict(play.ids), dict(play.places)
    before = await play.stored()
    for number, index in enumerate((which, again)):
        question = sorted(known)[index % len(known)]
        anew, result = thread(f"anew {number}"), None
        for _ in range(turn_of[question]):
            result = await play.to_the_end(await play.call({"said": ["x"]}, anew), anew, {question: "Z"})
        found = await play.call(Command(resume={known[question]: "Z"}), places[question])
        assert await play.to_the_end(found, CONFIG, {}) == result
        after = [await play.call({"said": ["x"]}, config) for config in (CONFIG, anew)]
        found, expected = [
            await play.to_the_end(each, config, {}) for each, config in zip(after, (CONFIG, anew), strict=True)
        ]
        assert found == expected
    stored = await play.stored()
    assert {key: stored[key] for key in before} == before


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


SMALL = st.lists(st.recursive(st.sampled_from([("ask",), ("work",)]), _nested, max_leaves=2), min_size=1, max_size=2)
LAYERS = st.lists(st.lists(SMALL, min_size=1, max_size=2), min_size=2, max_size=2)


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@settings(max_examples=12)
@example(layers=[[[("ask",)]], [[("ask",), ("kept", [("work",)])]]], which=0, again=0)
@example(layers=[[[("ask",)], [("call", [("ask",), ("kept", [("ask",)])])]], [[("ask",)]]], which=1, again=2)
@given(layers=LAYERS, which=st.integers(0, 9), again=st.integers(0, 9))
def test_also_where_the_branch_pauses_in_later_supersteps(loop: str, layers: Any, which: int, again: int) -> None:
    steps = [step for layer in layers for program in layer for step in program]
    assume(_asks(steps) and not _keeps_at_once(steps))
    anyio.run(holds_in_layers, layers, which, again, backend=loop)
