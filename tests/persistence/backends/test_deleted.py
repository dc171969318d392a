"""A thread that is deleted while it runs stays deleted: what comes late is refused, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from persistence.memory import InMemorySaver
from runtime.errors import ThreadConflictError
from runtime.graph import START, StateGraph
from tests.persistence.backends.graphs import Trail, thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.persistence.backends.places import Place

pytestmark = pytest.mark.anyio

every_mode = pytest.mark.parametrize("durability", ["sync", "async"])


async def run_deleted(
    saver: Any, durability: Any, delete: Callable[[], Awaitable[None]], told: Callable[[], int]
) -> None:
    """Run two nodes; after the deletion the first ends, and its writes are sent ahead while the second is at work.

    ``told`` counts the units that storage has taken or refused.
    """
    reached, gone, first = anyio.Event(), anyio.Event(), anyio.Event()
    before = 0

    async def early(_state: Trail) -> dict[str, Any]:
        reached.set()
        await gone.wait()
        first.set()
        return {"trail": [1]}

    async def late(_state: Trail) -> dict[str, Any]:
        await first.wait()
        while told() == before:
            await anyio.sleep(0.001)
        return {"trail": [2]}

    builder = StateGraph(Trail)
    for name, node in (("early", early), ("late", late)):
        builder.add_node(name, node)
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=saver)

    async def run() -> None:
        with pytest.raises(ThreadConflictError):
            await graph.ainvoke({"trail": [0]}, thread("t"), durability=durability)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await reached.wait()
        await saver.aget_tuple(thread("t"))
        await delete()
        before = told()
        gone.set()


@every_mode
@pytest.mark.parametrize("own", [True, False], ids=["own", "another"])
async def test_late_writes_leave_nothing(place: Place, durability: Any, own: bool) -> None:
    """Whichever saver it is deleted through."""
    async with place.saver() as saver, place.saver() as other:

        def told() -> int:
            seen = saver.statistics()
            return seen.units + seen.failures

        await run_deleted(saver, durability, lambda: (saver if own else other).adelete_thread("t"), told)
        place.require_empty()


@every_mode
async def test_late_writes_leave_nothing_in_memory(durability: Any) -> None:
    saver, sent = InMemorySaver(), list[Any]()
    send = saver.send_nowait

    def counted(request: Any) -> Any:
        sent.append(request)
        return send(request)

    saver.send_nowait = counted  # type: ignore[method-assign]
    await run_deleted(saver, durability, lambda: saver.adelete_thread("t"), lambda: len(sent))
    assert saver._tables.threads == {}
