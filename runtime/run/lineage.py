"""What a branch sees of the states that subgraphs keep: only what was done on the way to where it stands.

A kept state has one line of checkpoints, whatever branches of its parent have used it; its newest one may be of a
branch that the thread has left. Each of them names the parent's checkpoint that it was made from, and a checkpoint on a
branch notes where that began and what it left. So nothing is asked of a thread that never went back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.run.metadata import KEPT_AT
from runtime.types.constants import BRANCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.run.conductor import Conductor
    from runtime.run.journal import Journal


class Branch(NamedTuple):
    """Where the branch began that a checkpoint is on."""

    at: str
    """Its first checkpoint."""
    left: str
    """The one that it leads from: what was run from there, or from later ones, until it began is not of the branch."""


def noted(branch: Branch | None) -> dict[str, dict[str, str]]:
    """Return what a checkpoint says of its branch in its metadata."""
    return {} if branch is None else {BRANCH: branch._asdict()}


def branch_of(metadata: Mapping[str, Any]) -> Branch | None:
    """Return the branch that a checkpoint is on; None where the thread had never gone back."""
    noted = metadata.get(BRANCH)
    return Branch(**noted) if isinstance(noted, dict) else None


class Around(NamedTuple):
    """A graph around a subgraph."""

    journal: Journal
    """What loads its checkpoints."""
    ns: str
    branch: Branch | None


async def seen_from(run: Conductor, newest: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return the newest checkpoint of a state that is kept which the branches of the runs around it see."""
    journal, around = run.journal, []
    while run.nested is not None:
        run = run.nested.around
        if run.journal is not None and run.journal.branch is not None:
            around.append(Around(run.journal, run.ns, run.journal.branch))
    return newest if journal is None else await _seen(journal, newest, around)


async def seen_at(journal: Journal, newest: CheckpointTuple | None, at: Mapping[str, str]) -> CheckpointTuple | None:
    """Likewise for who reads or edits it: where the graphs around it are at these checkpoints, else at their newest."""
    metadata = {} if newest is None else newest.metadata
    parents, around = metadata.get("parents") or {}, []
    for ns in parents if KEPT_AT in metadata and parents != at else ():
        found = await journal.load_at(ns, at.get(ns))
        around.append(Around(journal, ns, None if found is None else branch_of(found.metadata)))
    return await _seen(journal, newest, around)


async def _seen(journal: Journal, newest: CheckpointTuple | None, around: Sequence[Around]) -> CheckpointTuple | None:
    found = newest
    while found is not None:
        bounds = [await _bound(each, found) for each in around]
        bound = min((each for each in bounds if each is not None), default=None)
        if bound is None:
            break
        found = await journal.load_before(journal.ns, bound)
    return found


async def _bound(around: Around, kept: CheckpointTuple) -> str | None:
    """Return before what to look for another checkpoint, if this one is not of the branch of a graph around it."""
    made_from = (kept.metadata.get("parents") or {}).get(around.ns)
    branch = around.branch
    while made_from is not None and branch is not None and made_from < branch.at:
        if made_from >= branch.left:
            return branch.left
        left = await around.journal.load_at(around.ns, branch.left)
        branch = None if left is None else branch_of(left.metadata)
    return None
