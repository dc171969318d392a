"""The channel contract: one named cell of state.

A channel is pure: it folds the values written in one superstep into what it holds. It knows nothing of versions,
tasks or storage; engine/applying does.
"""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Generic, Self

from typing_extensions import TypeVar

from runtime.errors import EmptyChannelError, ErrorCode, InvalidUpdateError, create_error_message

Value = TypeVar("Value", default=Any)
Update = TypeVar("Update", default=Any)


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"  # so that a copy is the same object


MISSING: Final[Any] = _Missing()
"""No value; distinct from None, which is one."""


class BaseChannel(Generic[Value, Update]):
    """One cell. ``typ`` is the declared type, ``key`` the name under which the graph holds it.

    Channels are equal when they fold alike, whatever they hold. They have no hash: ``typing`` keeps one ``Annotated``
    for equal hashable metadata, and two keys would then share the channel that was declared first.
    """

    __slots__ = ("key", "typ")

    volatile: ClassVar[bool] = False
    """Whether a superstep without a write changes it."""
    deferred: ClassVar[bool] = False
    """Whether it waits for ``finish()``."""
    stored: ClassVar[bool] = True
    """Whether checkpoints keep it."""
    folds: ClassVar[bool] = False
    """Whether it runs the user's own code (a reducer) on writes."""
    appends: ClassVar[bool] = False
    """Whether it mostly grows at the end, so that storage may keep additions (see engine/checkpointing)."""
    merges: ClassVar[bool] = False
    """Whether it merges dicts into a dict, so that storage may keep the keys that were written (``take_keys``)."""

    def __init__(self, typ: Any = object, key: str = "") -> None:
        self.typ = typ
        self.key = key

    @property
    def ValueType(self) -> Any:  # noqa: N802 - LangGraph's public name
        """The type of what readers see."""
        return self.typ

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - LangGraph's public name
        """The type of what is written."""
        return self.typ

    def fresh(self) -> Self:
        """Return an empty channel of the same kind."""
        raise TypeError(self.__class__.__name__)

    def get(self) -> Value:
        """Return the value. Raises EmptyChannelError."""
        value = self.peek()
        if value is MISSING:
            msg = f"Channel {self.key!r} is empty."
            raise EmptyChannelError(msg)
        return value  # type: ignore[no-any-return]

    def peek(self) -> Any:
        """Return the value that readers see, or MISSING."""
        return MISSING

    def is_available(self) -> bool:
        """Tell whether there is a value to read."""
        return self.peek() is not MISSING

    def update(self, values: Sequence[Update]) -> bool:
        """Fold one superstep's writes, in task order; an empty sequence means none. Return whether it changed."""
        raise TypeError(self.__class__.__name__)

    def check(self, values: Sequence[Update]) -> None:
        """Raise what ``update(values)`` would raise, without changing anything."""
        self.copy().update(values)

    def consume(self) -> bool:
        """A subscriber has read it. Return whether it changed."""
        return False

    def finish(self) -> bool:
        """The run is about to end. Return whether it changed."""
        return False

    def checkpoint(self) -> Any:
        """Return what to store, or MISSING."""
        return self.peek()

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel of this kind that holds what was stored (MISSING: empty)."""
        channel = self.fresh()
        if checkpoint is not MISSING:
            channel.restore(checkpoint)
        return channel

    def restore(self, stored: Any) -> None:
        """Take what ``checkpoint()`` returned."""
        raise TypeError(self.__class__.__name__)

    def take_keys(self) -> set[Any] | None:
        """Return the keys of a merged dict that were written since the last call; None if they are not known."""
        return None

    def copy(self) -> Self:
        """Return an independent channel with the same value."""
        return self.from_checkpoint(self.checkpoint())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(key={self.key!r}, value={self.peek()!r})"


def detached(value: Any) -> Any:
    """Return a container copied one level deep, anything else as it is.

    Made to be cheap: one look-up by exact type, which for a subclass of a container is filled in when first met.
    """
    copier = _COPIERS.get(type(value), _met)
    return value if copier is None else copier(value)


def _met(value: Any) -> Any:
    copier = _copied if isinstance(value, _CONTAINERS) else None
    if len(_COPIERS) < _REMEMBERED:
        _COPIERS[type(value)] = copier
    return value if copier is None else copier(value)


def _copied(value: Any) -> Any:
    """Return a copy of a container, made by its class; what that does not let be copied stays as it is."""
    try:
        return copy.copy(value)
    except Exception:  # noqa: BLE001 - code of the value's class
        return value


_CONTAINERS: Final = (list, dict, set, deque, bytearray)
_COPIERS: Final[dict[type, Callable[[Any], Any] | None]] = {
    **dict.fromkeys((str, int, float, bool, type(None), bytes, tuple)),
    list: list.copy,
    dict: dict.copy,
    set: set.copy,
    deque: deque.copy,
    defaultdict: defaultdict.copy,
    OrderedDict: OrderedDict.copy,
    Counter: Counter.copy,
    bytearray: bytearray.copy,
}
_REMEMBERED: Final = 4096
"""So many types at most, as remembering a class keeps it alive."""


def one_value(channel: BaseChannel[Any, Any], values: Sequence[Any]) -> None:
    """Refuse more than one write in a superstep."""
    if len(values) != 1:
        raise InvalidUpdateError(
            create_error_message(
                message=f"At key '{channel.key}': Can receive only one value per step. "
                "Use an Annotated key to handle multiple values.",
                error_code=ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE,
            )
        )
