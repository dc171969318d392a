"""What subgraphs keep, on branches that pause before they come to them: what was kept after the point is not seen."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, TypedDict

import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.func import task
from runtime.graph import START, StateGraph
from runtime.runtime import RunControl, Runtime
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, history
from tests.stories.nests import questions

pytestmark = pytest.mark.anyio

Opened = Callable[[], AbstractAsyncContextManager[Any]]


class Given(TypedDict, total=False):
    """What the parent knows."""

    x: str
    seen: list[str]


class Keeping(TypedDict, total=False):
    """What a subgraph keeps: all that it was ever given."""

    x: str
    seen: Annotated[list[str], operator.add]


class Shown(TypedDict):
    """What it is given."""

    x: str


def keeping(depth: int = 1) -> Any:
    """Return a graph that keeps its state, maybe below others that do."""

    async def look(state: Keeping) -> Keeping:
        return {"seen": [state["x"]]}

    builder = StateGraph(Keeping, input_schema=Shown).add_node("look", look).add_edge(START, "look")
    graph = builder.compile(checkpointer=True)
    for _ in range(depth - 1):
        graph = (
            StateGraph(Given, input_schema=Shown).add_node("in", graph).add_edge(START, "in").compile(checkpointer=True)
        )
    return graph


class Pausing:
    """A graph that asks who it is about, pauses in the next superstep, and then comes to what is kept."""

    def __init__(self, pause: str, depth: int = 1) -> None:
        self.pause, self.depth = pause, depth
        self.failed = False

    async def ask(self, state: Given) -> Given:
        """Ask who."""
        return {"x": f"{state['x']}{interrupt('who?')}"}

    async def between(self, _state: Given, runtime: Runtime) -> Given:
        """Pause."""
        if self.pause == "question":
            interrupt("go on?")
        if self.pause == "failure" and not self.failed:
            self.failed = True
            raise ConnectionError
        if self.pause == "drain":
            assert runtime.control is not None
            runtime.control.request_drain()
        return {}

    def graph(self, saver: Any) -> Any:
        """Return the graph, as each process makes it."""
        builder = StateGraph(Given).add_node("ask", self.ask).add_node("between", self.between)
        builder.add_node("p", keeping(self.depth)).add_edge(START, "ask").add_edge("ask", "between")
        before = ["p"] if self.pause == "breakpoint" else None
        return builder.add_edge("between", "p").compile(checkpointer=saver, interrupt_before=before)

    async def to_the_end(self, opened: Opened, given: Any, config: Any, **options: Any) -> Any:
        """Run, and go on after each pause as another process would; return the result."""
        for _ in range(9):
            async with opened() as saver:
                graph = self.graph(saver)
                try:
                    await graph.ainvoke(given, config, control=RunControl(), **options)
                except Exception as error:
                    if "drain" not in type(error).__name__.lower() and not isinstance(error, ConnectionError):
                        raise
                state = await graph.aget_state(CONFIG)
            if not state.next:
                return state.values
            asked = state.interrupts
            given, config = Command(resume="!") if asked else None, CONFIG
        raise AssertionError("It never ends.")


@pytest.fixture
def opened() -> Opened:
    """Opens the saver: the one in memory is always the same one."""
    memory = InMemorySaver()

    @asynccontextmanager
    async def opens() -> AsyncIterator[Any]:
        yield memory

    return opens


async def left_by(graph: Any, by: str) -> tuple[Any, Any]:
    """Return what to give and where, to go back to the second turn's question."""
    point = [one for one in await history(graph) if one.next == ("ask",)][-2]
    if by == "an old answer":
        return Command(resume="?"), point.config
    if by == "a replay":
        return None, point.config
    if by == "new input":
        return {"x": "c"}, point.config
    if by == "an edit":
        return None, await graph.aupdate_state(point.config, {"x": "b?"}, as_node="ask")
    assert by == "a copy"
    return None, await graph.aupdate_state(point.config, None, as_node="__copy__")


WAYS = {"an old answer": "b?", "a replay": "b!", "new input": "c!", "an edit": "b?", "a copy": "b!"}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("pause", ["question", "breakpoint", "failure", "drain"])
async def test_a_branch_that_pauses_first(opened: Opened, pause: str, by: str, durability: Any) -> None:
    program = Pausing(pause)
    for x in "abz":
        program.failed = False
        assert await program.to_the_end(opened, {"x": x}, CONFIG, durability=durability)
    for _ in range(2):  # the second branch does not see what the first one did
        program.failed = False
        async with opened() as saver:
            given, config = await left_by(program.graph(saver), by)
        values = await program.to_the_end(opened, given, config, durability=durability)
        assert values["seen"] == ["a!", WAYS[by]]
    values = await program.to_the_end(opened, {"x": "d"}, CONFIG, durability=durability)
    assert values["seen"] == ["a!", WAYS[by], "d!"]


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("by", ["an old answer", "an edit"])
async def test_in_other_processes(database: str, by: str, durability: Any) -> None:
    def opened() -> Any:
        return SqliteSaver.from_conn_string(database)

    await test_a_branch_that_pauses_first(opened, "question", by, durability)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("pause", ["question", "breakpoint"])
async def test_kept_below_kept(opened: Opened, pause: str, depth: int) -> None:
    program = Pausing(pause, depth)
    for x in "abz":
        await program.to_the_end(opened, {"x": x}, CONFIG)
    async with opened() as saver:
        given, config = await left_by(program.graph(saver), "an old answer")
    assert (await program.to_the_end(opened, given, config))["seen"] == ["a!", "b?"]
    assert (await program.to_the_end(opened, {"x": "d"}, CONFIG))["seen"] == ["a!", "b?", "d!"]


async def test_a_branch_of_a_branch_that_never_came_to_it(opened: Opened) -> None:
    program = Pausing("question")
    for x in "ab":
        await program.to_the_end(opened, {"x": x}, CONFIG)
    async with opened() as saver:
        graph = program.graph(saver)
        first = [one for one in await history(graph) if one.next == ("ask",)][-1]
        await graph.ainvoke(Command(resume="?"), first.config)
        paused = (await graph.aget_state(CONFIG)).config
    assert (await program.to_the_end(opened, {"x": "c"}, CONFIG))["seen"] == ["c!"]
    for _ in range(2):
        assert (await program.to_the_end(opened, Command(resume="!"), paused))["seen"] == ["a?"]


@pytest.mark.parametrize("by", ["its own config", "its namespace"])
async def test_it_is_read_and_edited_as_the_branch_sees_it(opened: Opened, by: str) -> None:
    program = Pausing("breakpoint")
    for x in "abz":
        await program.to_the_end(opened, {"x": x}, CONFIG)
    async with opened() as saver:
        graph = program.graph(saver)
        given, config = await left_by(graph, "an old answer")
        await graph.ainvoke(given, config)
        shown = (await graph.aget_state(CONFIG, subgraphs=True)).tasks[0].state
        assert shown.values["seen"] == ["a!"]
        namespace = {"configurable": {"thread_id": "t", "checkpoint_ns": "p"}}
        where = shown.config if by == "its own config" else namespace
        await graph.aupdate_state(where, {"seen": ["edited"]}, as_node="look")
        shown = (await graph.aget_state(CONFIG, subgraphs=True)).tasks[0].state
        assert shown.values["seen"] == ["a!", "edited"]
    assert (await program.to_the_end(opened, None, CONFIG))["seen"] == ["a!", "edited", "b?"]


class Log(TypedDict, total=False):
    """What was seen by the nodes side by side."""

    log: Annotated[list[str], operator.add]


def beside(saver: Any, where: str) -> Any:
    """Return a graph with a question beside, or after, what a subgraph keeps, and a look at that at the end."""
    kept = keeping()

    async def note() -> str:
        return ",".join((await kept.ainvoke({"x": "n"}))["seen"])

    call = task(note, name="note")

    async def asks(_state: Log) -> Log:
        noted = [await call()] if where == "a call" else [await note()] if where == "the node" else []
        return {"log": [*noted, interrupt("who?"), interrupt("sure?")]}

    async def looks(_state: Log) -> Log:
        return {"log": [await note()]}

    builder = StateGraph(Log).add_node("asks", asks).add_edge(START, "asks")
    if where == "a sibling":
        builder.add_node("looks", looks).add_edge(START, "looks")
    return builder.compile(checkpointer=saver)


def noted(result: Any) -> list[str]:
    """Return what the kept graph had seen, turn by turn."""
    return [each for each in result["log"] if set(each) <= {"n", ","}]


@pytest.mark.parametrize("where", ["a sibling", "a call", "the node"])
async def test_what_a_branch_retains_is_kept(opened: Opened, where: str) -> None:
    async def run(given: Any, config: Any = CONFIG) -> Any:
        async with opened() as saver:
            return await beside(saver, where).ainvoke(given, config)

    async def turn() -> Any:
        await run({"log": []})
        async with opened() as saver:
            state = await beside(saver, where).aget_state(CONFIG)
        await run(Command(resume="one"))
        return state, await run(Command(resume="yes"))

    _, first = await turn()
    assert noted(first) == ["n"]
    state, _ = await turn()
    (question,) = state.interrupts
    for again in ("two", "three"):
        assert questions(await run(Command(resume={question.id: again}), state.config))
        result = await run(Command(resume="no!"))
        assert noted(result) == ["n", "n,n"]
        assert again in result["log"]
    _, last = await turn()
    assert noted(last) == ["n", "n,n", "n,n,n"]


class Read(InMemorySaver):
    """Counts what is asked of it."""

    reads = 0

    async def aget_tuple(self, config: Any) -> Any:
        """Count, and read."""
        self.reads += 1
        return await super().aget_tuple(config)

    def alist(self, *given: Any, **options: Any) -> Any:
        """Count, and list."""
        self.reads += 1
        return super().alist(*given, **options)


async def test_what_a_branch_costs() -> None:
    saver = Read()
    kept = Pausing("none").graph(saver)

    async def reads(given: Any, config: Any = CONFIG) -> int:
        before = saver.reads
        await kept.ainvoke(given, config)
        return saver.reads - before

    usual = []
    for x in "abc":
        await reads({"x": x})
        usual.append(await reads(Command(resume="!")))
    assert usual == [2, 2, 2]  # the thread, and what is kept
    point = [one for one in await history(kept) if one.next == ("ask",)][1].config
    assert await reads(Command(resume="?"), point) > 2
    await reads({"x": "d"})
    assert await reads(Command(resume="!")) == 2
