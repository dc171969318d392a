"""Channels that fold: a binary operator, or a reducer over all writes of a superstep."""

from __future__ import annotations

import collections.abc
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Final, Self, get_origin

from typing_extensions import override

from runtime.channels.base import MISSING, BaseChannel, Value, detached
from runtime.errors import ErrorCode, InvalidUpdateError, create_error_message
from runtime.types.command import Overwrite
from runtime.types.constants import OVERWRITE

_ABSTRACT: dict[Any, type] = {
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}


def initial_of(typ: Any) -> Any:
    """Return the empty value of a type (list -> [], int -> 0, abstract collections by their concrete kin)."""
    while get_origin(typ) is Annotated:
        typ = typ.__origin__
    origin = get_origin(typ) or typ
    origin = _ABSTRACT.get(origin, origin)
    try:
        return origin()
    except Exception:  # noqa: BLE001 - a type that has no empty value starts without one
        return MISSING


def overwritten(write: Any) -> tuple[bool, Any]:
    """Tell whether a write is an Overwrite (in any of its forms), and its value."""
    if isinstance(write, Overwrite):
        return True, write.value
    if isinstance(write, dict):
        if len(write) == 1 and OVERWRITE in write:
            return True, write[OVERWRITE]
        if len(write) == 2 and write.get("type") == OVERWRITE and "value" in write:  # noqa: PLR2004 - its two keys
            return True, write["value"]
    return False, None


def one_overwrite(key: str) -> InvalidUpdateError:
    """Return the error for two Overwrites in one superstep."""
    return InvalidUpdateError(
        create_error_message(
            message=f"At key '{key}': Can receive only one Overwrite value per step.",
            error_code=ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE,
        )
    )


def replacement(key: str, values: Sequence[Any]) -> tuple[bool, Any]:
    """Return whether an Overwrite among the writes replaces the value, and with what."""
    found, value = False, None
    for write in values:
        if type(write) in (Overwrite, dict):
            is_overwrite, replaced = overwritten(write)
            if is_overwrite:
                if found:
                    raise one_overwrite(key)
                found, value = True, replaced
    return found, value


class BinaryOperatorAggregate(BaseChannel[Value, Value]):
    """Folds writes with a binary operator, left to right in task order.

    The first value is ``typ()`` where that exists; otherwise the first write becomes the value as it is. An operator
    may change its left operand in place: it gets a copy, one level deep, so neither a value already read nor a write
    changes under it.
    """

    __slots__ = ("_keys", "operator", "value")
    folds: ClassVar[bool] = True

    def __init__(self, typ: Any, operator: Callable[[Any, Any], Any], key: str = "") -> None:
        super().__init__(typ, key)
        self.operator = operator
        self.value = initial_of(typ)
        self._keys: set[Any] | None = None
        """See ``take_keys``."""

    @property
    def appends(self) -> bool:  # type: ignore[override]
        """List and text concatenation only ever adds at the end; message reducers mostly do."""
        return self.operator in _APPENDING or getattr(self.operator, "appends", False)

    @property
    def merges(self) -> bool:  # type: ignore[override]
        """Only ``operator.or_`` is known to take all that was written and to leave the rest as it is."""
        return self.operator is operator.or_ and type(self) is BinaryOperatorAggregate

    @override
    def take_keys(self) -> set[Any] | None:
        keys, self._keys = self._keys, set()
        return keys

    @override
    def fresh(self) -> Self:
        """Return an empty one: it holds the type's initial value, if it has one."""
        return type(self)(self.typ, self.operator, self.key)

    @override
    def peek(self) -> Any:
        """Return the folded value, or MISSING."""
        return self.value

    @override
    def is_available(self) -> bool:
        """Tell whether anything was folded, or the type has an initial value."""
        return self.value is not MISSING

    @override
    def update(self, values: Sequence[Value]) -> bool:
        """Fold the writes; an Overwrite replaces the value. Raises what the operator raises."""
        if not values:
            return False
        self.value = self._folded(values)
        self._note(values)
        return True

    def _note(self, values: Sequence[Any]) -> None:
        """Note the keys that were written; none are known once anything but plain dicts was merged."""
        if self._keys is None:
            return
        if self.merges and type(self.value) is dict and all(map(_is_merged, values)):
            self._keys.update(*values)
        else:
            self._keys = None

    @override
    def check(self, values: Sequence[Value]) -> None:
        """Fold the writes without keeping the result. Raises what the operator raises."""
        if values:
            self._folded(values)

    def _folded(self, values: Sequence[Value]) -> Any:
        replaced, value = replacement(self.key, values)
        if replaced:
            return value
        fold = self.operator
        first, rest = (values[0], values[1:]) if self.value is MISSING else (self.value, values)
        value = first if not rest or fold in _PURE else detached(first)
        for write in rest:
            value = fold(value, write)
        return value

    @override
    def restore(self, stored: Any) -> None:
        """Take the stored value as it is."""
        self.value = stored
        self._keys = set() if self.merges else None

    @override
    def copy(self) -> Self:
        """Return one with the same value, which is shared until it is folded on."""
        channel = self.__class__.__new__(self.__class__)
        channel.typ, channel.key, channel.operator, channel.value = self.typ, self.key, self.operator, self.value
        channel._keys = None if self._keys is None else set(self._keys)  # noqa: SLF001 - its own kind
        return channel

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryOperatorAggregate):
            return False
        if "<lambda>" in (getattr(self.operator, "__name__", ""), getattr(other.operator, "__name__", "")):
            return True
        return bool(self.operator == other.operator)


_TELLING: Final = frozenset({str, int, bool, bytes, type(None)})
"""Kinds of keys that are equal to themselves once they are read again."""


def _is_merged(write: Any) -> bool:
    """Tell whether a write is merged key by key, and its keys can be found again."""
    return type(write) is dict and not overwritten(write)[0] and _TELLING.issuperset(map(type, write))


_PURE: Final = (operator.add, operator.concat, operator.or_, operator.and_)
_APPENDING: Final = (operator.add, operator.concat, operator.iadd, operator.iconcat)


class DeltaChannel(BaseChannel[Value, Any]):
    """Folds all writes of a superstep in one call: ``reducer(value, [write, ...])``.

    The reducer must be deterministic and give the same result however writes are batched; like an operator it gets a
    copy, one level deep, that it may change. Without an empty value of the type, the first write becomes the value.
    Storage cost follows the channel's kind of change like that of any other channel (see engine/checkpointing), so
    ``snapshot_frequency`` is accepted for compatibility and does not change what is read back.
    """

    __slots__ = ("reducer", "snapshot_frequency", "value")
    folds: ClassVar[bool] = True
    appends: ClassVar[bool] = True

    def __init__(
        self,
        reducer: Callable[[Any, Sequence[Any]], Any],
        typ: Any = None,
        snapshot_frequency: int = 100,
        key: str = "",
    ) -> None:
        super().__init__(list if typ is None else typ, key)
        if snapshot_frequency < 1:
            msg = f"snapshot_frequency must be at least 1, got {snapshot_frequency}."
            raise ValueError(msg)
        self.reducer = reducer
        self.snapshot_frequency = snapshot_frequency
        self.value = initial_of(self.typ)

    @override
    def fresh(self) -> Self:
        """Return an empty one with the same reducer."""
        return type(self)(self.reducer, self.typ, self.snapshot_frequency, self.key)

    @override
    def peek(self) -> Any:
        """Return the folded value, or MISSING."""
        return self.value

    @override
    def update(self, values: Sequence[Any]) -> bool:
        """Hand the reducer all writes at once; an Overwrite replaces the value. Raises what the reducer raises."""
        if not values:
            return False
        replaced, value = replacement(self.key, values)
        self.value = value if replaced else self._folded(values)
        return True

    def _folded(self, values: Sequence[Any]) -> Any:
        if self.value is not MISSING:
            return self.reducer(detached(self.value), list(values))
        first, rest = values[0], list(values[1:])
        return self.reducer(detached(first), rest) if rest else first

    @override
    def restore(self, stored: Any) -> None:
        """Take the stored value as it is."""
        self.value = stored

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeltaChannel) and other.reducer == self.reducer
