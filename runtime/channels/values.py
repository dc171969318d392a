"""Channels that hold one value: the last one, any one, or the one of the preceding superstep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

from typing_extensions import override

from runtime.channels.base import MISSING, BaseChannel, Value, one_value


class _Cell(BaseChannel[Value, Value], Generic[Value]):
    """What the single-value channels share."""

    __slots__ = ("value",)

    def __init__(self, typ: Any = object, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Any = MISSING

    def fresh(self) -> Self:
        """Return an empty one of the same type."""
        return type(self)(self.typ, self.key)

    def peek(self) -> Any:
        """Return the value, or MISSING."""
        return self.value

    def is_available(self) -> bool:
        """Tell whether there is a value."""
        return self.value is not MISSING

    def restore(self, stored: Any) -> None:
        """Take the stored value as it is."""
        self.value = stored

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)


class LastValue(_Cell[Value]):
    """Holds the last value; takes one write per superstep."""

    __slots__ = ()

    @override
    def update(self, values: Sequence[Value]) -> bool:
        """Take the one write, if there is one. Raises InvalidUpdateError for several."""
        if not values:
            return False
        if len(values) != 1:
            one_value(self, values)
        self.value = values[0]
        return True

    @override
    def check(self, values: Sequence[Value]) -> None:
        """Raise InvalidUpdateError for several writes."""
        if values:
            one_value(self, values)


class LastValueAfterFinish(BaseChannel[Value, Value]):
    """Holds the last of many writes, readable once the run would otherwise end (deferred nodes)."""

    __slots__ = ("finished", "value")
    deferred: ClassVar[bool] = True

    def __init__(self, typ: Any = object, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Any = MISSING
        self.finished = False

    @override
    def fresh(self) -> Self:
        """Return an empty one of the same type."""
        return type(self)(self.typ, self.key)

    @override
    def peek(self) -> Any:
        """Return the value once the run would otherwise end; MISSING before."""
        return self.value if self.finished else MISSING

    @override
    def update(self, values: Sequence[Value]) -> bool:
        """Take the last write, and wait again for the end of the run."""
        if not values:
            return False
        self.finished = False
        self.value = values[-1]
        return True

    @override
    def check(self, values: Sequence[Value]) -> None:
        """Any number of writes is fine."""
        return

    @override
    def consume(self) -> bool:
        """Start over once it has been read."""
        if self.finished:
            self.finished = False
            self.value = MISSING
            return True
        return False

    @override
    def finish(self) -> bool:
        """Let the value be read."""
        if not self.finished and self.value is not MISSING:
            self.finished = True
            return True
        return False

    @override
    def checkpoint(self) -> Any:
        """Return the value with whether it can be read; MISSING if there is none."""
        return MISSING if self.value is MISSING else (self.value, self.finished)

    @override
    def restore(self, stored: Any) -> None:
        """Take both back. Raises TypeError for anything else."""
        if not isinstance(stored, (tuple, list)) or len(stored) != len(("value", "finished")):
            msg = f"a value and whether it can be read are wanted, not a {type(stored).__name__}"
            raise TypeError(msg)
        self.value, self.finished = stored[0], bool(stored[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LastValueAfterFinish)


class AnyValue(_Cell[Value]):
    """Holds the last of many writes, which are taken to be equal; cleared by a superstep without one."""

    __slots__ = ()
    volatile: ClassVar[bool] = True

    @override
    def update(self, values: Sequence[Value]) -> bool:
        """Take the last write; without one, become empty."""
        if values:
            self.value = values[-1]
            return True
        changed = self.value is not MISSING
        self.value = MISSING
        return changed

    @override
    def check(self, values: Sequence[Value]) -> None:
        """Any number of writes is fine."""
        return


class EphemeralValue(_Cell[Value]):
    """Holds a value for one superstep. ``guard``: take one write only; else the last of many."""

    __slots__ = ("guard",)
    volatile: ClassVar[bool] = True

    def __init__(self, typ: Any = object, guard: bool = True, key: str = "") -> None:  # noqa: FBT001, FBT002 - as in LangGraph
        super().__init__(typ, key)
        self.guard = guard

    @override
    def fresh(self) -> Self:
        """Return an empty one with the same guard."""
        return type(self)(self.typ, self.guard, self.key)

    @override
    def update(self, values: Sequence[Value]) -> bool:
        """Take the write, or the last of several; without one, become empty. Raises InvalidUpdateError if guarded."""
        if values:
            if self.guard and len(values) != 1:
                one_value(self, values)
            self.value = values[-1]
            return True
        changed = self.value is not MISSING
        self.value = MISSING
        return changed

    @override
    def check(self, values: Sequence[Value]) -> None:
        """Raise InvalidUpdateError for several writes, if guarded."""
        if values and self.guard:
            one_value(self, values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EphemeralValue) and other.guard == self.guard


class UntrackedValue(_Cell[Value]):
    """Like LastValue, never stored: it is lost when a run is resumed."""

    __slots__ = ("guard",)
    stored: ClassVar[bool] = False

    def __init__(self, typ: Any = object, guard: bool = True, key: str = "") -> None:  # noqa: FBT001, FBT002 - as in LangGraph
        super().__init__(typ, key)
        self.guard = guard

    @override
    def fresh(self) -> Self:
        """Return an empty one with the same guard."""
        return type(self)(self.typ, self.guard, self.key)

    @override
    def update(self, values: Sequence[Value]) -> bool:
        """Take the write, or the last of several. Raises InvalidUpdateError if guarded."""
        if not values:
            return False
        if self.guard:
            one_value(self, values)
        self.value = values[-1]
        return True

    @override
    def check(self, values: Sequence[Value]) -> None:
        """Raise InvalidUpdateError for several writes, if guarded."""
        if values and self.guard:
            one_value(self, values)

    @override
    def checkpoint(self) -> Any:
        """Store nothing."""
        return MISSING

    def restore(self, stored: Any) -> None:
        """Stay empty: what was stored is from before the key became untracked."""

    @override
    def copy(self) -> Self:
        """Return one with the same value, which no checkpoint would hand over."""
        channel = self.fresh()
        channel.value = self.value
        return channel

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntrackedValue) and other.guard == self.guard
