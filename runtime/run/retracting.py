"""Questions that an edit takes back: whoever waited for their answers, around the edited subgraph, does so no more.

Every graph around a subgraph records the subgraph's questions as its own. The edited subgraph asks anew, under other
ids, or not at all; an answer to the old question would reach nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.engine.vetting import vet
from runtime.run.journal import Journal
from runtime.types.constants import INTERRUPT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from persistence.contracts.checkpoint import CheckpointTuple

    Put = tuple[str, str, str, Sequence[Any]]
    """Namespace, checkpoint and task, with the questions that the task waits for."""


class Retraction:
    """Takes back what one point of a subgraph has asked."""

    def __init__(self, saver: Any, thread_id: str, asking: CheckpointTuple) -> None:
        self._saver = saver
        """Of the graphs around."""
        self._thread_id = thread_id
        self._around: Collection[str] = asking.metadata.get("parents") or ()
        self._ids = {question.id for _, put in _put(asking) for question in put}
        self._before: list[Put] = []

    async def make(self) -> None:
        """Let the graphs around wait only for what others have asked."""
        for ns in self._around if self._ids else ():
            place = {"thread_id": self._thread_id, "checkpoint_ns": ns}
            found: CheckpointTuple | None = await self._saver.aget_tuple({"configurable": place})
            for task_id, put in () if found is None else _put(vet(found)):
                left = [question for question in put if question.id not in self._ids]
                if found is not None and len(left) < len(put):
                    self._before.append((ns, found.checkpoint["id"], task_id, put))
                    await self._record(ns, found.checkpoint["id"], task_id, left)

    async def undo(self) -> None:
        """Let them wait again: the edit was not stored."""
        for each in self._before:
            await self._record(*each)

    async def _record(self, ns: str, checkpoint_id: str, task_id: str, questions: Sequence[Any]) -> None:
        journal = Journal(self._saver, self._thread_id, ns, "sync", {}, {})
        journal.hold(checkpoint_id, task_id, "", [(INTERRUPT, list(questions))])
        await journal.flush()
        await journal.arrived()


def _put(at: CheckpointTuple) -> list[tuple[str, Sequence[Any]]]:
    """Return what tasks have asked at a checkpoint."""
    return [
        (task_id, value if isinstance(value, (list, tuple)) else (value,))
        for task_id, channel, value in at.pending_writes or ()
        if channel == INTERRUPT
    ]
