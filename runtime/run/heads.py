"""What the runs that share a thread know to be stored of it: by namespace, the newest checkpoint; pure.

Every checkpoint says by that what it rests on. So what another writer does to the thread meanwhile is noticed when the
checkpoint is stored: that it moved the thread on, deleted it, or began it anew.
"""

from __future__ import annotations


class Heads(dict[str, str]):
    """By namespace, the id of the newest checkpoint that storage should have; ``""`` if there is none."""

    __slots__ = ("_doubted",)

    def __init__(self) -> None:
        """Know nothing."""
        super().__init__()
        self._doubted: set[str] = set()
        """Namespaces of which something could not be stored."""

    def found(self, ns: str, head: str) -> None:
        """Note which checkpoint was found to be the newest.

        If there is none where one was stored, the thread was deleted under the runs at work on it, and they go on to
        expect theirs: nothing that they store may begin it anew.
        """
        if head or ns in self._doubted or not self.get(ns):
            self[ns] = head
            self._doubted.discard(ns)

    def sent(self, ns: str, checkpoint_id: str) -> None:
        """Note that a checkpoint is on its way to storage."""
        self[ns] = max(checkpoint_id, self.get(ns, ""))

    def failed(self, ns: str) -> None:
        """Note that something could not be stored, so that less may be found."""
        self._doubted.add(ns)

    def anchor(self, ns: str) -> tuple[str, str] | None:
        """Return namespace and id of what must be there, so that a checkpoint can be the first of its namespace.

        Any that is known to be there tells that the thread was not deleted. Where the runs have stored none, the root
        must have none: ``""``. None if the checkpoint is not the first, or the root's own.
        """
        if self.get(ns):
            return None
        for other, head in self.items():  # the root's comes first
            if head:
                return other, head
        return ("", "") if ns and "" in self else None
