"""How far a streamed run is on disk: each part says so, and an effect can wait for what led to it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from persistence.errors import BackendError
from persistence.memory import InMemorySaver
from persistence.writer.saver import GroupCommitSaver
from runtime.config import get_stream_writer
from runtime.errors import ConfigError, StreamOverflowError, ThreadConflictError
from runtime.streaming.hub import PATIENCE
from runtime.types import Command, interrupt
from tests.persistence.writer.faults import FaultyBackend
from tests.stories.graphs import CONFIG, Log, chain, collect, thread

MODES = ["exit", "async", "sync"]


async def history(graph: Any) -> list[str]:
    """Return the ids of a thread's checkpoints, oldest first."""
    found = [one.config["configurable"]["checkpoint_id"] async for one in graph.aget_state_history(CONFIG)]
    return found[::-1]


async def test_parts_say_how_far_the_run_is_on_disk(saver: Any) -> None:
    """In ``sync`` a state that is told is there already, and an update waits for the checkpoint that follows it."""
    graph = chain("one", "two").compile(saver)
    options: dict[str, Any] = {"stream_mode": ["values", "updates"], "durability": "sync", "version": "v2"}
    upto = []
    async with graph.astream({"a": 1}, CONFIG, **options) as stream:
        assert stream.durable_upto is None
        async for part in stream:
            upto.append((part["type"], part["durable_upto"]))
            assert part["durable_upto"] == stream.durable_upto
        assert stream.durable_upto == (await history(graph))[-1]
    given, first, second = (await history(graph))[1:]
    shown = [of for mode, of in upto if mode == "values"]
    assert all(told >= made for told, made in zip(shown, (given, first, second), strict=True))
    assert all(of in (given, first, second) for _, of in upto)


@pytest.mark.parametrize("mode", ["checkpoints", "debug"])
async def test_in_sync_a_checkpoint_is_told_once_it_is_on_disk(mode: Any) -> None:
    """That of the input, too, which otherwise travels with what follows it."""
    backend = FaultyBackend()
    async with GroupCommitSaver(backend) as saver:
        graph, told = chain("one", "two").compile(saver), list[str]()
        async for chunk in graph.astream({"a": 1}, CONFIG, durability="sync", stream_mode=mode):
            if mode == "checkpoints" or chunk["type"] == "checkpoint":
                payload = chunk if mode == "checkpoints" else chunk["payload"]
                told.append(payload["config"]["configurable"]["checkpoint_id"])
                assert told[-1] in backend.committed
        assert told == await history(graph)


async def test_so_it_is_to_both_who_read_a_graph_that_is_streamed_in_a_node() -> None:
    backend = FaultyBackend()
    inner, told = chain("inner").compile(checkpointer=True), []

    async def node(state: Any) -> dict[str, Any]:
        async for chunk in inner.astream(state, stream_mode="checkpoints"):
            told.append(chunk["config"]["configurable"]["checkpoint_id"])
            assert told[-1] in backend.committed
        return {}

    async with GroupCommitSaver(backend) as saver:
        graph = chain(("node", node)).compile(saver)
        options: dict[str, Any] = {"stream_mode": "checkpoints", "subgraphs": True, "durability": "sync"}
        seen = [
            chunk["config"]["configurable"]["checkpoint_id"] async for _, chunk in graph.astream({}, CONFIG, **options)
        ]
    assert len(told) == 3
    assert set(told) < set(seen)


async def test_a_graph_that_keeps_nothing_has_nothing_on_disk() -> None:
    async with chain("one").compile().astream({}, version="v2") as stream:
        await stream.durable()  # nothing was read yet
        assert [part["durable_upto"] async for part in stream] == [None]
        with pytest.raises(ConfigError, match="compile the graph with a checkpointer"):
            await stream.durable()


@pytest.mark.parametrize("durability", ["async", "sync"])
async def test_an_effect_waits_for_what_led_to_it(durability: Any) -> None:
    backend, effects = FaultyBackend(), list[str]()
    async with GroupCommitSaver(backend) as saver:
        graph = chain("one", "two").compile(saver)

        async def follow() -> None:
            async with graph.astream({"a": 1}, CONFIG, durability=durability) as stream:
                async for update in stream:
                    await stream.durable()
                    assert stream.durable_upto in backend.committed
                    effects.extend(update)

        with anyio.fail_after(10):
            backend.gate = anyio.Event()
            async with anyio.create_task_group() as group:
                group.start_soon(follow)
                await anyio.wait_all_tasks_blocked()
                assert effects == []
                backend.gate.set()
    assert effects == ["one", "two"]


async def test_exit_saves_at_the_end_so_the_wait_ends_there(saver: Any) -> None:
    graph = chain("one", "two", "three").compile(saver)
    with anyio.fail_after(10):
        async with graph.astream({"a": 1}, CONFIG, durability="exit", stream_mode="values") as stream:
            assert (await anext(stream))["a"] == 1
            await stream.durable()
            assert stream.durable_upto == (await history(graph))[-1]
            assert len([chunk async for chunk in stream]) == 3


@pytest.mark.parametrize("durability", MODES)
async def test_a_pause_is_told_once_it_is_on_disk(saver: Any, durability: Any) -> None:
    def ask(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt("?")]}

    graph = chain(("ask", ask)).compile(saver)
    async with graph.astream({"a": 1}, CONFIG, durability=durability) as stream:
        assert "__interrupt__" in await anext(stream)
        await stream.durable()
        assert await anext(stream, None) is None
    async with graph.astream(Command(resume="yes"), CONFIG, durability=durability) as stream:
        assert await anext(stream) == {"ask": {"log": ["yes"]}}
        await stream.durable()
        assert stream.durable_upto == (await history(graph))[-1]


async def test_what_was_stored_already_needs_no_wait() -> None:
    """A resumed run tells first where it starts from."""
    backend = FaultyBackend()
    async with GroupCommitSaver(backend) as saver:
        graph = chain("one", "two").compile(saver)
        await graph.ainvoke({"a": 1}, CONFIG, interrupt_before=["two"])
        with anyio.fail_after(10):
            async with graph.astream(None, CONFIG, stream_mode="values") as stream:
                assert (await anext(stream))["log"] == ["one"]
                backend.gate = anyio.Event()
                await stream.durable()
                backend.gate.set()
                assert (await anext(stream))["log"] == ["one", "two"]


async def test_a_subgraphs_chunks_are_covered_by_the_checkpoint_around_them(saver: Any) -> None:
    graph = chain(("sub", chain("inner").compile()), "after").compile(saver)
    async with graph.astream({"a": 1}, CONFIG, subgraphs=True, version="v2") as stream:
        inner = await anext(stream)
        assert len(inner["ns"]) == 1
        await stream.durable()
        assert stream.durable_upto in (await history(graph))[2:]
        assert len([part async for part in stream]) == 2


@pytest.mark.parametrize("durability", MODES)
async def test_a_subgraphs_own_stream(saver: Any, durability: Any) -> None:
    """Where it saves nothing itself, it says so."""
    child, seen = chain("inner").compile(), list[Any]()

    async def node(_state: Log) -> None:
        async with child.astream({"a": 2}) as stream:
            seen.append(await anext(stream))
            if durability == "exit":
                with pytest.raises(ConfigError, match="nested in"):
                    await stream.durable()
            else:
                await stream.durable()
                assert stream.durable_upto is not None

    await chain(("outer", node)).compile(saver).ainvoke({}, CONFIG, durability=durability)
    assert seen == [{"inner": {"log": ["inner"]}}]


async def test_what_cannot_be_stored_fails_the_wait_and_the_run() -> None:
    backend = FaultyBackend()
    async with GroupCommitSaver(backend) as saver:
        graph = chain("one", "two").compile(saver)
        backend.gate = anyio.Event()
        with anyio.fail_after(10), pytest.raises(BackendError):
            async with graph.astream({"a": 1}, CONFIG, stream_mode="checkpoints") as stream:
                chunk = await anext(stream)
                backend.poison.add(chunk["config"]["configurable"]["checkpoint_id"])
                backend.gate.set()
                with pytest.raises(BackendError):
                    await stream.durable()
                assert stream.durable_upto is None
                assert [chunk async for chunk in stream]


async def test_who_waits_is_told_as_the_run_is_that_another_deleted_the_thread(saver: Any) -> None:
    deleted = anyio.Event()

    async def wait(_state: Log) -> None:
        await deleted.wait()

    with anyio.fail_after(10), pytest.raises(ThreadConflictError) as ended:
        async with chain("one", ("two", wait)).compile(saver).astream({"a": 1}, CONFIG) as stream:
            await anext(stream)
            await stream.durable()
            await saver.adelete_thread("t")
            deleted.set()
            await anext(stream)
            with pytest.raises(ThreadConflictError) as told:
                await stream.durable()
            await anext(stream)
    assert type(told.value) is type(ended.value)


async def test_a_failing_node_ends_the_wait_once_what_it_had_told_is_saved(saver: Any) -> None:
    def fail(_state: Log) -> None:
        get_stream_writer()("about to fail")
        msg = "boom"
        raise ValueError(msg)

    with anyio.fail_after(10), pytest.raises(ValueError, match="boom"):
        async with chain(("n", fail)).compile(saver).astream({"a": 1}, CONFIG, stream_mode="custom") as stream:
            assert await anext(stream) == "about to fail"
            await stream.durable()
            await anext(stream)


async def test_the_run_does_not_wait_for_a_reader_who_waits_for_it(saver: Any) -> None:
    """Both would wait for ever: a full buffer holds up the checkpoint that the reader waits for."""
    many = PATIENCE - 1

    def node(_state: Log) -> None:
        for number in range(many):
            get_stream_writer()(number)

    with anyio.fail_after(10):
        async with chain(("n", node)).compile(saver).astream({"a": 1}, CONFIG, stream_mode="custom") as stream:
            assert await anext(stream) == 0
            await stream.durable()
            assert [number async for number in stream] == list(range(1, many))


async def test_a_reader_who_waits_too_long_is_told_to_read_on(saver: Any) -> None:
    def node(_state: Log) -> None:
        for number in range(2 * PATIENCE):
            get_stream_writer()(number)

    with anyio.fail_after(10):
        async with chain(("n", node)).compile(saver).astream({"a": 1}, CONFIG, stream_mode="custom") as stream:
            assert await anext(stream) == 0
            with pytest.raises(StreamOverflowError, match="Read on"):
                await stream.durable()
            assert stream.statistics().peak <= PATIENCE + 1
            assert [number async for number in stream] == list(range(1, 2 * PATIENCE))
            await stream.durable()


async def test_a_wait_may_be_cancelled_and_made_again() -> None:
    backend = FaultyBackend()
    async with GroupCommitSaver(backend) as saver:
        backend.gate = anyio.Event()
        with anyio.fail_after(10):
            async with chain("one").compile(saver).astream({"a": 1}, CONFIG) as stream:
                await anext(stream)
                with anyio.move_on_after(0.01) as scope:
                    await stream.durable()
                assert scope.cancelled_caught
                backend.gate.set()
                await stream.durable()


async def test_after_leaving_everything_that_was_read_is_on_disk(saver: Any) -> None:
    stream = chain("one", "two").compile(saver).astream({"a": 1}, thread("x"))
    with anyio.fail_after(10):
        async with stream:
            await anext(stream)
        await stream.durable()
        assert stream.durable_upto is not None


async def test_inmemory_savers_are_durable_at_once() -> None:
    graph = chain("one").compile(InMemorySaver())
    parts = await collect(graph.astream({"a": 1}, CONFIG, stream_mode="values", version="v2"))
    made = (await history(graph))[1:]
    assert all(part["durable_upto"] in made[at:] for at, part in enumerate(parts))
    assert parts[-1]["durable_upto"] == made[-1]
