"""A channel that collects: every write of a superstep, or of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Self

from typing_extensions import override

from runtime.channels.base import MISSING, BaseChannel, Value


class Topic(BaseChannel[Sequence[Value], Value | list[Value]], Generic[Value]):
    """A list of what was written, duplicates kept; a written list is flattened by one level.

    Without ``accumulate`` it holds the writes of the preceding superstep only.
    """

    __slots__ = ("accumulate", "values")

    def __init__(self, typ: Any = object, accumulate: bool = False, key: str = "") -> None:  # noqa: FBT001, FBT002 - as in LangGraph
        super().__init__(typ, key)
        self.accumulate = accumulate
        self.values: list[Value] = []

    @property
    def volatile(self) -> bool:  # type: ignore[override]
        """Only an accumulating topic outlives a superstep without a write."""
        return not self.accumulate

    @property
    def appends(self) -> bool:  # type: ignore[override]
        """An accumulating topic only adds at the end."""
        return self.accumulate

    @property
    @override
    def ValueType(self) -> Any:
        """A sequence."""
        return Sequence[self.typ]  # type: ignore[name-defined]  # a type that is known at run time only

    @property
    @override
    def UpdateType(self) -> Any:
        """One or several."""
        return self.typ | list[self.typ]  # type: ignore[name-defined]

    @override
    def fresh(self) -> Self:
        """Return an empty one."""
        return type(self)(self.typ, self.accumulate, self.key)

    @override
    def peek(self) -> Any:
        """Return what was collected; MISSING if that is nothing."""
        return self.values or MISSING

    @override
    def get(self) -> Sequence[Value]:
        """Return what was collected. Raises EmptyChannelError."""
        return list(super().get())

    @override
    def update(self, values: Sequence[Value | list[Value]]) -> bool:
        """Collect the writes; unless it accumulates, those of earlier supersteps go."""
        added = [item for value in values for item in (value if isinstance(value, list) else (value,))]
        if self.accumulate:
            if added:
                self.values = [*self.values, *added]
            return bool(added)
        changed = bool(added or self.values)
        self.values = added
        return changed

    @override
    def check(self, values: Sequence[Value | list[Value]]) -> None:
        """Any number of writes is fine."""
        return

    @override
    def restore(self, stored: Any) -> None:
        """Take the stored list. Raises TypeError for anything else: a range could be gone through for ever."""
        if not isinstance(stored, (list, tuple)):
            msg = f"a list is wanted, not a {type(stored).__name__}"
            raise TypeError(msg)
        self.values = list(stored)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topic) and other.accumulate == self.accumulate
