"""What the runs that share a thread know to be stored of it: by namespace, the newest checkpoint; pure.

Every checkpoint says by that what it rests on. So what another writer does to the thread meanwhile is noticed when the
checkpoint is stored: that it moved the thread on, deleted it, or began it anew.
"""

from __future__ import annotations


class Heads(dict[str, str]):
    """By namespace, the id of the newest checkpoint that storage should have; ``""`` if there is none."""

    __slots__ = ("_doubted", "_made")

    def __init__(self) -> None:
        """Know nothing."""
        super().__init__()
        self._made: set[str] = set()
        """Namespaces whose newest checkpoint is of these runs."""
        self._doubted: set[str] = set()
        """Namespaces of which something could not be stored."""

    def found(self, ns: str, head: str) -> None:
        """Note which checkpoint was found to be the newest, ``""`` if there is none.

        What is known already is expected to stay: if another is found, or none, somebody else moved the thread on or
        deleted it, and what the runs store next is refused.
        """
        if ns in self._doubted:
            self._doubted.discard(ns)
            self._made.discard(ns)
            self[ns] = head
        elif not self.get(ns):
            self[ns] = head

    def sent(self, ns: str, checkpoint_id: str) -> None:
        """Note that a checkpoint is on its way to storage."""
        self[ns] = max(checkpoint_id, self.get(ns, ""))
        self._made.add(ns)

    def failed(self, ns: str) -> None:
        """Note that something could not be stored, so that less may be found."""
        self._doubted.add(ns)

    def anchor(self, ns: str) -> tuple[str, str] | None:
        """Return namespace and id of what must be there, so that the runs can store their first checkpoint in another.

        What was found there just now, or that nothing was, says nothing of what the runs have rested on before: the
        thread may have been deleted meanwhile, and begun anew. What the outermost began with does, or what they have
        stored. Where there is none of it, the root must have none: ``""``.

        None if it is not their first, or the root's own.
        """
        if ns in self._made:
            return None
        outermost = next(iter(self), ns)
        for other, head in self.items():
            if head and other != ns and (other == outermost or other in self._made):
                return other, head
        return ("", "") if ns and "" in self else None
