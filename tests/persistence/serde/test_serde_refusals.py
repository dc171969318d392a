"""What cannot be stored as it is is refused when written, with its type, the way to it and what to do."""

from __future__ import annotations

import array
import dataclasses
import datetime  # noqa: ICN001 - the module, next to zoneinfo
import enum
import io
import re
import sys
import types
import zoneinfo
from collections import Counter, OrderedDict, defaultdict
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pydantic
import pytest

from persistence.errors import CorruptDataError, SerializationError
from persistence.serde import times
from persistence.serde.serializer import Serializer
from persistence.serde.writing import MAX_DEPTH, PLAIN_DEPTH
from tests.persistence.serde.samples import Color, Pair, Point, Rec, registered_serializer, same


class Plain:
    """A class without a form that could be stored."""

    def __init__(self) -> None:
        self.x = 1


class FixedOffset(datetime.tzinfo):
    """A zone of somebody else's making."""

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
        """Return zero."""
        return datetime.timedelta()

    def dst(self, _: datetime.datetime | None) -> None:
        """Know nothing of it."""

    def tzname(self, _: datetime.datetime | None) -> str:
        """Return a name."""
        return "mine"


class LooseBag(OrderedDict[Any, Any]):
    """A subclass of a class that is not a builtin."""


class ReadingError(UnicodeDecodeError):
    """An exception whose args do not make it again."""

    def __init__(self, reason: str) -> None:
        super().__init__("utf-8", b"", 0, 1, reason)
        self.args = (reason,)


class SlottedError(Exception):
    """An exception that keeps something where no dict is."""

    __slots__ = ("more",)


class RegisteredSwitch(enum.Enum):
    """An enum that invents members."""

    ON = 1

    @classmethod
    def _missing_(cls, value: object) -> RegisteredSwitch:
        member = object.__new__(cls)
        member._name_, member._value_ = str(value), 2
        return member


class LoosePair(Pair):
    """A named tuple that may have attributes."""


@dataclasses.dataclass
class DataDict(dict[str, int]):
    """A dataclass that is not laid out like an object."""

    x: int = 1


class OddNumber(np.int16):
    """A scalar of somebody's own."""


def _bare_struct() -> Rec:
    struct = Rec(1)
    del struct.a
    return struct


def _generator() -> Any:
    yield 1


def _attributed(value: Any) -> Any:
    value.extra = 1
    return value


def _zone_from_file() -> zoneinfo.ZoneInfo:
    for root in zoneinfo.TZPATH:
        try:
            with open(f"{root}/Europe/Paris", "rb") as file:  # noqa: PTH123
                return zoneinfo.ZoneInfo.from_file(file)
        except OSError:
            continue
    pytest.skip("no zone files")


REFUSED: dict[str, tuple[Any, str]] = {
    "function": (lambda: 0, "function"),
    "builtin": (len, "builtin"),
    "class": (int, "type"),
    "module": (sys, "module"),
    "generator": (_generator(), "generator"),
    "file": (io.BytesIO(), "BytesIO"),
    "memoryview": (memoryview(b"a"), "memoryview"),
    "object": (object(), "object"),
    "plain instance": (Plain(), "Plain"),
    "array": (array.array("i"), "array"),
    "mapping proxy": (types.MappingProxyType({}), "mappingproxy"),
    "dict view": ({}.keys(), "dict_keys"),
    "not implemented": (NotImplemented, "NotImplementedType"),
    "msgspec extension": (msgspec.msgpack.Ext(1, b""), "Ext"),
    "msgspec raw": (msgspec.Raw(b"\x01"), "Raw"),
    "default dict of lambda": (defaultdict(lambda: 0), "default_factory"),
    "default dict of class": (defaultdict(Plain), "default_factory"),
    "ordered dict with attributes": (_attributed(OrderedDict()), "attributes"),
    "counter with attributes": (_attributed(Counter()), "attributes"),
    "foreign zone": (datetime.datetime(2024, 1, 1, tzinfo=FixedOffset()), "tzinfo"),
    "namespace": (types.SimpleNamespace(), "SimpleNamespace"),
    "object array": (np.array([object()]), "Python objects"),
    "structured objects": (np.zeros(1, [("a", "O")]), "Python objects"),
    "masked array": (np.ma.masked_array([1]), "MaskedArray"),
    "record array": (np.rec.array([(1,)]), "recarray"),
    "new texts": (np.array(["a"], np.dtypes.StringDType()), "dtype"),
    "ordered dict subclass": (LooseBag(), "LooseBag"),
    "unmade exception": (ReadingError("x"), "ReadingError"),
    "exception with slots": (SlottedError(), "SlottedError"),
    "invented member": (RegisteredSwitch("x"), "not one of the enum's members"),
    "named tuple with attributes": (_attributed(LoosePair(1)), "attributes"),
    "dataclass on a dict": (DataDict(), "DataDict"),
    "struct without a field": (_bare_struct(), "unset field"),
    "array of records": (np.array([(1,)], np.dtype((np.record, [("a", "i4")]))), "dtype"),
    "array scalar subclass": (OddNumber(3), "OddNumber"),
    "record scalar": (np.rec.array([(1,)], [("a", "i4")])[0], "record"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
def test_what_has_no_form_is_refused_in_every_mode(name: str, *, strict: bool) -> None:
    """Strict or not, and registered or not, the refusal names the type and the way to it."""
    value, word = REFUSED[name]
    serializer = Serializer(strict=strict)
    serializer.register_types(
        [Point, Rec, Plain, LooseBag, ReadingError, SlottedError, RegisteredSwitch, LoosePair, DataDict]
    )
    with pytest.raises(SerializationError, match=re.escape("the value at ['user'][3].x: ") + ".*" + word):
        serializer.dumps_typed({"user": [0, 1, 2, Point(value)]})


def test_a_serialization_error_is_a_type_error() -> None:
    """Other runtimes raise TypeError here."""
    with pytest.raises(TypeError):
        Serializer().dumps_typed(object())


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "Cannot store the value: "),
        ({"a": object()}, "the value at ['a']"),
        ({1: {"b": (0, object())}}, "the value at [1]['b'][1]"),
        ({(object(),): 1}, ".keys()[(<object object at"),
        ({(1, 2): {"x": object()}}, "the value at [(1, 2)]['x']"),
        (Rec(a=[object()]), "the value at .a[0]"),
        (Pair(1, object()), "the value at [1]"),
        (ValueError(object()), "the value at [0]"),
        ({"k" * 100: object()}, "kkk…]"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_the_error_tells_the_way(value: Any, path: str) -> None:
    """The path is one that a reader can follow, and stays short."""
    with pytest.raises(SerializationError) as caught:
        registered_serializer().dumps_typed(value)
    assert path in str(caught.value)


def test_zones_that_cannot_be_found_again() -> None:
    """A zone read from a file has no name to look it up by."""
    with pytest.raises(SerializationError, match="time zone"):
        Serializer().dumps_typed(datetime.datetime(2024, 1, 1, tzinfo=_zone_from_file()))


def test_without_a_zone_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a database knows the zones of the tzdata package, or none."""
    zone = zoneinfo.ZoneInfo("Europe/Paris")
    typed = Serializer().dumps_typed(zone)
    monkeypatch.setattr(times, "_is_known", times._is_known.__wrapped__)
    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    monkeypatch.setattr(zoneinfo, "available_timezones", lambda: {"Europe/Paris"})
    assert Serializer().loads_typed(typed) is zone
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    with pytest.raises(CorruptDataError, match="tzdata"):
        Serializer().loads_typed(typed)


def test_debug_patterns_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern that prints when it is compiled would print on every load."""
    pattern = re.compile("a", re.DEBUG)
    capsys.readouterr()
    with pytest.raises(SerializationError, match="DEBUG"):
        Serializer().dumps_typed(pattern)


@dataclasses.dataclass
class Unregistered:
    """A dataclass that nobody registers."""

    x: int = 1


class UnregisteredColor(enum.IntEnum):
    """An enum that nobody registers."""

    A = 1


class UnregisteredModel(pydantic.BaseModel):
    """A model that nobody registers."""


class UnregisteredStruct(msgspec.Struct):
    """A Struct that nobody registers."""


class UnregisteredPair(NamedTuple):
    """A named tuple that nobody registers."""

    a: int = 1


class UnregisteredError(Exception):
    """An exception that nobody registers."""


class UnregisteredText(str):
    """A subclass of str that nobody registers."""

    __slots__ = ()


class UnregisteredDict(dict[str, int]):
    """A subclass of dict that nobody registers."""


UNREGISTERED = [
    Unregistered(),
    UnregisteredColor.A,
    UnregisteredModel(),
    UnregisteredStruct(),
    UnregisteredPair(),
    UnregisteredError("e"),
    UnregisteredText("t"),
    UnregisteredDict(a=1),
]


@pytest.mark.parametrize("value", UNREGISTERED, ids=lambda value: type(value).__name__)
def test_unregistered_classes_are_refused_with_help(value: Any) -> None:
    """Whatever msgspec would make of it, an unregistered class is never stored as something else."""
    for wrapped in (value, [value], {"a": {"b": value}}, (value,)):
        with pytest.raises(SerializationError, match=rf"register_types\({type(value).__name__}\)"):
            Serializer().dumps_typed(wrapped)


@pytest.mark.parametrize("value", UNREGISTERED, ids=lambda value: type(value).__name__)
def test_a_lenient_serializer_registers_what_it_writes(value: Any) -> None:
    """Unless strict, what was written in a process can be read in it, by this serializer alone."""
    serializer = Serializer(strict=False)
    typed = serializer.dumps_typed([value])
    assert same(serializer.loads_typed(typed), [value])
    assert serializer.registry.knows(type(value))


def _cycles() -> dict[str, Any]:
    plain: list[Any] = []
    plain += [plain, plain]
    mapping: dict[str, Any] = {}
    mapping["self"] = mapping
    point = Point(1)
    point.x = point
    struct = Rec(1)
    struct.a = (struct, struct)
    return {"list": plain, "dict": mapping, "dataclass": point, "struct": struct, "tuple in list": [(plain,)]}


@pytest.mark.parametrize("name", _cycles())
def test_cycles_are_refused(name: str) -> None:
    """A value that contains itself is refused as such, and at once."""
    with pytest.raises(SerializationError, match="contains itself"):
        registered_serializer().dumps_typed(_cycles()[name])


def _nested(levels: int, wrap: Any) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS: dict[str, Any] = {
    "lists": lambda value: [value],
    "dicts": lambda value: {"a": value},
    "tuples": lambda value: (value,),
    "keys": lambda value: {(1,): value},
    "dataclasses": Point,
    "structs": Rec,
    "named tuples": Pair,
    "exceptions": ValueError,
}


@pytest.mark.parametrize("name", WRAPS)
def test_absurd_nesting_is_refused(name: str) -> None:
    """Far beyond the limit the error is the same as just beyond it."""
    serializer = registered_serializer()
    limit = PLAIN_DEPTH if name in {"lists", "dicts"} else MAX_DEPTH
    for levels in (limit + 2, 5_000):
        value = _nested(levels, WRAPS[name])
        with pytest.raises(SerializationError, match=str(MAX_DEPTH)):
            serializer.dumps_typed(value)


@pytest.mark.parametrize("leaf", [1, 196, b"x", "\u0104", 1.5])
@pytest.mark.parametrize("name", ["lists", "dicts"])
def test_how_deep_plain_values_may_be_does_not_depend_on_what_they_hold(name: str, leaf: object) -> None:
    serializer = registered_serializer()
    value: Any = leaf
    for _ in range(PLAIN_DEPTH):
        value = WRAPS[name](value)
    assert serializer.loads_typed(serializer.dumps_typed(value)) == value
    with pytest.raises(SerializationError, match=str(MAX_DEPTH)):
        serializer.dumps_typed(WRAPS[name](value))


def _at_depth(frames: int, action: Any) -> Any:
    return action() if frames == 0 else _at_depth(frames - 1, action)


@pytest.mark.parametrize("name", WRAPS)
def test_what_can_be_written_can_be_read_even_far_down_the_stack(name: str) -> None:
    """The limit leaves a reader room for frames of its own."""
    serializer = registered_serializer()
    levels = PLAIN_DEPTH
    while True:
        value = _nested(levels, WRAPS[name])
        try:
            typed = serializer.dumps_typed(value)
        except SerializationError:
            levels -= 1
        else:
            break
    assert levels >= MAX_DEPTH // 2 - 1
    read = _at_depth(120, lambda: serializer.loads_typed(typed))
    assert serializer.dumps_typed(read) == typed


def test_no_stack_left_is_a_typed_error() -> None:
    """Out of stack, writing and reading fail with this package's errors."""
    serializer = registered_serializer()
    typed = serializer.dumps_typed(_nested(100, WRAPS["tuples"]))

    def write_or_read(frames: int) -> None:
        limit = sys.getrecursionlimit()
        with pytest.raises(CorruptDataError, match="nested too deeply"):
            _at_depth(limit - frames, lambda: serializer.loads_typed(typed))
        with pytest.raises(SerializationError, match="nested too deeply"):
            _at_depth(limit - frames, lambda: serializer.dumps_typed(_nested(100, WRAPS["tuples"])))

    write_or_read(200)


def test_a_refused_value_leaves_the_serializer_as_it_was() -> None:
    """After a refusal the next value is written as if nothing had happened."""
    serializer = registered_serializer()
    with pytest.raises(SerializationError):
        serializer.dumps_typed([Color.RED, object()])
    assert serializer.loads_typed(serializer.dumps_typed([Color.RED])) == [Color.RED]


class Picky(msgspec.Struct):
    """A Struct that cannot be made without its ``__post_init__``, for no subclass can be made without a word."""

    def __init_subclass__(cls, *, word: str) -> None:
        super().__init_subclass__()

    def __post_init__(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("value", [Picky(), datetime.timezone(datetime.timedelta(), "\ud800")], ids=["Struct", "zone"])
def test_unforeseen_failures_are_typed_too(value: Any) -> None:
    """Whatever goes wrong while a value is written, the error is this package's and tells the cause."""
    serializer = Serializer()
    serializer.register_types([Picky])
    with pytest.raises(SerializationError, match=r"Cannot store a list: \w+Error: .+"):
        serializer.dumps_typed([value])
