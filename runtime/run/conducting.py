"""How a call becomes a run: by itself, or as a subgraph of the run around it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runtime.errors import FencedError
from runtime.run.conductor import Conductor
from runtime.run.nesting import detached, placed
from runtime.run.pacing import pacer
from runtime.run.routes import kept_in_place
from runtime.run.telling_apart import told_apart
from runtime.run.travelling import rooted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.context.scope import Scope
    from runtime.run.pacing import Pacer
    from runtime.run.program import Call, Program


async def conduct(program: Program, call: Call, around: Scope | None, given: Mapping[str, Any] | None) -> Any:
    """Run a program: by itself, or as a subgraph in the place that the running node's scope gives it."""
    with pacer() as pace:
        if around is None:
            return await by_itself(program, detached(call), pace)
        program, call = placed(program, call, around, given)
        nested = call.nested
        if nested is not None and nested.per_thread:
            call = await kept_in_place(program, call)
        elif nested is not None:
            call = await told_apart(program, call)
        return await Conductor(program, call, pace).run()


async def by_itself(program: Program, call: Call, pace: Pacer) -> Any:
    """Run a program; again from the start, if another process took its thread before anybody saw anything of the run.

    That is before a node was at work, and a reader was told of it.
    """
    if program.saver is True:
        msg = "checkpointer=True cannot be used for root graphs: it lets a subgraph keep state beside its parent."
        raise RuntimeError(msg)
    call = await rooted(program, call)
    while True:
        run = Conductor(program, replace(call), pace)
        try:
            return await run.run()
        except FencedError:
            owns = run.journal is not None and run.journal.owns  # the lease of a run around it stays lost
            if not owns or run.at_work or (call.hub is not None and call.hub.told):
                raise
