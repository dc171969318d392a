"""Recovery: runs whose process died are found by their threads' leases, and continued.

A thread's lease is held while a run is at work on it. If its owner is dead and it is still held, nobody is told how the
run ended: it did not. Whoever continues it takes the thread first, so that of several processes which recover one does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio

from persistence.errors import LeaseLostError
from runtime.engine.cells import Cells
from runtime.engine.vetting import vet
from runtime.errors import ThreadBusyError, ThreadConflictError
from runtime.graph.resting import resting, was_stopped
from runtime.graph.resting import unfinished as is_unfinished
from runtime.run.leasing import inherited, leases
from runtime.types.config import merge_configs

if TYPE_CHECKING:
    from persistence.contracts.lease import LeaseRow
    from runtime.graph.compiled import CompiledStateGraph
    from runtime.types.policy import Durability

Config = Mapping[str, Any] | Callable[[str], Mapping[str, Any]] | None


class Recovered(NamedTuple):
    """What became of one thread whose run had died."""

    thread_id: str
    status: Literal["finished", "waiting", "failed", "taken"]
    """``finished``: nothing is left to do. ``waiting``: for an answer, or at a breakpoint. ``failed``: continuing it
    raised. ``taken``: another was faster, in this process or another."""
    value: Any = None
    """What the continued run returned; None if there was nothing to continue."""
    error: Exception | None = None


async def arecover(
    graph: CompiledStateGraph,
    saver: Any = None,
    *,
    config: Config = None,
    context: Any = None,
    durability: Durability | None = None,
    max_concurrency: int = 8,
    unfinished: bool = False,
) -> list[Recovered]:
    """Find the threads of a graph whose run died with its process, and continue them.

    A run counts as dead once its process has ended (seen from the same machine), or was silent for the saver's
    ``lease_seconds``. Its last superstep runs again, but for the nodes that had finished. Runs of graphs with another
    name are left alone: give graphs that share a database names of their own (``compile(name=...)``). One that fails
    is a failed run like any other: nobody tries it again but who resumes its thread with None. Only where it waits for
    a node that the graph does not have is the thread left as it is, for a graph that has it.

    Args:
        graph: the compiled graph.
        saver: where the threads are; the graph's own checkpointer by default.
        config: what the continued runs get beside their thread, or a function that returns it for a thread id.
        context: what their nodes see as ``runtime.context``.
        durability: ``exit``, ``async`` or ``sync``.
        max_concurrency: how many threads are continued at once.
        unfinished: also continue threads that nobody is at work on though there is more to do, as their run was
            drained, cancelled or interrupted; not those that failed, wait for answers, or stand at a breakpoint that
            the graph or a subgraph was compiled with (those of single calls are not stored). Reads every thread of the
            graph.

    Returns:
        What became of each, in order of their thread ids; errors are there, not raised.

    Raises:
        TypeError: the graph is not compiled.
        ValueError: there is no saver, its threads have no leases, or ``max_concurrency`` is not positive.

    """
    if not hasattr(graph, "program"):
        msg = f"arecover takes a compiled graph, not {type(graph).__name__}: use builder.compile(saver)."
        raise TypeError(msg)
    if saver is not None and saver is not graph.checkpointer:
        graph = with_saver(graph, saver)
    saver = graph.checkpointer
    if saver in (None, True, False):
        msg = "There is nothing to recover: the graph has no checkpointer, and no saver was given."
        raise ValueError(msg)
    if not leases(saver):
        msg = f"{saver!r} keeps no leases, so it cannot be told whose run died. Resume threads with None as input."
        raise ValueError(msg)
    if max_concurrency < 1:
        msg = f"max_concurrency must be at least 1, it is {max_concurrency}."
        raise ValueError(msg)
    ended: dict[str, Recovered] = {}
    room = anyio.CapacityLimiter(max_concurrency)

    async def recover(row: LeaseRow) -> None:
        try:
            place = {"configurable": {"thread_id": row.thread_id}}
            own = merge_configs(config(row.thread_id) if callable(config) else config, place)
            became = await _recovered(graph, row, own, {"context": context, "durability": durability})
            if became is not None:
                ended[row.thread_id] = became
        finally:
            room.release_on_behalf_of(row)

    async with anyio.create_task_group() as group, aclosing(_to_continue(graph, unfinished=unfinished)) as found:
        async for row in found:
            await room.acquire_on_behalf_of(row)
            group.start_soon(recover, row)
    return [ended[thread_id] for thread_id in sorted(ended)]


async def _to_continue(graph: CompiledStateGraph, *, unfinished: bool) -> AsyncGenerator[LeaseRow, None]:
    dead = await died(graph)
    for row in dead:
        yield row
    if unfinished:
        begun = {row.thread_id for row in dead}
        async for row in resting(graph):
            if row.thread_id not in begun:  # whatever became of it, it is not tried twice
                yield row


async def died(graph: CompiledStateGraph) -> list[LeaseRow]:
    """Return the leases of the graph's threads whose run died."""
    return [row for row in await all_that_died(graph.checkpointer) if row.graph == graph.name]


async def all_that_died(saver: Any) -> list[LeaseRow]:
    """Return the leases of all threads whose run died, whatever their graph is called."""
    rows: list[LeaseRow] = await saver.aheld_leases()
    return [row for row in rows if row.owner != saver.lease_owner and saver.is_dead(row)]


async def _recovered(
    graph: CompiledStateGraph, row: LeaseRow, config: Mapping[str, Any], options: Mapping[str, Any]
) -> Recovered | None:
    """Continue a thread; return None if nobody had died, and there is nothing to continue."""
    given = {key: value for key, value in options.items() if value is not None}
    value: Any = None
    try:
        if not row.held and not await was_stopped(graph, row.thread_id):
            return None
        # Only who takes the thread from the run that died says what became of it, however many are at it.
        async with inherited(graph.checkpointer, row) as legacy:
            await require_nodes(graph, row.thread_id)
            state = await graph.aget_state(config)
            if is_unfinished(state) if row.held else await was_stopped(graph, row.thread_id):
                await legacy.take()
                value = await graph.ainvoke(None, config, multitask_strategy="reject", **given)
                state = await graph.aget_state(config)
            elif row.held:
                await legacy.let_go()
            else:
                return Recovered(row.thread_id, "taken")
    except (ThreadBusyError, ThreadConflictError, LeaseLostError):
        return Recovered(row.thread_id, "taken")
    except Exception as error:  # noqa: BLE001 - one thread's failure is no reason to leave the others
        return Recovered(row.thread_id, "failed", error=error)
    return Recovered(row.thread_id, "waiting" if state.next else "finished", value)


async def require_nodes(graph: CompiledStateGraph, thread_id: str) -> None:
    """Raise OrphanedTaskError if the thread waits for a node that the graph does not have: it stays as it is."""
    saved = await graph.checkpointer.aget_tuple({"configurable": {"thread_id": thread_id}})
    if saved is not None:
        Cells(graph.program.plan, "").restore(vet(saved).checkpoint, saved.lineage)


def with_saver(graph: CompiledStateGraph, saver: Any) -> CompiledStateGraph:
    """Return the graph with another saver, or with none."""
    program = copy(graph.program)
    program.saver = saver
    return type(graph)(graph.builder, program)
