"""Stored bytes that once broke the reader, each by what it claims to be. They must stay typed errors, at once.

A few bytes that stood for a range, or for the text of a number, were gone through or computed with: minutes and
gigabytes. A name that was no text was looked up. Text of no characters became text of one.
"""

from __future__ import annotations

from msgspec.msgpack import Ext, encode

from persistence.serde import tags
from tests.persistence.serde.forging import LONG

_SAMPLES = "tests.persistence.serde.samples"
_FACTORS = Ext(tags.RANGE, encode([1, 10**7, 1]))

CORPUS: dict[str, object] = {
    "a fraction from the text of a number": Ext(tags.FRACTION, encode(["1e99999999", None])),
    "a fraction from a decimal": Ext(tags.FRACTION, encode([Ext(tags.DECIMAL, b"1e99999999"), None])),
    "an exception whose arguments are a range": Ext(tags.EXCEPTION, encode(["builtins:ValueError", LONG])),
    "an exception whose attributes are a range": Ext(tags.EXCEPTION, encode(["builtins:ValueError", [], LONG])),
    "an array whose shape is a range": Ext(tags.ARRAY, encode(["<i4", _FACTORS, "C", b""])),
    "an array whose data is a range": Ext(tags.ARRAY, encode(["<u1", [10**12], "C", LONG])),
    "a numpy text that is a range": Ext(tags.ARRAY_SCALAR, encode(["U", LONG])),
    "numpy bytes that are a range": Ext(tags.ARRAY_SCALAR, encode(["S", LONG])),
    "a numpy number that is a range": Ext(tags.ARRAY_SCALAR, encode(["<i4", LONG])),
    "a model whose set fields are a range": Ext(tags.MODEL, encode([f"{_SAMPLES}:Inner", {"n": 1}, LONG])),
    "a model whose unset fields are a range": Ext(
        tags.MODEL, encode([f"{_SAMPLES}:Inner", {}, True, None, None, {}, LONG])
    ),
    "a model whose extra fields are a range": Ext(tags.MODEL, encode([f"{_SAMPLES}:Model", {"name": "a"}, [], LONG])),
    "a dataclass whose unset fields are a range": Ext(tags.DATACLASS, encode([f"{_SAMPLES}:Point", {}, {}, LONG])),
    "a dataclass whose attributes are a range": Ext(tags.DATACLASS, encode([f"{_SAMPLES}:Point", {"x": 1}, LONG])),
    "a Struct whose attributes are a range": Ext(tags.STRUCT, encode([f"{_SAMPLES}:OpenRec", {"some_name": 1}, LONG])),
    "a subclass whose attributes are a range": Ext(tags.SUBCLASS, encode([f"{_SAMPLES}:Bag", {}, LONG])),
    "flags made of a name and members": Ext(tags.ENUM, encode([f"{_SAMPLES}:Perm", None, "New", "a b c"])),
    "flags made of text": Ext(tags.ENUM, encode([f"{_SAMPLES}:Perm", None, "New"])),
    "a class named by a range": Ext(tags.DATACLASS, encode([LONG, {}])),
    "a class named by an instance": Ext(
        tags.DATACLASS, encode([Ext(tags.SUBCLASS, encode([f"{_SAMPLES}:UserId", f"{_SAMPLES}:Point"])), {"x": 1}])
    ),
    "a pattern whose flags are text": Ext(tags.PATTERN, encode(["a", "i"])),
    "a pattern made of a pattern": Ext(tags.PATTERN, encode([Ext(tags.PATTERN, encode(["a", 0])), 0])),
    "an error that holds a number too long to print": Ext(
        tags.DEFAULT_DICT, encode([Ext(tags.INTEGER, b"\x7f" * 4000)])
    ),
    "a dtype that numpy has Python parse": Ext(
        tags.ARRAY, encode([[Ext(tags.TUPLE, encode(["a", "(1,)<i4"]))], [0], "C", b""])
    ),
    "a zone with a long name": Ext(tags.ZONE, b"a" * 100_000),
}
