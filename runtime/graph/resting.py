"""Threads that nobody is at work on though there is more to do: their run was drained, cancelled or interrupted.

Such a run has let go of its thread, so nothing but what is stored tells it from one that waits: for an answer, at a
breakpoint, or for whoever looks into why it failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.run.recording import CANCELLED
from runtime.types.constants import INTERRUPT, START

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from persistence.contracts.checkpoint import CheckpointTuple
    from persistence.contracts.lease import LeaseRow
    from runtime.graph.compiled import CompiledStateGraph
    from runtime.run.program import Program
    from runtime.types.snapshot import StateSnapshot


async def resting(graph: CompiledStateGraph) -> AsyncGenerator[LeaseRow, None]:
    """Yield the leases of the graph's threads that nobody holds, in order of thread ids."""
    after = ""
    while rows := await graph.checkpointer.afree_leases(graph.name, after):
        for row in rows:
            yield row
        after = rows[-1].thread_id


async def was_stopped(graph: CompiledStateGraph, thread_id: str) -> bool:
    """Tell whether a thread that nobody is at work on has more to do than to wait.

    Breakpoints are those that the graph and its subgraphs were compiled with: those of a call are stored nowhere. A run
    that was stopped at one of them counts as waiting there.
    """
    config = {"configurable": {"thread_id": thread_id}}
    state = await graph.aget_state(config)
    if not unfinished(state) or any(task.error not in (None, CANCELLED) for task in state.tasks):
        return False
    if not graph.program.plan.nodes.keys() >= set(state.next) - {START}:
        return False  # it is another graph's, under the same name
    saved = await graph.checkpointer.aget_tuple(config)
    return saved is not None and not _at_breakpoint(graph.program, saved, state)


def unfinished(state: StateSnapshot) -> bool:
    """Tell whether a run had more to do than to wait for answers."""
    return any(not task.interrupts and task.result is None for task in state.tasks)


def _at_breakpoint(program: Program, saved: CheckpointTuple, state: StateSnapshot) -> bool:
    ran = saved.checkpoint["versions_seen"].keys()
    if _hits(program.interrupt_before, state.next) or _hits(program.interrupt_after, ran):
        return True
    # A task whose subgraph stopped without a question has an empty list of them, be it for a drain or a breakpoint.
    below = any(channel == INTERRUPT and not value for _, channel, value in saved.pending_writes or ())
    return below and any(map(_breaks, _inside(program)))


def _hits(names: frozenset[str] | None, nodes: Iterable[str]) -> bool:
    """Tell whether there is a breakpoint at one of the nodes; None stands for all of them."""
    return any(not node.startswith("__") and (names is None or node in names) for node in nodes)


def _breaks(program: Program) -> bool:
    return any(names is None or names for names in (program.interrupt_before, program.interrupt_after))


def _inside(program: Program) -> list[Program]:
    """Return the programs of subgraphs, at any depth."""
    found: dict[int, Program] = {}
    waiting = [program]
    while waiting:
        for node in waiting.pop().plan.nodes.values():
            fresh = [each for each in node.subgraphs if id(each) not in found]
            found |= {id(each): each for each in fresh}
            waiting += fresh
    return list(found.values())
