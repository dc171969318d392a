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
        return type(self)(self.typ, self.names, self.key)

    @override
    def peek(self) -> Any:
        return None if self.seen == self.names else MISSING

    @override
    def update(self, values: Sequence[str]) -> bool:
        self.check(values)
        seen = self.seen.union(values)
        changed = seen != self.seen
        self.seen = seen
        return changed

    @override
    def check(self, values: Sequence[str]) -> None:
        for name in values:
            if name not in self.names:
                msg = f"At key '{self.key}': {name!r} is not one of the awaited {sorted(self.names)}."
                raise InvalidUpdateError(msg)

    @override
    def consume(self) -> bool:
        if self.seen == self.names:
            self.seen = frozenset()
            return True
        return False

    @override
    def checkpoint(self) -> Any:
        return set(self.seen) if self.seen else MISSING

    @override
    def restore(self, stored: Any) -> None:
        self.seen = frozenset(stored)

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
        return None if self.finished and self.seen == self.names else MISSING

    @override
    def consume(self) -> bool:
        if self.finished and self.seen == self.names:
            self.finished = False
            self.seen = frozenset()
            return True
        return False

    @override
    def finish(self) -> bool:
        if not self.finished and self.seen == self.names:
            self.finished = True
            return True
        return False

    @override
    def checkpoint(self) -> Any:
        return (set(self.seen), self.finished) if self.seen else MISSING

    @override
    def restore(self, stored: Any) -> None:
        seen, self.finished = stored
        self.seen = frozenset(seen)
