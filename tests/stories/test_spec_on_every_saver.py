"""What nodes, routers and readers see is the same whichever saver keeps it, in whichever mode, or none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from persistence.memory import InMemoryCache, InMemoryStore
from runtime.errors import NodeError
from runtime.func import entrypoint, task
from runtime.graph import END, START, StateGraph
from runtime.managed import RemainingSteps
from runtime.runtime import Runtime
from runtime.store import BaseStore
from runtime.types import CachePolicy, Command, Durability, RetryPolicy, Send, StreamWriter
from tests.stories.graphs import CONFIG, Log, chain, collect, fan, note
from tests.stories.nests import Runs

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(initial_interval=0, jitter=False)


def routes(saver: Any) -> Any:
    """Conditional edges that see their own node's writes, sends to one node, one run of what follows them."""

    def fan_out(state: Log) -> list[Any]:
        return [Send("work", {"a": number}) for number in range(state["a"])] + ["side"]

    async def work(state: Log) -> dict[str, Any]:
        return {"log": [f"work {state['a']}"]}

    builder = chain(("first", lambda _: {"a": 3, "log": ["first"]}))
    builder.add_node("work", work).add_node("side", note("side")).add_node("after", note("after"))
    builder.add_conditional_edges("first", fan_out).add_edge("work", "after")
    return builder.compile(saver)


def commands(saver: Any) -> Any:
    """Gotos beside static edges, and lists of updates."""

    async def first(_state: Log) -> Command[Any]:
        return Command(update={"log": ["first"], "a": 1}, goto=["extra", Send("extra", {"log": ["sent"]})])

    async def several(_state: Log) -> list[Any]:
        return [Command(update={"log": ["x"]}), {"log": ["y"]}]

    builder = chain(("first", first), ("several", several)).add_node("extra", note("extra"))
    return builder.compile(saver)


def joins(saver: Any) -> Any:
    """Branches of different lengths, a join, a deferred node, a loop with a limit in sight."""

    class Counting(Log):
        left: RemainingSteps

    async def loop(state: Counting) -> Command[Any]:
        again = state["left"] > 40 and len(state["log"]) < 9
        return Command(update={"log": [f"loop {state['left'] > 0}"]}, goto="loop" if again else END)

    builder = fan("x", "y", schema=Counting)
    builder.add_node("longer", note("longer")).add_node("late", note("late"), defer=True).add_node("loop", loop)
    builder.add_edge("y", "longer").add_edge(["longer", "x"], "loop").add_edge("x", "late")
    return builder.compile(saver)


def failures(saver: Any) -> Any:
    """Retries, an error handler, a cached node."""

    async def bad(_state: Log) -> None:
        raise ValueError("boom")

    async def handler(_state: Log, error: NodeError) -> Command[Any]:
        return Command(update={"log": [f"{error.node}: {error.error}"]}, goto="cached")

    builder = StateGraph(Log).add_node(*Runs().failer("flaky", 2), retry_policy=QUICK)
    builder.add_node("bad", bad, error_handler=handler)
    builder.add_node("cached", note("cached"), cache_policy=CachePolicy(key_func=lambda _: "same"))
    builder.add_edge(START, "flaky").add_edge("flaky", "bad").add_edge("cached", "last")
    return builder.add_node("last", note("last")).compile(saver, cache=InMemoryCache())


def reach(saver: Any) -> Any:
    """Context, store, writer, in sync and async nodes."""

    async def keep(state: Log, runtime: Runtime[Any], writer: StreamWriter) -> dict[str, Any]:
        writer({"progress": 1})
        await runtime.store.aput(("notes",), "k", {"value": state["a"]})
        return {"log": [str(runtime.context)]}

    def recall(_state: Log, *, store: BaseStore, runtime: Runtime[Any]) -> dict[str, Any]:
        runtime.stream_writer("from a thread")
        found = store.get(("notes",), "k")
        return {"log": [str(found and found.value)]}

    return chain(("keep", keep), ("recall", recall)).compile(saver, store=InMemoryStore())


def below(saver: Any) -> Any:
    """Subgraphs as nodes and called, two levels, a command to the parent."""

    async def up(_state: Log) -> Command[Any]:
        return Command(graph=Command.PARENT, update={"log": ["up"]}, goto="other")

    inner = chain("s1", ("s2", chain("deep").compile())).compile()
    leaving = chain(("up", up)).compile()

    async def call(state: Log) -> dict[str, Any]:
        found = await inner.ainvoke({"log": [], "a": state["a"]})
        return {"log": ["called", *found["log"]]}

    builder = chain(("node", inner), ("call", call), ("leaving", leaving), "after")
    return builder.add_node("other", note("other")).compile(saver)


def workflow(saver: Any) -> Any:
    """Tasks in an entrypoint, with retries, side by side, around a graph."""
    attempts = Runs()

    @task(retry_policy=QUICK)
    async def flaky(number: int) -> int:
        attempts[str(number)] += 1
        if attempts[str(number)] < 2:
            raise ConnectionError
        return number * 10

    @task
    def in_a_thread(number: int) -> int:
        return number + 1

    graph = chain("s").compile()

    @entrypoint(checkpointer=saver)
    async def main(given: dict[str, Any], writer: StreamWriter) -> dict[str, Any]:
        writer("begun")
        first, second = flaky(given["a"]), in_a_thread(given["a"])
        found = await graph.ainvoke({"log": [str(await first)]})
        return {"log": [*found["log"], str(await second)]}

    return main


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    made.__name__: made for made in (routes, commands, joins, failures, reach, below, workflow)
}
MODES = ["values", "updates", "custom", "tasks"]


def plain(told: Any) -> str:
    """Return what was told as text, without the ids that differ from run to run."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>", repr(told))


async def seen(make: Callable[[Any], Any], saver: Any, durability: Durability | None = None) -> tuple[Any, ...]:
    """Return the output and, of another run, what each mode tells, in its order."""
    options: dict[str, Any] = {"context": "here", "durability": durability}
    given = {"a": 2, "log": ["in"]}
    output = await make(saver).ainvoke(given, {"configurable": {"thread_id": "output"}}, **options)
    chunks = await collect(make(saver).astream(given, CONFIG, stream_mode=MODES, subgraphs=True, **options))
    return output, *(sorted(plain(chunk) for chunk in chunks if chunk[1] == mode) for mode in MODES)


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_saver_changes_nothing(saver: Any, program: str, durability: Durability) -> None:
    expected = await seen(PROGRAMS[program], None)
    assert expected[0]["log"] != ["in"]
    assert await seen(PROGRAMS[program], saver, durability) == expected


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "workflow"])
async def test_what_is_stored_is_what_was_returned(saver: Any, program: str) -> None:
    graph = PROGRAMS[program](saver)
    output = await graph.ainvoke({"a": 2, "log": ["in"]}, CONFIG, context="here")
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.values, snapshot.next) == (output, ())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_blocking_door_sees_the_same(blocking_saver: Any, program: str) -> None:
    graph, given = PROGRAMS[program](blocking_saver), {"a": 2, "log": ["in"]}
    values = list(graph.stream(given, CONFIG, stream_mode="values", context="here"))
    output = PROGRAMS[program](blocking_saver).invoke(given, {"configurable": {"thread_id": "2"}}, context="here")
    assert values[-1] == output
