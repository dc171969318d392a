"""What a branch sees of the states that subgraphs keep: only what was done on the way to where it stands.

A kept state has one line of checkpoints, whatever branches of its parent have used it; its newest one may be of a
branch that the thread has left. Each of them names the parent's checkpoint that it was made from, and a checkpoint on a
branch notes where that began and what it left. So nothing is asked of a thread that never went back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.run.metadata import BRANCH

if TYPE_CHECKING:
    from collections.abc import Mapping

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


async def seen_from(run: Conductor, newest: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return the newest checkpoint of a state that is kept which the branches of the runs around it see."""
    journal, found, around = run.journal, newest, _around(run)
    while found is not None and journal is not None:
        bounds = [await _bound(each, found) for each in around]
        bound = min((each for each in bounds if each is not None), default=None)
        if bound is None:
            break
        found = await journal.load_before(journal.ns, bound)
    return found


def _around(run: Conductor) -> list[Journal]:
    """Return the journals of the runs around one that are on branches."""
    found = []
    while run.nested is not None:
        run = run.nested.around
        if run.journal is not None and run.journal.branch is not None:
            found.append(run.journal)
    return found


async def _bound(around: Journal, kept: CheckpointTuple) -> str | None:
    """Return before what to look for another checkpoint, if this one is not of the branch of a run around it."""
    made_from = (kept.metadata.get("parents") or {}).get(around.ns)
    branch = around.branch
    while made_from is not None and branch is not None and made_from < branch.at:
        if made_from >= branch.left:
            return branch.left
        left = await around.load_at(around.ns, branch.left)
        branch = None if left is None else branch_of(left.metadata)
    return None
