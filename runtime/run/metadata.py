"""What runs note in the metadata of their checkpoints, beside source, step and parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime.types.constants import BRANCH, CALLERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FIRST: Final = ("source", "step", "parents")

CALLER: Final = "__caller__"
"""Metadata of a subgraph that keeps its state between calls: the task that made the call."""

KEPT_AT: Final = "__kept_at__"
"""Metadata of a subgraph that keeps its state between calls: what the next call finds it by (see run/routes)."""

CALL_MARK: Final = "__call__"
"""Metadata of a subgraph that was called at once with others: what tells its call apart (see run/telling_apart)."""

_OWN: Final = (BRANCH, CALLER, CALLERS, CALL_MARK, KEPT_AT)
"""Names that no setting of a program has: those that begin like them are not kept."""


def callers_in(metadata: Mapping[str, Any]) -> Sequence[str]:
    """Return the tasks and calls around a subgraph that notes who called it, outermost first."""
    callers = metadata.get(CALLERS)
    return callers if isinstance(callers, list) else [metadata[CALLER]] if CALLER in metadata else []


def visible(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that observers see, source, step and parents first: what runs note is their own."""
    shown = {key: metadata[key] for key in _FIRST if key in metadata}
    return shown | {key: value for key, value in metadata.items() if key not in _OWN}
