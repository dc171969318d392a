"""The engine and the conductor against the reference: same values, same checkpoints, same errors."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import anyio
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from runtime.channels import EphemeralValue, Topic
from runtime.errors import GraphRecursionError, InvalidUpdateError
from runtime.graph import END, START, StateGraph
from runtime.types import Overwrite, Send
from tests.runtime.engine.reference import (
    LIMIT,
    Conflict,
    Fresh,
    LimitReached,
    Node,
    Reference,
    Sketch,
    Values,
    behave,
    fold_total,
    route,
)

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}, "recursion_limit": LIMIT}


def concatenate(left: list[str], right: list[str]) -> list[str]:
    return left + right


class State(TypedDict, total=False):
    log: Annotated[list[str], concatenate]
    total: Annotated[int, fold_total]
    last: str
    flash: Annotated[str, EphemeralValue(str, guard=False)]
    topic: Annotated[list[str], Topic(str)]


# ---- random graphs ---------------------------------------------------------------------------------------------------

KEYS = ("flash", "last", "log", "topic", "total")


@st.composite
def sketches(draw: st.DrawFn, *, ends: bool = False) -> Sketch:
    """Return any graph; one that ``ends`` leads forward only, and its nodes get on with each other."""
    names = draw(st.permutations(["a", "b", "c", "d", "e"]))[: draw(st.integers(1, 5))]

    def after(place: int) -> Any:
        """Return where nodes at this place may lead."""
        return st.sampled_from(names[place:]) if ends else st.sampled_from(names)

    def ways(place: int, most: int) -> Any:
        if ends and place >= len(names):
            return st.just([])
        sends = st.tuples(after(place), st.integers(0, 3))
        return st.lists(after(place) | sends, max_size=most)

    nodes = tuple(
        Node(
            name,
            draw(st.frozensets(st.sampled_from([key for key in KEYS if not ends or key != "last"]))),
            draw(st.booleans()) and not ends,
            tuple(draw(st.lists(after(place), max_size=2, unique=True))) if not ends or place < len(names) else (),
            tuple(draw(ways(place, 2))),
            draw(st.sampled_from([False, False, True])),
        )
        for place, name in enumerate(names, 1)
    )
    start = Node(
        START,
        edges=tuple(draw(st.lists(after(0), min_size=1, max_size=3, unique=True))),
        routes=tuple(draw(ways(0, 1))),
    )
    joins = []
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(1, len(names)))
        sources = st.sampled_from(names[:place]) if ends else st.sampled_from(names)
        if not ends or place < len(names):
            made = (tuple(draw(st.lists(sources, min_size=1, max_size=3, unique=True))), draw(after(place)))
            if made not in joins:
                joins.append(made)
    return Sketch(nodes, start, tuple(joins))


inputs = st.fixed_dictionaries({}, optional={"log": st.just(["in"]), "total": st.integers(0, 9), "last": st.just("in")})
places = st.none() | st.integers(0, 30)
actions = st.one_of(
    st.tuples(st.just("input"), inputs, st.none()),
    st.tuples(st.just("input"), inputs, places),
    st.tuples(st.just("resume")),
    st.tuples(st.just("replay"), st.integers(0, 30)),
    st.tuples(st.just("update"), places, st.integers(0, 4), inputs),
)


def build(sketch: Sketch, waits: Any, before: Any = None) -> StateGraph[Any, Any, Any, Any]:
    """Describe the sketched graph; nodes finish in an order that ``waits`` decides.

    ``before`` is called with each node and its input, and may make it fail or pause.
    """
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)

    def function(node: Node) -> Any:
        async def run(given: Any) -> dict[str, Any]:
            written = behave(node, given)
            for _ in range(waits()):
                await anyio.sleep(0)
            if before is not None:
                before(node, given)
            return {
                key: Overwrite(value.items) if isinstance(value, Fresh) else value for key, value in written.items()
            }

        return run

    def router(node: Node) -> Any:
        async def way(state: Any) -> list[Any]:
            answers = route(node, len(state["log"]))
            return [answer if isinstance(answer, str) else Send(*answer) for answer in answers]

        return way

    for node in sketch.nodes:
        builder.add_node(node.name, function(node), defer=node.defer)
    for node in (sketch.start, *sketch.nodes):
        for target in node.edges:
            builder.add_edge(node.name, target)
        if node.routes:
            builder.add_conditional_edges(node.name, router(node))
    for sources, target in sketch.joins:
        builder.add_edge(list(sources), target)
    builder.add_edge(sketch.nodes[0].name, END)
    return builder


# ---- the two beside each other ---------------------------------------------------------------------------------------

ERRORS = {LimitReached: GraphRecursionError, Conflict: InvalidUpdateError}


class Pair:
    """A thread, and what it should be."""

    def __init__(self, sketch: Sketch, waits: Any) -> None:
        self.reference = Reference(sketch)
        self.graph = build(sketch, waits).compile(InMemorySaver())
        self.plain = build(sketch, waits).compile()

    async def do(self, action: tuple[Any, ...]) -> None:
        """Do one thing on both sides, and compare what came of it."""
        kind, *rest = action
        points = self.reference.points
        if kind in ("resume", "replay") and not points:
            return
        await getattr(self, kind)(*rest)
        await self.compare()

    async def _both(self, expected: Any, actual: Any) -> None:
        try:
            wanted = expected()
        except tuple(ERRORS) as error:
            with pytest.raises(ERRORS[type(error)]):
                await actual
        except BaseException:  # the reference was not to be compared
            actual.close()
            raise
        else:
            got = await actual
            assert wanted is None or got == wanted

    async def input(self, values: Values, at: int | None) -> None:
        place = self._place(at)
        await self._both(lambda: self.reference.input(values, place), self.graph.ainvoke(values, await self._at(place)))

    async def resume(self) -> None:
        await self._both(self.reference.resume, self.graph.ainvoke(None, CONFIG))

    async def replay(self, at: int) -> None:
        place = self._place(at)
        assert place is not None
        await self._both(lambda: self.reference.replay(place), self.graph.ainvoke(None, await self._at(place)))

    async def update(self, at: int | None, node: int, values: Values) -> None:
        place = self._place(at)
        nodes = self.reference.sketch.nodes
        name = nodes[node % len(nodes)].name
        updating = self.graph.aupdate_state(await self._at(place), values, name)
        await self._both(lambda: self.reference.update(place, name, values), updating)

    def _place(self, at: int | None) -> int | None:
        count = len(self.reference.points)
        return None if at is None or not count else at % count

    async def _at(self, place: int | None) -> Any:
        if place is None:
            return CONFIG
        return {**(await self._history())[place].config, "recursion_limit": LIMIT}

    async def _history(self) -> list[Any]:
        return [one async for one in self.graph.aget_state_history(CONFIG)][::-1]

    async def compare(self) -> None:
        """Every checkpoint, as it is read back."""
        found = await self._history()
        ids = [one.config["configurable"]["checkpoint_id"] for one in found]
        assert [
            (
                one.metadata["source"],
                one.metadata["step"],
                None if one.parent_config is None else ids.index(one.parent_config["configurable"]["checkpoint_id"]),
                one.next,
                one.values,
            )
            for one in found
        ] == [(one.source, one.step, one.parent, one.next, one.values) for one in self.reference.points]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(sketches(), st.lists(actions, min_size=1, max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_a_thread_goes_as_the_reference_says(backend: str, sketch: Sketch, todo: list[Any], random: Any) -> None:
    pair = Pair(sketch, lambda: random.randint(0, 3))

    async def play() -> None:
        for action in [("input", {"log": ["in"]}, None), *todo]:
            note(f"{action}")
            await pair.do(action)

    anyio.run(play, backend=backend)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(sketches(), inputs, st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_a_graph_without_a_saver_goes_the_same_way(backend: str, sketch: Sketch, values: Values, random: Any) -> None:
    pair = Pair(sketch, lambda: random.randint(0, 3))
    config = {"recursion_limit": LIMIT}
    anyio.run(
        lambda: pair._both(lambda: pair.reference.input(values), pair.plain.ainvoke(values, config)), backend=backend
    )
