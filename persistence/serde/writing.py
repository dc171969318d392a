"""From values to MessagePack that gives them back.

msgspec writes tuples, sets and named tuples as lists, enums as their values, dataclasses and dict subclasses as maps,
all silently. ormsgpack can be told to refuse them, so what it takes whole is plain (``plain_bytes``); everything else
is walked, and whatever needs a tag becomes an extension that msgspec writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from gc import get_referents
from typing import TYPE_CHECKING, Any, Final

import ormsgpack
from msgspec.msgpack import Encoder, Ext

if TYPE_CHECKING:
    from persistence.serde.catalog import Catalog

MAX_DEPTH: Final = 200
"""How deep a stored value may be nested: containers and objects on the way from the root, fields counting as one.

Reading needs three interpreter frames a level, of 1000 by default, and the caller has some too.
"""

PLAIN_DEPTH: Final = 255
"""How deep lists and dicts of exact builtins may be nested: what ormsgpack takes. Reading needs a frame a level."""

SCALARS: Final = frozenset({type(None), bool, int, float, str, bytes})
"""Exact types that msgspec writes and reads back as they are, as values and as keys of a dict."""

_PLAIN: Final = SCALARS | {list, dict}
_EXACT: Final = (
    ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
"""Everything but exact builtins is passed to a default function; as there is none, it is refused."""
_UNCHECKED: Final = frozenset({type(None), bool, float, bytes})
_FEW: Final = 16
_REPR_LIMIT: Final = 60
_LONG_PATH: Final = 16

encode: Final = Encoder().encode

Write = Callable[["Writer", Any, int], object]
"""Turns a value of one kind into what msgspec can write; the number is the depth of what it contains."""


class Refusal(Exception):  # noqa: N818 - a signal between walk and serializer
    """A value that cannot be stored, with the way to it, innermost step first."""

    def __init__(self, reason: str) -> None:
        """Start with an empty path; each level that it passes adds its own step."""
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def where(self) -> str:
        """Say where it is: ``the value at ['user'][3].name``; the middle of a long way is left out."""
        path = self.path[::-1]
        if len(path) > _LONG_PATH:
            path[_LONG_PATH - 4 : -4] = [f"…({len(path) - _LONG_PATH} levels)…"]
        return f"the value at {''.join(path)}" if path else "the value"


def is_plain_by_referents(value: object) -> bool:
    """Whether a list or dict holds exact builtins only, all the way down; before Python 3.13.

    Goes level by level, in C where there is much to look at: the referents of lists are their items, those of dicts
    their values and keys (dicts whose keys are exact text have only their values looked at), those of scalars nothing.
    Call it only with a value that msgspec could write, which is therefore finite.

    From 3.13 on, a dict that belongs to an instance may leave its values to that instance, and has no referents.
    """
    found = get_referents(value)
    for _ in range(PLAIN_DEPTH):
        if len(found) < _FEW:
            inner: list[object] = []
            for item in found:
                if type(item) not in SCALARS:
                    if type(item) not in _PLAIN:
                        return False
                    inner.append(item)
            if not inner:
                return True
            found = get_referents(*inner)
        else:
            if SCALARS.issuperset(map(type, found)):
                return True
            if not _PLAIN.issuperset(map(type, found)):
                return False
            found = get_referents(*found)
    return False


def is_plain_by_items(value: Any, levels: int = PLAIN_DEPTH - 1) -> bool:
    """Whether a list or dict holds exact builtins only, all the way down; a third as fast, on any Python."""
    if type(value) is dict:
        for key in value:
            if type(key) not in SCALARS:
                return False
        value = value.values()
    elif type(value) is not list:
        return False
    for item in value:
        if type(item) not in SCALARS and not (levels and is_plain_by_items(item, levels - 1)):
            return False
    return True


is_plain: Final = is_plain_by_referents if sys.version_info < (3, 13) else is_plain_by_items
"""Whether msgspec writes a list or dict, which it could write, without changing it."""


def plain_bytes(value: object) -> bytes | None:
    """Return the MessagePack of a list or dict that holds exact builtins only; None for any other, or one too deep.

    The proof is the encoder's, but for bytearrays, memoryviews and ormsgpack's own extensions, which it takes: where a
    byte could be the start of one, and where keys are not text, the value itself is looked at. Its fragments stand for
    what they hold.
    """
    try:
        packed = ormsgpack.packb(value, None, _EXACT)
    except TypeError:
        try:
            packed = encode(value)
        except Exception:  # noqa: BLE001 - the walk says better what is wrong
            return None
        return packed if is_plain(value) else None
    # fmt: off
    if (  # written out: two thirds of the time of a loop
        0xC4 in packed or 0xC5 in packed or 0xC6 in packed or 0xC7 in packed or 0xC8 in packed or 0xC9 in packed  # noqa: PLR2004
        or 0xD4 in packed or 0xD5 in packed or 0xD6 in packed or 0xD7 in packed or 0xD8 in packed  # noqa: PLR2004
    ) and not is_plain(value):
        return None
    # fmt: on
    return packed


class Writer:
    """Walks a value and tags what msgspec would flatten.

    A thorough writer also looks at each text and number, for lone surrogates and integers beyond 64 bits; it is used
    only after msgspec has met one.
    """

    __slots__ = ("_kinds", "catalog", "thorough", "untouched")

    def __init__(self, catalog: Catalog, kinds: Mapping[type, Write], *, thorough: bool) -> None:
        """Take the classes that may be stored and how each exact type is written."""
        self.catalog = catalog
        self.thorough = thorough
        self.untouched = _UNCHECKED if thorough else SCALARS
        self._kinds = kinds

    def convert(self, value: object, depth: int) -> object:
        """Return what msgspec can write for the value.

        Raises:
            Refusal: the value, or something in it, cannot be stored.
        """
        cls = type(value)
        if cls in self.untouched:
            return value
        if depth > MAX_DEPTH:
            msg = f"it is nested deeper than {MAX_DEPTH} levels, or contains itself"
            raise Refusal(msg)
        write = self._kinds.get(cls) or self.catalog.writer_for(cls)
        return write(self, value, depth + 1)

    def items(self, values: Iterable[object], depth: int) -> list[object]:
        """Convert the items of a sequence or set."""
        untouched, convert = self.untouched, self.convert
        out: list[object] = []
        try:
            for item in values:
                out.append(item if type(item) in untouched else convert(item, depth))  # noqa: PERF401 - see below
        except Refusal as refusal:
            refusal.path.append(f"[{len(out)}]")  # needs to know how far it came
            raise
        return out

    def pairs(self, mapping: Mapping[Any, object], depth: int) -> list[object]:
        """Convert a mapping to key, value, key, value ..."""
        convert = self.convert
        out: list[object] = []
        key: object = None
        try:
            for key, value in mapping.items():
                out.append(convert(key, depth))
                out.append(convert(value, depth))
        except Refusal as refusal:
            refusal.path.append(f"[{_short(key)}]" if len(out) % 2 else f".keys()[{_short(key)}]")
            raise
        return out

    def attributes(self, mapping: dict[str, object], depth: int) -> dict[str, object]:
        """Convert the attributes of an object; their names are text and stay."""
        untouched, convert = self.untouched, self.convert
        if untouched.issuperset(map(type, mapping.values())):
            return mapping
        out: dict[str, object] = {}
        name = ""
        try:
            for name, value in mapping.items():
                out[name] = value if type(value) in untouched else convert(value, depth + 1)
        except Refusal as refusal:
            refusal.path.append(f".{name}")
            raise
        return out

    def native(self, mapping: dict[Any, object], depth: int) -> dict[object, object] | None:
        """Convert a dict whose keys msgspec can write; None if there is another key."""
        untouched, convert = self.untouched, self.convert
        if not untouched.issuperset(map(type, mapping)) and not all(self._is_native_key(key) for key in mapping):
            return None
        if untouched.issuperset(map(type, mapping.values())):
            return mapping
        out: dict[object, object] = {}
        key: object = None
        try:
            for key, value in mapping.items():
                out[key] = value if type(value) in untouched else convert(value, depth)
        except Refusal as refusal:
            refusal.path.append(f"[{_short(key)}]")
            raise
        return out

    def _is_native_key(self, key: object) -> bool:
        return type(key) in SCALARS and type(self.convert(key, 0)) is not Ext


def pack(code: int, tree: object) -> Ext:
    """Return the extension of this code whose payload is a converted value."""
    return Ext(code, encode(tree))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _REPR_LIMIT else text[:_REPR_LIMIT] + "…"
