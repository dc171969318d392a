"""Values that LangGraph's serializer writes come back as they were; nothing is imported because it is named."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import pathlib
import re
import sys
import uuid
import zoneinfo
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Send
from pydantic import BaseModel, SecretStr

from persistence.migration.constructors import Constructors
from persistence.migration.decoding import ForeignDecoder
from persistence.migration.records import Uncarried

PEER = JsonPlusSerializer(pickle_fallback=True)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    sum: int = dataclasses.field(init=False, default=0)


class Pair(NamedTuple):
    left: int
    right: Any


class Inner(BaseModel):
    n: int


class Order(BaseModel):
    id: str
    colour: Colour
    lines: list[Inner] = []


class Picky(BaseModel):
    n: int

    def __init__(self, **fields: Any) -> None:
        if fields["n"] > 1:
            msg = "too many"
            raise ValueError(msg)
        super().__init__(**fields)


TYPES = (Colour, Point, Pair, Inner, Order, Picky)


def decoder(*types: type, **makers: Any) -> ForeignDecoder:
    return ForeignDecoder(Constructors(types, {("langgraph.types", name): made for name, made in makers.items()}))


def reasons(one: ForeignDecoder, value: Any) -> tuple[str, ...]:
    with pytest.raises(Uncarried) as caught:
        one.value(PEER.dumps_typed(value))
    return caught.value.reasons


def made_point() -> Point:
    point = Point(1, 2)
    point.sum = 3
    return point


ZONED = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=2)))

EXACT = [
    None,
    True,
    -(2**63),
    1.5,
    "text é \0",
    b"bytes",
    bytearray(b"more"),
    [1, [2, {"three": 3}]],
    {1: "int", None: "none", 2.5: "float"},
    {("a", 1): "a tuple as key"},
    {1, 2},
    frozenset({"a"}),
    deque([1, 2]),
    dt.datetime(2026, 1, 2, 3, 4),  # noqa: DTZ001 - without a zone is what is asked about
    ZONED,
    dt.date(2026, 1, 2),
    dt.time(1, 2, 3, 4, tzinfo=dt.UTC),
    dt.timedelta(days=-1, microseconds=5),
    dt.UTC,
    zoneinfo.ZoneInfo("Europe/Berlin"),
    uuid.UUID(int=5),
    decimal.Decimal("1.10"),
    ipaddress.ip_address("10.0.0.1"),
    ipaddress.ip_network("fe80::/10"),
    re.compile("a+", re.IGNORECASE),
    pathlib.Path("/a/b"),
    Colour.RED,
    made_point(),
    Pair(1, [Colour.RED]),
    Order(id="1", colour=Colour.RED, lines=[Inner(n=1)]),
    SecretStr("hidden"),
    HumanMessage("hello", id="1"),
    AIMessage([{"type": "text", "text": "x"}], tool_calls=[{"name": "t", "args": {"a": 1}, "id": "c"}], id="2"),
    ToolMessage("done", tool_call_id="c"),
    RemoveMessage(id="2"),
    Document("page", metadata={"n": 1}),
]


@pytest.mark.parametrize("value", EXACT, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("nested", [False, True], ids=["alone", "nested"])
def test_comes_back(value: Any, nested: bool) -> None:
    if nested:
        value = {"a": [value, {"b": value}]}
    assert decoder(*TYPES).value(PEER.dumps_typed(value)) == value


def test_classes_and_zones_are_those_that_were_stored() -> None:
    found: Any = decoder(*TYPES).value(PEER.dumps_typed([Inner(n=1), Pair(1, 2), AIMessage("x"), ZONED]))
    assert [type(each) for each in found] == [Inner, Pair, AIMessage, dt.datetime]
    assert found[3].utcoffset() == dt.timedelta(hours=2)


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.array(5.0)])
def test_arrays(array: np.ndarray[Any, Any]) -> None:
    found: Any = decoder().value(PEER.dumps_typed({"a": array}))
    assert np.array_equal(found["a"], array)
    assert found["a"].dtype == array.dtype
    assert found["a"].flags.writeable


_SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
_ATOMS = _SCALARS.filter(lambda value: not isinstance(value, str) or value.isprintable()) | st.binary() | st.uuids()
_VALUES = st.recursive(
    _ATOMS | st.dates() | st.timedeltas() | st.sampled_from([Colour.RED, Point(1), Inner(n=2)]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner) | st.builds(Pair, st.integers(0, 9), inner),
    max_leaves=20,
)


@given(_VALUES)
def test_whatever_is_made_of_them_comes_back(value: Any) -> None:
    assert decoder(*TYPES).value(PEER.dumps_typed(value)) == value


def test_records_of_langgraph_become_what_the_caller_makes_of_them() -> None:
    one = decoder(Send=lambda node, arg: ("sent", node, arg))
    assert one.value(PEER.dumps_typed([Send("n", {"x": 1})])) == [("sent", "n", {"x": 1})]


# ---- what cannot be carried ------------------------------------------------------------------------------------------


def test_all_that_is_not_registered_is_named_at_once() -> None:
    value = {"a": [Point(1), Colour.RED], "b": Order(id="1", colour=Colour.RED)}
    module = Point.__module__
    assert reasons(decoder(), value) == (
        f"class {module}:Point is not registered",
        f"class {module}:Colour is not registered",
        f"class {module}:Order is not registered",
    ), "also those that hold others of them"
    assert reasons(decoder(Colour), value) == (
        f"class {module}:Point is not registered",
        f"class {module}:Order is not registered",
    )


def test_a_named_module_is_never_imported(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_by_a_row.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for code, arguments in ((0, "x"), (1, ["x"]), (2, {"x": 1}), (5, {"x": 1})):
        data = ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(("imported_by_a_row", "System", arguments))))
        with pytest.raises(Uncarried, match="imported_by_a_row:System is not registered"):
            decoder(*TYPES).value(("msgpack", data))
    assert "imported_by_a_row" not in sys.modules


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((0, ("os", "system", "echo x")), "class os:system is not registered"),
        ((0, ("builtins", "eval", "1")), "class builtins:eval is not registered"),
        ((3, ("datetime", "datetime", "x", "strptime")), "a call of a method of datetime:datetime"),
        ((3, ("os", "path", "x", "fromisoformat")), "a call of a method of os:path"),
        ((0, ("uuid", "UUID", "no uuid")), "class uuid:UUID refuses what is stored: ValueError: badly formed"),
        ((0, ("uuid",)), "a constructor without module, name and arguments"),
        ((0, 5), "a constructor without module, name and arguments"),
        ((9, ("uuid", "UUID", "x")), "an extension of code 9"),
        ((6, ("|O", [1], "C", b"12345678")), "a numpy array that cannot be rebuilt"),
    ],
)
def test_hostile_constructors_are_named(parts: tuple[int, Any], reason: str) -> None:
    code, payload = parts
    with pytest.raises(Uncarried, match=re.escape(reason)):
        decoder().value(("msgpack", ormsgpack.packb([ormsgpack.Ext(code, ormsgpack.packb(payload))])))


def test_a_class_is_only_made_of_what_its_kind_is_stored_as() -> None:
    for code, name in ((0, "Point"), (1, "Point"), (2, "Order"), (5, "Point"), (0, "Inner"), (2, "Colour")):
        data = ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb((Point.__module__, name, {"x": 1}))))
        with pytest.raises(Uncarried, match="is of another kind than what is stored"):
            decoder(*TYPES).value(("msgpack", data))


def test_a_model_that_refuses_is_put_back_unvalidated_as_there() -> None:
    found: Any = decoder(Picky).value(("msgpack", PEER.dumps_typed(Picky.model_construct(n=2))[1]))
    assert (type(found), found.n) == (Picky, 2)


def test_a_dataclass_that_refuses_is_named() -> None:
    data = ormsgpack.packb(ormsgpack.Ext(2, ormsgpack.packb((Point.__module__, "Point", {"z": 1}))))
    with pytest.raises(Uncarried, match="Point refuses what is stored: TypeError"):
        decoder(Point).value(("msgpack", data))


def test_pickles_are_refused() -> None:
    kind, data = PEER.dumps_typed(complex(1, 2))
    assert kind == "pickle"
    with pytest.raises(Uncarried, match="it is a pickle, which could run any code"):
        decoder().value((kind, data))


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        (("msgpack+aes", b"x"), "it is encrypted"),
        (("yaml", b"x"), "it is stored as 'yaml'"),
        (("msgpack", b"\x92\x01"), "it is damaged"),
        (("json", b"{"), "it is damaged"),
    ],
)
def test_what_cannot_be_read_is_named(typed: tuple[str, bytes], reason: str) -> None:
    with pytest.raises(Uncarried, match=re.escape(reason)):
        decoder().value(typed)


def test_classes_of_a_script_are_found_in_its_module() -> None:
    data = ormsgpack.packb(ormsgpack.Ext(2, ormsgpack.packb(("__main__", "Point", {"x": 1, "y": 2, "sum": 0}))))
    assert decoder(*TYPES).value(("msgpack", data)) == Point(1, 2)
    twin = type("Point", (), {"__module__": "elsewhere"})
    with pytest.raises(Uncarried, match="__main__:Point is not registered"):
        decoder(*TYPES, twin).value(("msgpack", data))


# ---- JSON, from before MessagePack -----------------------------------------------------------------------------------


def envelope(*path: str, **content: Any) -> dict[str, Any]:
    return {"lc": 2, "type": "constructor", "id": list(path), "method": [None, "construct"], **content}


def test_json_of_older_versions() -> None:
    module = Point.__module__.split(".")
    held = {
        "plain": [1, {"lc": "not one"}],
        "message": dumpd(HumanMessage("hello", id="1")),
        "point": envelope(*module, "Point", kwargs={"x": 1, "y": 2, "sum": 0}),
        "colour": envelope(*module, "Colour", args=["red"]),
        "inner": envelope(*module, "Inner", kwargs={"n": 1}),
        "uuid": envelope("uuid", "UUID", args=[uuid.UUID(int=5).hex]),
        "set": envelope("builtins", "set", args=[[1, 2]]),
    }
    assert decoder(*TYPES).value(("json", json.dumps(held).encode())) == {
        "plain": [1, {"lc": "not one"}],
        "message": HumanMessage("hello", id="1"),
        "point": Point(1, 2),
        "colour": Colour.RED,
        "inner": Inner(n=1),
        "uuid": uuid.UUID(int=5),
        "set": {1, 2},
    }


def test_json_names_import_nothing() -> None:
    held = [envelope("os", "system", args=["x"]), {**dumpd(HumanMessage("x")), "id": ["os", "HumanMessage"]}]
    with pytest.raises(Uncarried) as caught:
        decoder().value(("json", json.dumps(held).encode()))
    assert caught.value.reasons == ("class os:system is not registered", "class os.HumanMessage is not registered")
