"""What runs note in the metadata of their checkpoints, beside source, step and parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CALLER: Final = "caller"
"""Metadata of a subgraph that keeps its state between calls: the task that made the call."""

CALLERS: Final = "callers"
"""Likewise, where there are several: all tasks and calls around it, outermost first."""

KEPT_AT: Final = "kept_at"
"""Metadata of a subgraph that keeps its state between calls: what the next call finds it by (see run/routes)."""

BRANCH: Final = "branched"
"""Metadata of what comes after a step back: where the branch began, and what it left (see run/lineage)."""

CALL_MARK: Final = "call"
"""Metadata of a subgraph that was called at once with others: what tells its call apart (see run/telling_apart)."""


def callers_in(metadata: Mapping[str, Any]) -> Sequence[str]:
    """Return the tasks and calls around a subgraph that notes who called it, outermost first."""
    return metadata.get(CALLERS) or ([metadata[CALLER]] if CALLER in metadata else [])


def visible(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that observers see: what a branch notes is the runs' own."""
    return {key: value for key, value in metadata.items() if key != BRANCH}
