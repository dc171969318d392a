"""Channels that wait until each of a set of names has been written (joins)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from typing_extensions import override

from runtime.channels.base import MISSING, BaseChannel
from runtime.errors import InvalidUpdateError


class NamedBarrierValue(BaseChannel[None, str]):
    """Available, with None as its value, once all ``names`` were written; reading it starts over."""

    __slots__ = ("names", "seen")

    def __init__(self, typ: Any, names: set[str] | frozenset[str], key: str = "") -> None:
        super().__init__(typ, key)
        self.names = frozenset(names)
        self.seen: frozenset[str] = frozenset()

    @override
    def fresh(self) -> Self:
        """Return one that has seen nobody."""
        return type(self)(self.typ, self.names, self.key)

    @override
    def peek(self) -> Any:
        """Return None once everybody was seen; MISSING before."""
        return None if self.seen == self.names else MISSING

    @override
    def update(self, values: Sequence[str]) -> bool:
        """Note who was seen. Raises InvalidUpdateError for a name that is not awaited."""
        self.check(values)
        seen = self.seen.union(values)
        changed = seen != self.seen
        self.seen = seen
        return changed

    @override
    def check(self, values: Sequence[str]) -> None:
        """Raise InvalidUpdateError for a name that is not awaited."""
        for name in values:
            if name not in self.names:
                msg = f"At key '{self.key}': {name!r} is not one of the awaited {sorted(self.names)}."
                raise InvalidUpdateError(msg)

    @override
    def consume(self) -> bool:
        """Start over, if everybody was seen."""
        if self.seen == self.names:
            self.seen = frozenset()
            return True
        return False

    @override
    def checkpoint(self) -> Any:
        """Return who was seen; MISSING if nobody was."""
        return set(self.seen) if self.seen else MISSING

    @override
    def restore(self, stored: Any) -> None:
        """Take that back. Raises TypeError for anything else."""
        self.seen = _names(stored)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.names == other.names


class NamedBarrierValueAfterFinish(NamedBarrierValue):
    """The same, available only once the run would otherwise end (deferred nodes)."""

    __slots__ = ("finished",)
    deferred: ClassVar[bool] = True

    def __init__(self, typ: Any, names: set[str] | frozenset[str], key: str = "") -> None:
        super().__init__(typ, names, key)
        self.finished = False

    @override
    def peek(self) -> Any:
        """Return None once everybody was seen and the run would otherwise end; MISSING before."""
        return None if self.finished and self.seen == self.names else MISSING

    @override
    def consume(self) -> bool:
        """Start over once it has been read."""
        if self.finished and self.seen == self.names:
            self.finished = False
            self.seen = frozenset()
            return True
        return False

    @override
    def finish(self) -> bool:
        """Let it be read, if everybody was seen."""
        if not self.finished and self.seen == self.names:
            self.finished = True
            return True
        return False

    @override
    def checkpoint(self) -> Any:
        """Return who was seen and whether it can be read; MISSING if nobody was."""
        return (set(self.seen), self.finished) if self.seen else MISSING

    @override
    def restore(self, stored: Any) -> None:
        """Take both back. Raises TypeError or ValueError for anything else."""
        seen, finished = stored
        self.seen, self.finished = _names(seen), bool(finished)


def _names(stored: Any) -> frozenset[str]:
    """Return stored names; a value that is only iterable could be gone through for ever."""
    if not isinstance(stored, (set, frozenset, list, tuple)) or not all(isinstance(name, str) for name in stored):
        msg = f"a set of names is wanted, not a {type(stored).__name__}"
        raise TypeError(msg)
    return frozenset(stored)
