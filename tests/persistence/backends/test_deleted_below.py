"""A thread that is deleted while a run is at work below its graph stays deleted, until a new run begins it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from persistence.memory import InMemorySaver
from runtime.errors import ThreadConflictError
from tests.persistence.backends.below import SHAPES, Gate
from tests.persistence.backends.conftest import place_of
from tests.persistence.backends.graphs import thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from persistence.memory.tables import Space
    from tests.persistence.backends.places import Place

pytestmark = pytest.mark.anyio

every_shape = pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=[pytest.mark.slow] if shape == "mixed" else []) for shape in SHAPES]
)
every_mode = pytest.mark.parametrize(
    ("durability", "old"),
    [("sync", False), ("async", True), ("exit", True)],
    ids=["sync", "async on an old thread", "exit on an old thread"],
)


class MemoryPlace:
    """The place in memory: one saver has it."""

    def __init__(self) -> None:
        self.made = InMemorySaver()

    def saver(self) -> Any:
        return self.made

    def require_empty(self) -> None:
        assert self.made._tables.threads == {}


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=pytest.mark.sweep)])
def some_place(request: pytest.FixtureRequest) -> Any:
    """An empty place where there are no leases, and one where there are."""
    return MemoryPlace() if request.param == "memory" else place_of(request.param, request)


async def begin(graph: Any, name: str, durability: Any = "sync") -> Any:
    return await graph.ainvoke({}, {**thread(name), "max_concurrency": 1}, durability=durability)


async def run_beside(graph: Any, gate: Gate, durability: Any, beside: Callable[[], Awaitable[None]]) -> Any:
    """Run up to the gate, let something happen beside, let it through; return the result or the conflict."""
    gate.shut()
    results: list[Any] = []

    async def run() -> None:
        try:
            results.append(await begin(graph, "t", durability))
        except ThreadConflictError as error:
            results.append(error)

    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await gate.reached.wait()
            await beside()
            gate.open.set()
    return results[0]


async def everything(saver: Any) -> list[Any]:
    """Return what can be seen of the thread in all its namespaces."""
    found = [one async for one in saver.alist({"configurable": {"thread_id": "t"}})]
    return [(one.config, one.checkpoint["channel_values"], one.pending_writes) for one in found]


@every_shape
@every_mode
async def test_it_leaves_nothing(some_place: Any, shape: str, durability: Any, old: bool) -> None:
    async with some_place.saver() as saver:
        gate = Gate()
        graph = SHAPES[shape](saver, gate)
        wanted = await begin(graph, "other")
        await saver.adelete_thread("other")
        if old:
            await begin(graph, "t")

        async def delete() -> None:
            await saver.aget_tuple(thread("t"))  # reads wait for what was sent
            await saver.adelete_thread("t")

        assert isinstance(await run_beside(graph, gate, durability, delete), ThreadConflictError)
        some_place.require_empty()
        found = await begin(graph, "t", durability)
        assert found.keys() == wanted.keys()
        assert found["told"] == wanted["told"]


async def test_nor_where_only_what_is_below_was_saved(some_place: Any) -> None:
    """In ``exit`` what keeps its state is saved before the graph around it."""
    async with some_place.saver() as saver:
        gate = Gate()
        graph = SHAPES["again"](saver, gate)

        async def delete() -> None:
            assert await everything(saver)
            await saver.adelete_thread("t")

        assert isinstance(await run_beside(graph, gate, "exit", delete), ThreadConflictError)
        some_place.require_empty()


@every_shape
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_what_is_pruned_or_copied_meanwhile_goes_on(some_place: Any, shape: str, durability: Any) -> None:
    async with some_place.saver() as saver:
        gate = Gate()
        graph = SHAPES[shape](saver, gate)
        for name in ("t", "other"):
            await begin(graph, name)
        wanted = await begin(graph, "other")

        async def prune() -> None:
            await saver.aprune(["t"])
            await saver.acopy_thread("t", "copy")

        found = await run_beside(graph, gate, durability, prune)
        assert found["told"] == wanted["told"]
        assert found == (await graph.aget_state(thread("t"))).values | {
            key: value for key, value in found.items() if key == "__interrupt__"
        }
        if durability == "async" and shape != "asking":
            resumed = await graph.ainvoke(None, {**thread("copy"), "max_concurrency": 1})
            assert resumed["told"] == wanted["told"]


class Deleting(InMemorySaver):
    """Deletes the thread once so many units were stored."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def send_nowait(self, request: Any) -> Any:
        done = super().send_nowait(request)
        self.left -= 1
        if self.left == 0:
            self._tables.threads.pop("t")
        return done


@every_shape
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("old", [False, True], ids=["new thread", "old thread"])
async def test_wherever_in_the_run_it_is_deleted(shape: str, durability: Any, old: bool) -> None:
    for after in range(1, 100):
        saver = Deleting(0)
        graph = SHAPES[shape](saver, Gate())
        if old:
            await begin(graph, "t")
        saver.left = after
        try:
            await begin(graph, "t", durability)
        except ThreadConflictError:
            assert saver.left < 0
        else:
            assert saver.left >= 0
        if saver.left > 0:
            break
        assert saver._tables.threads == {}
    else:
        pytest.fail("no end")


class Replacing(InMemorySaver):
    """Has another run's thread in place of this one from a unit on, as if others had deleted it and begun it anew."""

    def __init__(self, anew: dict[str, Space]) -> None:
        super().__init__()
        self.left = 0
        self.anew = anew

    def send_nowait(self, request: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            self._tables.threads["t"] = deepcopy(self.anew)
        return super().send_nowait(request)


def held(spaces: dict[str, Space]) -> Any:
    return {ns: (space.ids, space.checkpoints, space.writes, space.blobs) for ns, space in spaces.items()}


@every_shape
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("old", [False, True], ids=["new thread", "old thread"])
async def test_wherever_in_the_run_it_is_begun_anew(shape: str, durability: Any, old: bool) -> None:
    others = InMemorySaver()
    await begin(SHAPES[shape](others, Gate()), "t")
    for after in range(1, 100):
        saver = Replacing(others._tables.threads["t"])
        graph = SHAPES[shape](saver, Gate())
        if old:
            await begin(graph, "t")
        saver.left = after
        try:
            await begin(graph, "t", durability)
        except ThreadConflictError:
            assert held(saver._tables.threads["t"]) == held(saver.anew)
        else:
            assert saver.left > 0
            break
    else:
        pytest.fail("no end")


@asynccontextmanager
async def two_graphs(place: Place, shape: str) -> AsyncIterator[tuple[Any, Gate, Any, Any]]:
    """Yield a graph and its gate, and the same graph with its saver as another process has them."""
    async with place.saver() as one, place.saver() as other:
        gate = Gate()
        yield SHAPES[shape](one, gate), gate, SHAPES[shape](other, Gate()), other


@pytest.mark.parametrize("shape", ["kept", "fresh", "nested", "again"])
@every_mode
async def test_nothing_of_it_comes_into_the_thread_that_others_begin(
    place: Place, shape: str, durability: Any, old: bool
) -> None:
    async with two_graphs(place, shape) as (graph, gate, anew, other):
        if old:
            await begin(graph, "t")
        seen: list[Any] = []

        async def replace() -> None:
            if not place.whole:
                await graph.aget_state(thread("t"))  # waits for what was sent
            await other.adelete_thread("t")
            await begin(anew, "t")
            seen.extend(await everything(other))

        assert isinstance(await run_beside(graph, gate, durability, replace), ThreadConflictError)
        assert await everything(other) == seen
        assert len((await begin(anew, "t"))["told"]) == 2 * len((await begin(anew, "other"))["told"])


async def test_nor_into_one_that_others_edit(place: Place) -> None:
    async with two_graphs(place, "kept") as (graph, gate, anew, other):

        async def edit() -> None:
            await other.adelete_thread("t")
            await anew.aupdate_state(thread("t"), {"told": ["edited"]}, as_node="n")

        assert isinstance(await run_beside(graph, gate, "sync", edit), ThreadConflictError)
        assert [len(values) for _, values, _ in await everything(other)] == [1]
        assert (await anew.aget_state(thread("t"))).values == {"told": ["edited"]}


@pytest.mark.parametrize("shape", ["kept", "again"])
async def test_nor_into_one_that_others_begin_before_anything_was_saved(place: Place, shape: str) -> None:
    """In ``exit``: what is below is saved before it is known that the graph around it came too late."""
    async with two_graphs(place, shape) as (graph, gate, anew, other):
        seen: list[Any] = []

        async def overtake() -> None:
            await other.adelete_thread("t")
            await begin(anew, "t", "exit")
            seen.extend(await everything(other))

        assert isinstance(await run_beside(graph, gate, "exit", overtake), ThreadConflictError)
        assert await everything(other) == seen
