"""Savers of third parties that block: the runtime uses them all the same, in worker threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from persistence.errors import UnsupportedOperationError
from persistence.memory import InMemorySaver
from persistence.saver import BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id
from runtime.func import entrypoint
from runtime.run import adapting
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, chain


class Blocking(BaseCheckpointSaver):
    """Rows in dicts, as bytes; no async method."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.writes: dict[tuple[str, str, str], list[Any]] = {}
        self.threads: set[int] = set()

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        self.threads.add(threading.get_ident())
        place = config["configurable"]
        thread, ns = place["thread_id"], place.get("checkpoint_ns", "")
        rows = self.rows.get((thread, ns), {})
        found = get_checkpoint_id(config) or max(rows, default=None)
        if found not in rows:
            return None
        typed, metadata, parent = rows[found]
        writes = [(task, key, self.serde.loads_typed(value)) for task, key, value in self.writes_of(thread, ns, found)]
        above = None if parent is None else address(thread, ns, parent)
        return CheckpointTuple(address(thread, ns, found), self.serde.loads_typed(typed), metadata, above, writes)

    def writes_of(self, thread: str, ns: str, checkpoint_id: Any) -> list[Any]:
        return self.writes.get((thread, ns, checkpoint_id), [])

    def list(self, config: Any, **_options: Any) -> Iterator[Any]:
        place = config["configurable"]
        rows = self.rows.get((place["thread_id"], place.get("checkpoint_ns", "")), {})
        for found in sorted(rows, reverse=True):
            yield self.get_tuple(address(place["thread_id"], place.get("checkpoint_ns", ""), found))

    def put(self, config: Any, checkpoint: Any, metadata: Any, _new_versions: Any) -> dict[str, Any]:
        self.threads.add(threading.get_ident())
        place = config["configurable"]
        row = (self.serde.dumps_typed(checkpoint), metadata, place.get("checkpoint_id"))
        self.rows.setdefault((place["thread_id"], place["checkpoint_ns"]), {})[checkpoint["id"]] = row
        return address(place["thread_id"], place["checkpoint_ns"], checkpoint["id"])

    def put_writes(self, config: Any, writes: Any, task_id: str, _task_path: str = "") -> None:
        place = config["configurable"]
        rows = self.writes.setdefault((place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]), [])
        rows.extend((task_id, key, self.serde.dumps_typed(value)) for key, value in writes)


def address(thread: str, ns: str, checkpoint_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


async def ask(_state: Any) -> dict[str, Any]:
    return {"log": [interrupt("?")]}


async def test_a_graph_runs_pauses_and_goes_on() -> None:
    saver = Blocking()
    graph = chain("a", ("ask", ask)).compile(saver)
    assert graph.checkpointer is saver
    paused = await graph.ainvoke({}, CONFIG)
    assert paused["__interrupt__"][0].value == "?"
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["a", "yes"]}
    assert [taken.next async for taken in graph.aget_state_history(CONFIG)] == [(), ("ask",), ("a",), ("__start__",)]
    await graph.aupdate_state(CONFIG, {"log": ["edited"]})
    assert (await graph.aget_state(CONFIG)).values["log"] == ["a", "yes", "edited"]
    assert threading.get_ident() not in saver.threads


def test_it_is_used_from_blocking_code() -> None:
    graph = chain("a").compile(Blocking())
    assert graph.invoke({}, CONFIG) == {"log": ["a"]}
    assert graph.get_state(CONFIG).values == {"log": ["a"]}


async def test_a_workflow_remembers() -> None:
    saver = Blocking()

    @entrypoint(saver)
    async def count(number: int, *, previous: int | None) -> int:
        return number + (previous or 0)

    assert [await count.ainvoke(number, CONFIG) for number in (1, 2)] == [1, 3]
    assert count.checkpointer is saver


async def test_graphs_that_share_it_wait_for_each_other() -> None:
    saver, entered, released = Blocking(), anyio.Event(), anyio.Event()

    async def hold(_state: Any) -> dict[str, Any]:
        entered.set()
        await released.wait()
        return {"log": ["first"]}

    first, second = chain(("n", hold)).compile(saver), chain("n").compile(saver)
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(first.ainvoke, {}, CONFIG)
        await entered.wait()
        nursery.start_soon(second.ainvoke, {}, CONFIG)
        await anyio.wait_all_tasks_blocked()
        released.set()
    assert (await second.aget_state(CONFIG)).values["log"] == ["first", "n"]


def test_what_it_lacks_is_told() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"Blocking does not implement delete_thread\(\)"):
        anyio.run(adapting.adapted(Blocking()).adelete_thread, "t")


def test_a_saver_with_async_methods_is_used_as_it_is() -> None:
    saver = InMemorySaver()
    assert adapting.adapted(saver) is saver
    assert adapting.adapted(None) is None


def test_one_saver_is_adapted_once_and_forgotten_with_it() -> None:
    saver = Blocking()
    first = adapting.adapted(saver)
    assert adapting.adapted(saver) is first
    del first
    before = len(adapting._IN_THREADS)
    kept = adapting.adapted(saver)
    assert len(adapting._IN_THREADS) == before + 1
    del kept
    gc.collect()
    assert len(adapting._IN_THREADS) <= before
