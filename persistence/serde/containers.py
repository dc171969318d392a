"""How containers are stored."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from persistence.serde import tags
from persistence.serde.writing import Refusal, Write, Writer, encode, pack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec.msgpack import Ext

    from persistence.serde.reading import Read, Reader

_FACTORIES: Final[dict[str, Any]] = {
    factory.__name__: factory
    for factory in (
        bool, bytearray, bytes, complex, dict, float, frozenset, int, list, set, str, tuple,
        Counter, OrderedDict, deque,
    )
}  # fmt: skip


def _write_list(writer: Writer, value: list[object], depth: int) -> object:
    if writer.untouched.issuperset(map(type, value)):
        return value
    return writer.items(value, depth)


def _write_dict(writer: Writer, value: dict[object, object], depth: int) -> object:
    if not value:
        return value
    native = writer.native(value, depth)
    return pack(tags.MAPPING, writer.pairs(value, depth)) if native is None else native


def _write_tuple(writer: Writer, value: tuple[object, ...], depth: int) -> Ext:
    return pack(tags.TUPLE, writer.items(value, depth))


def _write_set(writer: Writer, value: set[object], depth: int) -> Ext:
    return pack(tags.SET, writer.items(value, depth))


def _write_frozenset(writer: Writer, value: frozenset[object], depth: int) -> Ext:
    return pack(tags.FROZENSET, writer.items(value, depth))


def _write_sorted_set(writer: Writer, value: set[object], depth: int) -> Ext:
    return pack(tags.SET, sorted(writer.items(value, depth), key=encode))


def _write_sorted_frozenset(writer: Writer, value: frozenset[object], depth: int) -> Ext:
    return pack(tags.FROZENSET, sorted(writer.items(value, depth), key=encode))


def _write_ordered_dict(writer: Writer, value: OrderedDict[object, object], depth: int) -> Ext:
    refuse_attributes(value)
    return pack(tags.ORDERED_DICT, writer.pairs(value, depth))


def _write_counter(writer: Writer, value: Counter[object], depth: int) -> Ext:
    refuse_attributes(value)
    return pack(tags.COUNTER, writer.pairs(value, depth))


def _write_default_dict(writer: Writer, value: defaultdict[object, object], depth: int) -> Ext:
    factory: Any = value.default_factory
    name = None
    if factory is not None:
        name = str(getattr(factory, "__name__", ""))
        if _FACTORIES.get(name) is not factory:
            msg = (
                f"it is a defaultdict whose default_factory {factory!r} has no stored form; "
                f"use one of {', '.join(sorted(_FACTORIES))}, or a dict"
            )
            raise Refusal(msg)
    return pack(tags.DEFAULT_DICT, [name, *writer.pairs(value, depth)])


def _write_deque(writer: Writer, value: deque[object], depth: int) -> Ext:
    return pack(tags.DEQUE, [writer.convert(value.maxlen, depth), *writer.items(value, depth)])


def _write_span(writer: Writer, value: range | slice, depth: int) -> Ext:
    code = tags.RANGE if type(value) is range else tags.SLICE
    return pack(code, writer.items((value.start, value.stop, value.step), depth))


def refuse_attributes(value: Any) -> None:
    """Refuse a container that somebody hung attributes on, which would be lost."""
    if value.__dict__:
        msg = f"it is a {type(value).__name__} with attributes of its own ({', '.join(value.__dict__)})"
        raise Refusal(msg)


def _read_tuple(reader: Reader, data: memoryview) -> object:
    return reader.tuple(data)


def _read_set(reader: Reader, data: memoryview) -> object:
    return reader.set(data)


def _read_frozenset(reader: Reader, data: memoryview) -> object:
    return reader.frozenset(data)


def _paired(items: Iterable[object]) -> Iterable[tuple[Any, Any]]:
    each = iter(items)
    return zip(each, each, strict=True)


def _read_mapping(reader: Reader, data: memoryview) -> object:
    return dict(_paired(reader.array(data)))


def _read_ordered_dict(reader: Reader, data: memoryview) -> object:
    return OrderedDict(_paired(reader.array(data)))


def _read_counter(reader: Reader, data: memoryview) -> object:
    counter: Counter[Any] = Counter()
    dict.update(counter, _paired(reader.array(data)))  # Counter.update would add
    return counter


def _read_default_dict(reader: Reader, data: memoryview) -> object:
    name, *items = reader.array(data)
    return defaultdict(None if name is None else _FACTORIES[name], _paired(items))


def _read_deque(reader: Reader, data: memoryview) -> object:
    maxlen, *items = reader.array(data)
    return deque(items, maxlen)


def _read_range(reader: Reader, data: memoryview) -> object:
    start, stop, step = reader.array(data)
    return range(start, stop, step)


def _read_slice(reader: Reader, data: memoryview) -> object:
    start, stop, step = reader.array(data)
    return slice(start, stop, step)


WRITES: Final[dict[type, Write]] = {
    list: _write_list,
    dict: _write_dict,
    tuple: _write_tuple,
    set: _write_set,
    frozenset: _write_frozenset,
    OrderedDict: _write_ordered_dict,
    Counter: _write_counter,
    defaultdict: _write_default_dict,
    deque: _write_deque,
    range: _write_span,
    slice: _write_span,
}
"""How each exact container type is written."""

SORTED_WRITES: Final[dict[type, Write]] = {
    set: _write_sorted_set,
    frozenset: _write_sorted_frozenset,
}
"""How sets are written where the order must not depend on the process: texts hash differently in each."""

READS: Final[dict[int, Read]] = {
    tags.TUPLE: _read_tuple,
    tags.SET: _read_set,
    tags.FROZENSET: _read_frozenset,
    tags.MAPPING: _read_mapping,
    tags.ORDERED_DICT: _read_ordered_dict,
    tags.DEFAULT_DICT: _read_default_dict,
    tags.COUNTER: _read_counter,
    tags.DEQUE: _read_deque,
    tags.RANGE: _read_range,
    tags.SLICE: _read_slice,
}
"""How each container code is read."""
