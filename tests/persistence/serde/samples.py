"""Values of every kind, classes to register, and what it means that two values are the same."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import ipaddress
import math
import pathlib
import re
import struct
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pydantic

from persistence.serde.serializer import Serializer

T = TypeVar("T")


class Color(enum.Enum):
    """An enum whose values cannot be told from plain ones."""

    RED = "red"
    GREEN = ("g", 1)
    CRIMSON = "red"  # noqa: PIE796 - an alias


class Level(enum.IntEnum):
    """An enum that equals numbers."""

    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    """An enum that equals text."""

    FAST = "fast"


class Perm(enum.Flag):
    """Flags."""

    R = 1
    W = 2
    X = 4


class IntPerm(enum.IntFlag):
    """Flags that keep unknown bits."""

    R = 1
    W = 2


@dataclasses.dataclass
class Point:
    """An ordinary dataclass."""

    x: Any
    y: Any = 0
    tags: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A dataclass that is hashable and does more than assign when it is made."""

    a: Any
    double: Any = dataclasses.field(init=False)
    shared: ClassVar[int] = 7

    def __post_init__(self) -> None:
        object.__setattr__(self, "double", (self.a, self.a))


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    """A dataclass without a dict."""

    a: Any
    b: Any = None


@dataclasses.dataclass
class Derived(Point):
    """A dataclass that keeps more than its fields, in a dict, a slot with a private name and a cache."""

    __slots__ = ("__hidden", "unset")
    z: Any = 3

    def __post_init__(self) -> None:
        self.__hidden = "h"
        self.made = "by post init"

    @functools.cached_property
    def cached(self) -> str:
        """Return something that is kept once asked for."""
        return "cached"

    @property
    def hidden(self) -> str:
        """Return what the private slot holds."""
        return self.__hidden


@dataclasses.dataclass
class Box(Generic[T]):
    """A generic dataclass."""

    item: T


class Rec(msgspec.Struct):
    """A Struct."""

    a: Any
    b: Any = msgspec.UNSET


class FrozenRec(msgspec.Struct, frozen=True, kw_only=True, tag="frozen"):
    """A hashable Struct that would change its values when it is made."""

    a: Any
    runs: ClassVar[list[Any]] = []

    def __post_init__(self) -> None:
        self.runs.append(self.a)


class OpenRec(msgspec.Struct, dict=True, rename="camel"):
    """A Struct with a dict, and other names in JSON."""

    some_name: Any


class Pair(NamedTuple):
    """A named tuple."""

    left: Any
    right: Any = None


OldPair = collections.namedtuple("OldPair", "left right")  # noqa: PYI024 - it is what is tested


class Inner(pydantic.BaseModel):
    """A model."""

    n: Any = 1


class Model(pydantic.BaseModel):
    """A model with all that a model can have, whose validator would change its values."""

    model_config = pydantic.ConfigDict(extra="allow", arbitrary_types_allowed=True)
    name: str
    inner: Inner | None = None
    secret: pydantic.SecretStr | None = None
    anything: Any = None
    _private: Any = pydantic.PrivateAttr(default=0)

    @pydantic.field_validator("name")
    @classmethod
    def _shout(cls, name: str) -> str:
        return name.upper()


class FrozenModel(pydantic.BaseModel):
    """A hashable model."""

    model_config = pydantic.ConfigDict(frozen=True)
    a: Any


class RootList(pydantic.RootModel[list[Any]]):
    """A root model."""


class GenericModel(pydantic.BaseModel, Generic[T]):
    """A generic model."""

    item: T


class UserId(str):  # noqa: SLOT000 - it is to have attributes
    """A subclass of str that hides its text and carries an attribute."""

    note: str

    def __str__(self) -> str:
        return "hidden"


class Celsius(float):
    """A subclass of float."""

    __slots__ = ()


class Count(int):
    """A subclass of int."""


class Stack(list[Any]):
    """A subclass of list that changes what is iterated over."""

    def __iter__(self) -> Any:
        return iter(())


class Bag(dict[Any, Any]):
    """A subclass of dict."""


class Names(set[Any]):
    """A subclass of set."""


class Triple(tuple[Any, ...]):
    """A subclass of tuple."""

    __slots__ = ()


class TaxError(Exception):
    """An exception that makes its message in ``__init__``."""

    def __init__(self, code: int, *, rate: Any = None) -> None:
        super().__init__(f"tax code {code}")
        self.code = code
        self.rate = rate


class MissingFileError(OSError, LookupError):
    """An exception above a builtin with a state of its own."""


REGISTERED: tuple[type, ...] = (
    Color, Level, Mode, Perm, IntPerm, Point, Frozen, Slotted, Derived, Box, Rec, FrozenRec, OpenRec, Pair, OldPair,
    Inner, Model, FrozenModel, RootList, GenericModel[int], UserId, Celsius, Count, Stack, Bag, Names, Triple,
    TaxError, MissingFileError,
)  # fmt: skip


def registered_serializer() -> Serializer:
    """Return a serializer that knows the classes above."""
    serializer = Serializer()
    serializer.register_types(REGISTERED)
    return serializer


def _with(value: Any, **attributes: object) -> Any:
    for name, item in attributes.items():
        setattr(value, name, item)
    return value


def _noted() -> ValueError:
    error = ValueError("bad", 3)
    error.add_note("seen in a node")
    return error


def _model() -> Model:
    model = Model(name="ada", inner=Inner(n=(1, 2)), secret=pydantic.SecretStr("s3"), anything={(1,): "t"})
    model.__pydantic_extra__ = {"extra_one": {1}}
    model._private = ("p",)
    return model


def _derived() -> Derived:
    value = Derived(1)
    assert value.cached
    return value


PARIS = ZoneInfo("Europe/Paris")

SAMPLES: dict[str, Any] = {
    "none": None, "true": True, "zero": 0, "int64 min": -(2**63), "uint64 max": 2**64 - 1, "int 65 bits": 2**64,
    "negative int 65 bits": -(2**63) - 1, "huge int": -(10**400), "float": 1.5, "nan": math.nan, "inf": -math.inf,
    "negative zero": -0.0, "integral float": 1.0, "complex": complex(-0.0, math.inf), "text": "käse", "emoji": "🎈",
    "nul": "a\0b", "surrogate": "a\ud800b", "surrogate pair": "\udc00\ud800",
    "surrogate among others": ["\ud800", 1, "ä", {"é": 2**64}],
    "empty text": "", "bytes": b"\0\xff",
    "bytearray": bytearray(b"ab"), "ellipsis": ..., "unset": msgspec.UNSET,
    "list": [1, "a"], "empty list": [], "tuple": (1, "a"), "empty tuple": (), "nested tuple": ((1,), [(2,)]),
    "dict": {"b": 1, "a": 2}, "int keys": {1: "a", None: "b", 2.5: "c", b"k": "d", False: "e"},
    "tuple keys": {(1, 2): "a", frozenset({1}): "b", "s": (3,)}, "surrogate key": {"\ud800": 1, "b": 2**70},
    "odd keys": {Color.RED: 1, Level.LOW: 2, uuid.UUID(int=5): 3, date(2024, 1, 2): 4, Frozen(1): 5},
    "enum key equal to text": {Mode.FAST: 1}, "empty dict": {},
    "ordered dict": OrderedDict([("b", 1), ("a", (2,))]), "default dict": defaultdict(list, {"a": [1]}),
    "default dict without factory": defaultdict(None, {1: 2}), "default dict of dicts": defaultdict(dict),
    "counter": Counter({"a": 3, "b": -1, (1,): 0}), "deque": deque([1, (2,)], maxlen=5), "open deque": deque(),
    "set": {1, "a", (2,)}, "empty set": set(), "frozenset": frozenset({1, frozenset()}), "range": range(5, -3, -2),
    "big range": range(2**70), "slice": slice(None, 3, (1,)),
    "naive datetime": datetime(2024, 5, 6, 7, 8, 9, 123456), "utc": datetime(2024, 1, 1, tzinfo=UTC),  # noqa: DTZ001
    "offset": datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, seconds=7, microseconds=5))),
    "named offset": datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1), "X")),
    "zone": datetime(2024, 10, 27, 2, 30, tzinfo=PARIS), "fold": datetime(2024, 10, 27, 2, 30, tzinfo=PARIS, fold=1),
    "naive fold": datetime(2024, 1, 1, fold=1), "first datetime": datetime.min, "last datetime": datetime.max,  # noqa: DTZ001, DTZ901
    "date": date(1, 1, 1), "time": time(1, 2, 3, 4), "time with zone": time(1, tzinfo=UTC, fold=1),
    "timedelta": timedelta(-1, 5, 7), "longest": timedelta.max, "timezone": timezone(timedelta(hours=2)),
    "named timezone": timezone(timedelta(0), "Z"), "utc zone": UTC, "zoneinfo": PARIS,
    "uuid": uuid.UUID(int=2**100), "uuid1": uuid.UUID(int=7, is_safe=uuid.SafeUUID.safe),
    "decimal": Decimal("-1.50"), "decimal nan": Decimal("nan"), "signalling nan": Decimal("-sNaN12"),
    "decimal exponent": Decimal("0E-7000"), "decimal inf": Decimal("-Infinity"), "fraction": Fraction(-3, 2**70),
    "path": pathlib.Path("a/b.txt"), "pure path": pathlib.PurePosixPath("/x"), "odd path": pathlib.Path("f\udcff"),
    "windows path": pathlib.PureWindowsPath("C:\\x\\y"), "ip": ipaddress.ip_address("10.0.0.1"),
    "ip6": ipaddress.ip_address("fe80::1%eth0"), "network": ipaddress.ip_network("10.0.0.0/8"),
    "network6": ipaddress.ip_network("::/0"), "interface": ipaddress.ip_interface("10.0.0.1/8"),
    "interface6": ipaddress.ip_interface("::1/64"), "pattern": re.compile(r"a(?P<n>\d+)", re.IGNORECASE | re.VERBOSE),
    "bytes pattern": re.compile(rb"\xff"), "secret": pydantic.SecretStr("s"),
    "secret bytes": pydantic.SecretBytes(b"s"),
    "enum": Color.RED, "enum with tuple": Color.GREEN, "enum alias": Color.CRIMSON, "int enum": Level.HIGH,
    "str enum": Mode.FAST, "flag": Perm.R, "flags": Perm.R | Perm.X, "no flags": Perm(0), "int flags": IntPerm.R | 8,
    "dataclass": Point(1, (2,), [Point({3})]), "frozen": Frozen((1,)), "slotted": Slotted(1, Slotted((2,))),
    "derived": _derived(), "unset field": _with(Point(1), tags=()), "generic": Box[int](3),
    "struct": Rec((1,), Rec({2})), "frozen struct": FrozenRec(a=(1,)), "open struct": _with(OpenRec(1), more=(2,)),
    "named tuple": Pair(1, (2,)), "collections named tuple": OldPair({1}, None),
    "model": _model(), "built model": Model.model_construct(anything=5), "frozen model": FrozenModel(a=(1,)),
    "root model": RootList([(1,)]), "generic model": GenericModel[int](item=3),
    "str subclass": _with(UserId("u1"), note="n"), "float subclass": Celsius(-0.0), "int subclass": Count(2**70),
    "list subclass": _with(Stack([1, (2,)]), name="s"), "dict subclass": Bag({(1,): 2}),
    "set subclass": Names({1, (2,)}), "tuple subclass": Triple((1, [2])),
    "exception": _noted(), "own exception": TaxError(4, rate=(1, Decimal("0.2"))), "key error": KeyError("k"),
    "os error": FileNotFoundError(2, "gone", "f.txt"), "own os error": MissingFileError(2, "gone", "f.txt"),
    "unicode error": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "stop": StopIteration(5),
    "import error": ImportError("m", name="n", path="p"), "group": ExceptionGroup("g", [ValueError(1), TaxError(2)]),
    "array": np.arange(6, dtype="<i2").reshape(2, 3), "fortran": np.asfortranarray(np.ones((2, 3))),
    "big endian": np.array([1, 2], ">f4"), "empty array": np.empty((0, 3), "complex64"), "0-d": np.array(5),
    "texts": np.array(["a", "bc"]), "no texts": np.zeros(3, "U0"),
    "instants": np.array(["2024-01-01", "NaT"], "M8[ns]"),
    "records": np.array([(1, "x")], dtype=[("n", "<i4"), ("s", "<U3", (2,))]), "flags array": np.array([True, False]),
    "longlong": np.array([1], "longlong"), "np int": np.int16(3), "np float": np.float64("nan"), "np bool": np.True_,
    "np text": np.str_("a\0"), "np bytes": np.bytes_(b"a\0"), "np instant": np.datetime64("NaT", "s"),
    "np record": np.array([(1, 2.0)], dtype=[("n", "i4"), ("f", "f8")])[0], "np complex": np.complex128(1j),
}  # fmt: skip


def same(left: Any, right: Any) -> bool:
    """Whether two values are of the same type and equal, in everything they contain too."""
    kind = type(left)
    if type(right) is not kind:
        return False
    for kinds, rule in _RULES:
        if issubclass(kind, kinds):
            return bool(rule(left, right))
    if pydantic.BaseModel in kind.__mro__:
        return _same_model(left, right)
    if dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct):
        return same(_attributes(left), _attributes(right))
    return bool(left == right)


def _attributes(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if type(member).__name__ == "member_descriptor" and hasattr(value, name):
                found[name] = getattr(value, name)
    found.pop("__orig_class__", None)
    return found


def _same_model(left: Any, right: Any) -> bool:
    return all(
        same(getattr(left, part), getattr(right, part))
        for part in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
    )


def _same_items(left: Any, right: Any) -> bool:
    kind = next(base for base in (list, tuple, deque) if isinstance(left, base))
    mine, theirs = list(kind.__iter__(left)), list(kind.__iter__(right))
    return (
        len(mine) == len(theirs)
        and all(map(same, mine, theirs))
        and getattr(left, "maxlen", None) == getattr(right, "maxlen", None)
        and same(getattr(left, "__dict__", {}), getattr(right, "__dict__", {}))
    )


def _same_pairs(left: Any, right: Any) -> bool:
    return (
        len(left) == len(right)
        and all(same(k, q) and same(v, w) for (k, v), (q, w) in zip(left.items(), right.items(), strict=True))
        and getattr(left, "default_factory", None) is getattr(right, "default_factory", None)
    )


def _same_elements(left: Any, right: Any) -> bool:
    return len(left) == len(right) and all(any(same(one, other) for other in right) for one in left)


def _same_clock(left: Any, right: Any) -> bool:
    naive = left.replace(tzinfo=None) == right.replace(tzinfo=None)
    return bool(naive and left.fold == right.fold and same(left.tzinfo, right.tzinfo))


def _same_exception(left: Any, right: Any) -> bool:
    hidden = ("name", "path", "errno", "strerror", "filename", "value", "code", "object", "reason")
    return (
        same(left.args, right.args)
        and same(left.__dict__, right.__dict__)
        and all(same(getattr(left, name, None), getattr(right, name, None)) for name in hidden)
    )


def _same_array(left: Any, right: Any) -> bool:
    return bool(
        left.dtype == right.dtype
        and left.dtype.type is right.dtype.type
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
        and (not isinstance(left, np.ndarray) or left.flags.f_contiguous == right.flags.f_contiguous)
        and (not isinstance(right, np.ndarray) or right.flags.writeable)
    )


_RULES: tuple[tuple[Any, Any], ...] = (
    (enum.Flag, lambda a, b: a == b),  # not every Python keeps one object for unknown bits
    (enum.Enum, lambda a, b: a is b),
    ((np.ndarray, np.generic), _same_array),
    (float, lambda a, b: struct.pack("d", a) == struct.pack("d", b)),
    (complex, lambda a, b: same(a.real, b.real) and same(a.imag, b.imag)),
    (Decimal, lambda a, b: a.as_tuple() == b.as_tuple()),
    (str, lambda a, b: str.__eq__(a, b) and getattr(a, "__dict__", None) == getattr(b, "__dict__", None)),
    ((list, tuple, deque), _same_items),
    (dict, _same_pairs),
    ((set, frozenset), _same_elements),
    (slice, lambda a, b: same([a.start, a.stop, a.step], [b.start, b.stop, b.step])),
    ((datetime, time), _same_clock),
    (timezone, lambda a, b: a.__getinitargs__() == b.__getinitargs__()),
    (uuid.UUID, lambda a, b: a == b and a.is_safe is b.is_safe),
    (re.Pattern, lambda a, b: (a.pattern, a.flags) == (b.pattern, b.flags)),
    (BaseException, _same_exception),
)


def is_hashable(value: object) -> bool:
    """Whether a value can be a key."""
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True
