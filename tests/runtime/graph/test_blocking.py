"""The blocking door: it works wherever waiting can end, and says so at once where it cannot."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from persistence import portal
from persistence.blocking import BlockingSaver
from persistence.errors import SaverLoopError
from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.errors import BlockingCallError, ConfigError
from runtime.graph import CompiledStateGraph
from runtime.types import StateSnapshot, StateUpdate
from tests.stories.graphs import CONFIG, chain, fan, thread

ROOT = Path(__file__).parents[3]

GRAPH_CALLS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda graph: graph.invoke({"a": 1}, CONFIG),
    "batch": lambda graph: graph.batch([{"a": 1}], CONFIG),
    "stream": lambda graph: list(graph.stream({"a": 1}, CONFIG)),
    "get_state": lambda graph: graph.get_state(CONFIG),
    "get_state_history": lambda graph: list(graph.get_state_history(CONFIG)),
    "update_state": lambda graph: graph.update_state(CONFIG, {"a": 2}, "node"),
    "bulk_update_state": lambda graph: graph.bulk_update_state(CONFIG, [[StateUpdate({"a": 3}, "node")]]),
    "clear_cache": lambda graph: graph.clear_cache(),
}

SAVER_CALLS: dict[str, Callable[[Any], Any]] = {
    "setup": lambda saver: saver.setup(),
    "get_tuple": lambda saver: saver.get_tuple(CONFIG),
    "get": lambda saver: saver.get(CONFIG),
    "list": lambda saver: list(saver.list(CONFIG)),
    "put": lambda saver: saver.put(thread("p"), checkpoint(), {}, {}),
    "put_writes": lambda saver: saver.put_writes(
        {"configurable": {"thread_id": "p", "checkpoint_ns": "", "checkpoint_id": "c"}}, [("k", 1)], "task"
    ),
    "copy_thread": lambda saver: saver.copy_thread("t", "u"),
    "prune": lambda saver: saver.prune(["u"]),
    "delete_for_runs": lambda saver: saver.delete_for_runs(["no such run"]),
    "delete_thread": lambda saver: saver.delete_thread("u"),
}


def checkpoint() -> Any:
    return {
        "v": 4,
        "id": "1f05e7a0-0000-6000-8000-000000000001",
        "ts": "now",
        "channel_values": {},
        "channel_versions": {},
        "versions_seen": {},
        "updated_channels": None,
    }


def graph_on(saver: Any) -> Any:
    return chain("node").compile(saver)


def doors(cls: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


def test_every_door_is_tried_here() -> None:
    methods = doors(CompiledStateGraph)
    assert {name for name in methods if f"a{name}" in methods} - {"get_graph", "get_subgraphs"} == set(GRAPH_CALLS)
    assert doors(BlockingSaver) == set(SAVER_CALLS)


@pytest.mark.parametrize("name", GRAPH_CALLS)
def test_a_door_has_the_arguments_and_the_documentation_of_the_room(name: str) -> None:
    door, room = getattr(CompiledStateGraph, name), getattr(CompiledStateGraph, f"a{name}")
    assert inspect.signature(door).parameters == inspect.signature(room).parameters
    assert not inspect.iscoroutinefunction(door)
    assert (door.__name__, door.__qualname__) == (name, room.__qualname__.replace(f"a{name}", name))
    documented, text = inspect.getdoc(room) or "", inspect.getdoc(door) or ""
    assert f"Blocks; see ``a{name}``." in text
    assert "Raises:" in text
    assert text.endswith(documented[documented.index("Raises:") :])
    assert "async" not in text.partition("Args:")[0]


def test_help_shows_what_a_door_takes_and_returns() -> None:
    shown = pydoc.plain(pydoc.render_doc(CompiledStateGraph))
    for line in (
        "  invoke(self, input: 'Any', config: 'Mapping[str, Any] | None' = None, *, context:",
        "durability: 'Durability | None' = None",
        "  get_state_history(self, config: 'Mapping[str, Any]', *, filter:",
        "limit: 'int | None' = None) -> 'Iterator[StateSnapshot]'",
    ):
        assert line in shown


def test_what_a_door_does_not_know_is_refused() -> None:
    """Also by the type checker, which would complain of a needless ``ignore`` here."""
    graph: CompiledStateGraph[Any, Any, Any, Any] = chain("node").compile(InMemorySaver())
    with pytest.raises(TypeError, match="durabilty"):
        graph.invoke({}, CONFIG, durabilty="sync")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="durabilty"):
        list(graph.stream({}, CONFIG, durabilty="sync"))  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="durability must be one of"):
        graph.invoke({}, CONFIG, durability="never")  # type: ignore[arg-type]
    taken: StateSnapshot = graph.get_state(CONFIG, subgraphs=True)
    assert taken.created_at is None
    assert graph.invoke({}, CONFIG, durability="sync") == {"log": ["node"]}
    history: Iterator[StateSnapshot] = graph.get_state_history(CONFIG, limit=1)
    assert [taken.next for taken in history] == [()]


# ---- where it works --------------------------------------------------------------------------------------------------


def use(graph: Any, saver: Any) -> None:
    """Use every door, and look at what came of it."""
    with pytest.raises(ValueError, match="No cache"):
        GRAPH_CALLS["clear_cache"](graph)
    for name, call in GRAPH_CALLS.items():
        if name != "clear_cache":
            assert call(graph)
    assert graph.get_state(CONFIG).values["a"] == 3
    for call in SAVER_CALLS.values():
        call(saver)
    assert saver.get(thread("p"))["id"] == checkpoint()["id"]
    assert saver.get_tuple(thread("u")) is None


def test_it_works_in_a_plain_program(tmp_path: Path) -> None:
    use(graph_on(saver := InMemorySaver()), saver)
    with SqliteSaver(str(tmp_path / "file.sqlite")) as opened:
        use(graph_on(opened), opened)


def test_it_works_without_a_saver() -> None:
    graph = chain("node").compile()
    assert graph.invoke({"a": 1}) == {"a": 1, "log": ["node"]}
    assert list(graph.stream({"a": 1})) == [{"node": {"log": ["node"]}}]


async def test_it_works_beside_a_loop_that_runs_if_the_saver_needs_none() -> None:
    """As in a notebook: the cell's loop waits meanwhile."""
    use(graph_on(saver := InMemorySaver()), saver)
    assert chain("node").compile().invoke({"a": 1})["log"] == ["node"]


async def test_it_works_beside_a_loop_with_a_saver_that_the_portal_has_opened(tmp_path: Path) -> None:
    with SqliteSaver(str(tmp_path / "file.sqlite")) as opened:
        use(graph_on(opened), opened)


async def test_it_works_in_a_worker_thread_of_the_loop_that_has_the_saver(tmp_path: Path) -> None:
    async with SqliteSaver(str(tmp_path / "file.sqlite")) as saver:
        graph = graph_on(saver)
        with anyio.fail_after(10):
            await to_thread.run_sync(use, graph, saver)
        assert (await graph.aget_state(CONFIG)).values["a"] == 3


async def test_it_works_in_any_other_thread(tmp_path: Path) -> None:
    async with SqliteSaver(str(tmp_path / "file.sqlite")) as saver:
        graph, got = graph_on(saver), list[Any]()
        worker = threading.Thread(target=lambda: got.append(graph.invoke({"a": 1}, CONFIG)))
        worker.start()
        with anyio.fail_after(10):
            while worker.is_alive():
                await anyio.sleep(0.001)
        assert got == [{"a": 1, "log": ["node"]}]


def test_a_closed_saver_is_told_as_such(tmp_path: Path) -> None:
    saver = SqliteSaver(str(tmp_path / "file.sqlite"))
    with pytest.raises(Exception, match="is not open"):
        graph_on(saver).invoke({"a": 1}, CONFIG)


# ---- where it cannot -------------------------------------------------------------------------------------------------


async def test_where_waiting_would_never_end_every_door_says_so_at_once(tmp_path: Path) -> None:
    async with SqliteSaver(str(tmp_path / "file.sqlite")) as saver:
        graph = graph_on(saver)
        for name, call in GRAPH_CALLS.items():
            with pytest.raises(BlockingCallError, match=rf"would deadlock.*Await a{name}\(\)"):
                call(graph)
        for name, call in SAVER_CALLS.items():
            with pytest.raises(SaverLoopError, match=r"would deadlock.*Await a\w+\(\)") as caught:
                call(saver)
            assert f"a{'get_tuple' if name == 'get' else name}()" in str(caught.value)
        assert await graph.ainvoke({"a": 1}, CONFIG) == {"a": 1, "log": ["node"]}


def test_an_async_node_on_the_portal_cannot_wait_for_the_portal() -> None:
    inner = chain("inner").compile()

    async def node(_state: Any) -> Any:
        return inner.invoke({"a": 1})

    with pytest.raises(BlockingCallError, match=r"Await ainvoke\(\)"):
        chain(("node", node)).compile().invoke({"a": 1})


def test_a_sync_node_can() -> None:
    inner = chain("inner").compile()
    assert chain(("node", lambda _state: {"a": len(inner.invoke({})["log"])})).compile().invoke({})["a"] == 1


# ---- streams ---------------------------------------------------------------------------------------------------------


def test_leaving_a_blocking_stream_ends_its_run() -> None:
    ended = threading.Event()

    async def node(_state: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    stream = fan("first", ("node", node), first=None, last=None).compile().stream({})
    assert next(stream) == {"first": {"log": ["first"]}}
    assert isinstance(stream, Iterator)
    stream.close()
    assert ended.is_set()
    assert list(stream) == []


def test_a_blocking_stream_raises_what_its_run_raises() -> None:
    def fail(_state: Any) -> None:
        raise ValueError("boom")

    stream = chain("first", ("fail", fail)).compile().stream({})
    next(stream)
    with pytest.raises(ValueError, match="boom"):
        next(stream)


def test_a_blocking_stream_that_was_never_begun_is_closed_quietly() -> None:
    chain("first").compile().stream({}).close()


# ---- context and interrupts ------------------------------------------------------------------------------------------

VARIABLE: ContextVar[str] = ContextVar("variable", default="none")


def test_nodes_see_the_callers_context() -> None:
    seen: list[str] = []
    graph = chain(("node", lambda _state: seen.append(VARIABLE.get()))).compile()
    token = VARIABLE.set("caller's")
    try:
        graph.invoke({})
        list(graph.stream({}))
    finally:
        VARIABLE.reset(token)
    assert seen == ["caller's", "caller's"]


UNREAD = """
    import anyio
    from persistence.memory import InMemorySaver
    from tests.stories.graphs import CONFIG, chain

    graph = chain("first", ("wait", lambda state: None), "last").compile(InMemorySaver())
    stream = graph.stream({}, CONFIG)
    print(next(stream))
    history = graph.get_state_history(CONFIG)
    print(next(history).next)
"""


@pytest.mark.slow
def test_an_iterator_that_is_not_read_to_its_end_does_not_disturb_the_end_of_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(UNREAD)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=15,
        check=True,
    )
    assert done.stdout.startswith("{'first': {'log': ['first']}}\n")
    assert done.stderr == ""


def test_an_iterator_that_is_dropped_in_the_event_loops_own_thread_ends_its_run() -> None:
    """As when garbage is collected there: nothing can be waited for, and nothing complains."""
    ended = threading.Event()

    async def node(_state: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    held = [fan("first", ("node", node), first=None, last=None).compile().stream({})]
    next(held[0])

    async def drop() -> None:
        held.clear()

    portal.call(drop, at=None, thread=None, instead="await it")
    assert ended.wait(10)


def test_a_node_that_exits_ends_the_call_and_not_the_next_one() -> None:
    def leave(_state: Any) -> None:
        sys.exit(3)

    with pytest.raises(SystemExit):
        chain(("leave", leave)).compile().invoke({})
    assert chain("a").compile().invoke({}) == {"log": ["a"]}


@pytest.mark.slow
def test_a_program_that_used_the_door_ends_by_itself() -> None:
    program = "from tests.stories.graphs import chain; print(chain('a').compile().invoke({}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=15, check=True
    )
    assert done.stdout == "{'log': ['a']}\n"
    assert done.stderr == ""


def test_calls_from_many_threads_at_once_all_come_back() -> None:
    graph = chain("node").compile(InMemorySaver())
    got: list[Any] = []
    workers = [
        threading.Thread(target=lambda number=number: got.append(graph.invoke({"a": number}, thread(str(number)))["a"]))
        for number in range(20)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(10)
    assert sorted(got) == list(range(20))


def test_a_loop_of_the_programs_own_may_use_the_same_graph() -> None:
    graph = chain("node").compile(InMemorySaver())
    assert graph.invoke({"a": 1}, CONFIG)["log"] == ["node"]
    assert asyncio.run(graph.ainvoke({}, CONFIG))["log"] == ["node"] * 2
    assert anyio.run(graph.ainvoke, {}, CONFIG, backend="trio")["log"] == ["node"] * 3
    assert graph.get_state(CONFIG).values["log"] == ["node"] * 3
