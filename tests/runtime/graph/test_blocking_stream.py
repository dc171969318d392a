"""A blocking stream offers what the async one does, to leave it and to wait for the disk, wherever it is read."""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest
from anyio import to_thread

from persistence import portal
from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from persistence.writer.saver import GroupCommitSaver
from runtime.errors import BlockingCallError, ConfigError
from runtime.graph.blocking_stream import BlockingStream
from runtime.graph.stream import GraphStream
from tests.persistence.writer.faults import FaultyBackend
from tests.stories.graphs import CONFIG, chain, fan


class Working:
    """A node that waits for ever, and tells that it has begun and ended."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()

    async def __call__(self, _state: Any) -> None:
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()


def public(cls: type) -> set[str]:
    return {"close" if name == "aclose" else name for name in vars(cls) if not name.startswith("_")}


def test_it_offers_what_the_async_one_does() -> None:
    assert public(BlockingStream) == public(GraphStream) - {"abandon", "refuse_own"}
    for name in ("durable", "durable_upto", "statistics"):
        offered, there = (inspect.getdoc(vars(cls)[name]) or "" for cls in (BlockingStream, GraphStream))
        assert offered.startswith(there)


def follow(graph: Any) -> None:
    """Read a run as a program does that sends each answer once it is on disk."""
    with graph.stream({"a": 1}, CONFIG, version="v2") as stream:
        assert stream.durable_upto is None
        upto: list[Any] = []
        for part in stream:
            stream.durable()
            upto.append(stream.durable_upto)
            assert part["type"] == "updates"
            assert part["durable_upto"] in {None, *upto} or part["durable_upto"] < upto[-1]
        assert stream.statistics().waiting == 0
    stored = [one.config["configurable"]["checkpoint_id"] for one in graph.get_state_history(CONFIG, limit=2)]
    assert len(upto) == 2
    assert all(told >= needed for told, needed in zip(upto, stored[::-1], strict=True))
    assert stream.durable_upto == stored[0]
    assert list(stream) == []


def test_in_a_script(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "file.sqlite") as saver:
        follow(chain("one", "two").compile(saver))


async def test_in_a_notebook_whose_loop_is_busy_with_the_cell(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "file.sqlite") as saver:
        follow(chain("one", "two").compile(saver))


async def test_in_a_worker_thread_of_the_loop_that_has_the_saver(tmp_path: Path) -> None:
    async with SqliteSaver(tmp_path / "file.sqlite") as saver:
        with anyio.fail_after(10):
            await to_thread.run_sync(follow, chain("one", "two").compile(saver))


async def test_in_a_sync_node(tmp_path: Path) -> None:
    async with SqliteSaver(tmp_path / "file.sqlite") as saver:
        child, upto = chain("inner").compile(), list[Any]()

        def node(_state: Any) -> None:
            with child.stream({"a": 2}) as stream:
                assert next(stream) == {"inner": {"log": ["inner"]}}
                stream.durable()
                upto.append(stream.durable_upto)

        await chain(("outer", node)).compile(saver).ainvoke({}, CONFIG)
        assert upto[0] is not None


def test_an_effect_waits_for_what_led_to_it() -> None:
    backend, effects = FaultyBackend(), list[str]()
    with GroupCommitSaver(backend) as saver, ThreadPoolExecutor(1) as threads:
        graph = chain("one", "two").compile(saver)
        list(graph.stream({"a": 1}, CONFIG))

        async def shut() -> None:
            backend.gate = anyio.Event()

        async def open_again() -> None:
            await anyio.wait_all_tasks_blocked()
            assert effects == []
            assert backend.gate is not None
            backend.gate.set()

        def read() -> None:
            with graph.stream({"a": 1}, CONFIG) as stream:
                for update in stream:
                    begun.set()
                    stream.durable()
                    assert stream.durable_upto in backend.committed
                    effects.extend(update)

        begun = threading.Event()
        portal.call(shut, at=None, thread=None, instead="")
        reading = threads.submit(read)
        assert begun.wait(10)
        portal.call(open_again, at=None, thread=None, instead="")
        reading.result(10)
    assert effects == ["one", "two"]


def test_leaving_a_with_waits_until_the_run_has_ended_and_is_saved() -> None:
    working = Working()
    graph = fan("first", ("node", working), first=None, last=None).compile(InMemorySaver())
    with graph.stream({}, CONFIG) as stream:
        for chunk in stream:
            assert chunk == {"first": {"log": ["first"]}}
            break
        assert working.begun.wait(10)
        assert not working.ended.is_set()
    assert working.ended.is_set()
    assert (graph.get_state(CONFIG).values["log"], graph.get_state(CONFIG).next) == (["first"], ("node",))


def test_an_error_in_the_with_ends_the_run_and_is_raised() -> None:
    working = Working()

    def read() -> NoReturn:
        with fan("first", ("node", working), first=None, last=None).compile().stream({}) as stream:
            next(stream)
            assert working.begun.wait(10)
            raise LookupError

    with pytest.raises(LookupError):
        read()
    assert working.ended.is_set()


def test_a_with_whose_stream_is_never_read_starts_nothing() -> None:
    working = Working()
    with chain(("node", working)).compile().stream({}) as stream:
        pass
    assert list(stream) == []
    assert not working.begun.is_set()


def test_breaking_off_ends_the_run() -> None:
    working = Working()
    for _chunk in fan("first", ("node", working), first=None, last=None).compile().stream({}):
        assert working.begun.wait(10)
        break
    assert working.ended.wait(10)


def test_dropping_it_waits_for_nothing() -> None:
    """Garbage may be collected while a lock is held that a node wants on the event loop that the run lives on."""
    working, lock, wanted = Working(), threading.Lock(), threading.Event()

    async def node(_state: Any) -> dict[str, Any]:
        wanted.set()
        with ExitStack() as stack:
            if lock.acquire(timeout=5):
                stack.callback(lock.release)
                return {"log": ["got it"]}
        return {"log": ["had to wait"]}

    held = [fan("first", ("node", working), first=None, last=None).compile().stream({})]
    next(held[0])
    with ThreadPoolExecutor(1) as threads:
        with lock:
            found = threads.submit(chain(("node", node)).compile().invoke, {})
            assert wanted.wait(10)
            held.clear()
        assert found.result(10) == {"log": ["got it"]}
    assert working.ended.wait(10)


def test_what_was_not_asked_for_has_not_begun() -> None:
    """A program that looks at each chunk before it goes on has the nodes after it to itself."""
    seen: list[str] = []

    def node(_state: Any) -> dict[str, Any]:
        seen.append("node")
        return {"log": ["node"]}

    graph = chain("first", ("node", node), "last").compile(InMemorySaver())
    with graph.stream({}, CONFIG) as stream:
        for chunk in stream:
            seen.extend(chunk)
            if "first" in chunk:
                break
    assert seen == ["first"]
    assert graph.get_state(CONFIG).next == ("node",)
    seen.extend(name for chunk in graph.stream(None, CONFIG) for name in chunk)
    assert seen == ["first", "node", "node", "last"]


def test_its_reader_may_use_the_thread() -> None:
    """An edit, or another run, waits for this run, which then no longer waits to be asked."""
    graph = chain("one", "two").compile(InMemorySaver())
    stream = graph.stream({}, CONFIG)
    next(stream)
    graph.update_state(CONFIG, {"log": ["by hand"]})
    assert graph.get_state(CONFIG).values["log"] == ["one", "two", "by hand"]
    assert graph.invoke({}, CONFIG)["log"][3:] == ["one", "two"]
    assert [*stream] == [{"two": {"log": ["two"]}}]


def test_another_thread_may_close_it_while_one_waits_for_a_chunk() -> None:
    working = Working()
    stream = chain(("node", working)).compile().stream({})
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(list, stream)
        assert working.begun.wait(10)
        stream.close()
        assert reading.result(10) == []
    assert working.ended.is_set()


def test_several_threads_may_read_one() -> None:
    stream = chain(*"abcdef").compile().stream({})
    with stream, ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _number: list(stream), range(3), timeout=10))
    assert sorted(key for chunks in found for chunk in chunks for key in chunk) == list("abcdef")


async def test_a_run_stays_on_its_loop_whoever_asks(tmp_path: Path) -> None:
    """Begun in a sync node, which runs where the run around it does, and read on by a thread that knows of no node."""
    outside = chain("one", "two").compile(InMemorySaver())  # by itself, it would run on the portal
    with ThreadPoolExecutor(1) as threads:

        def node(_state: Any) -> dict[str, Any]:
            with outside.stream({}) as stream:
                first = next(stream)
                rest = threads.submit(list, stream).result(10)
            return {"log": [name for chunk in [first, *rest] for name in chunk]}

        async with SqliteSaver(tmp_path / "file.sqlite") as saver:
            found = await chain(("node", node)).compile(saver).ainvoke({}, CONFIG)
    assert found["log"] == ["one", "two"]


async def test_where_waiting_would_never_end_it_says_so(tmp_path: Path) -> None:
    async with SqliteSaver(tmp_path / "file.sqlite") as saver:
        graph = chain("node").compile(saver)
        with pytest.raises(BlockingCallError, match=r"Await astream\(\)"), graph.stream({}, CONFIG) as stream:
            next(stream)
        assert list(stream) == []
        with pytest.raises(BlockingCallError, match=r"Await astream\(\)"):
            graph.stream({}, CONFIG).durable()


def test_what_is_not_kept_cannot_be_waited_for() -> None:
    with chain("one").compile().stream({}) as stream:
        stream.durable()  # nothing was read yet
        next(stream)
        with pytest.raises(ConfigError, match="compile the graph with a checkpointer"):
            stream.durable()
    assert stream.durable_upto is None


def refused(calls: dict[str, Any]) -> list[str]:
    """Return which calls are refused, because the run would wait for the node that makes them."""
    found = []
    for name, call in calls.items():
        with pytest.raises(BlockingCallError, match="would wait for the node, and the node for the run"):
            call()
        found.append(name)
    return found


ALL = ["next", "close", "durable"]


@pytest.mark.parametrize("how", ["in a node", "in a subgraph", "in a graph on its own thread", "in a thread of it"])
def test_a_node_is_refused_the_stream_of_its_own_run(how: str) -> None:
    kept: list[Any] = []

    def node(_state: Any) -> dict[str, Any]:
        stream = kept[0]
        found = refused({"next": lambda: next(stream), "close": stream.close, "durable": stream.durable})
        assert stream.statistics().waiting == 0  # what waits for nothing is not refused
        assert stream.durable_upto is None
        return {"log": found}

    async def starts_a_thread(state: Any) -> Any:
        return await to_thread.run_sync(node, state)

    inner = chain(("inner", node)).compile()
    outer = {
        "in a node": node,
        "in a subgraph": inner,
        "in a graph on its own thread": lambda state: inner.invoke(state, {"configurable": {"thread_id": "own"}}),
        "in a thread of it": starts_a_thread,
    }[how]
    graph = chain(("outer", outer)).compile()
    kept.append(graph.stream({}))
    assert list(kept[0]) == [{"outer": {"log": ALL}}]


def test_a_node_may_leave_the_stream_of_another_run() -> None:
    other = chain("one", "two").compile().stream({})
    next(other)

    def node(_state: Any) -> dict[str, Any]:
        found = [*next(other)]
        other.close()
        return {"log": found}

    assert list(chain(("node", node)).compile().stream({})) == [{"node": {"log": ["two"]}}]


def test_what_a_node_left_behind_may_close_its_stream() -> None:
    """Nobody waits for it, so it may wait for the run."""
    kept: list[Any] = []
    working, left = Working(), threading.Event()

    def node(_state: Any) -> None:
        context = copy_context()
        kept.append(threads.submit(lambda: left.wait(10) and context.run(stream.close)))

    with ThreadPoolExecutor(1) as threads:
        stream = chain(("node", node), ("working", working)).compile().stream({})
        assert next(stream) == {"node": None}
        with ThreadPoolExecutor(1) as reader:
            reading = reader.submit(list, stream)
            assert working.begun.wait(10)
            left.set()
            kept[0].result(10)
            assert reading.result(10) == []
    assert working.ended.is_set()
