"""The writes that an instance stands for."""

# Annotations are evaluated at once here: the classes below are local to their tests.
import dataclasses
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import attrs
import msgspec
import numpy as np
import pydantic
import pytest

from runtime.schema import introspect, updates_of
from runtime.schema.instances import apart, input_of


class Model(pydantic.BaseModel):
    n: int = 1
    text: str | None = None
    items: list[int] = []
    made: list[int] = pydantic.Field(default_factory=list)
    ident: float = pydantic.Field(default_factory=lambda: float("nan"))


def test_a_model_stands_for_the_fields_that_were_set() -> None:
    assert updates_of(Model()) == []
    assert updates_of(Model(n=1, text=None)) == [("n", 1), ("text", None)]
    model = Model()
    model.n = 2
    assert updates_of(model) == [("n", 2)]


def test_a_default_list_of_a_model_that_was_filled_counts_as_set() -> None:
    model = Model()
    model.items.append(1)
    model.made.append(2)
    assert updates_of(model) == [("items", [1]), ("made", [2])]
    assert Model().items == []


def test_extra_and_private_attributes_of_a_model_are_no_writes() -> None:
    class Open(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        n: int = 1
        _secret: int = 2

    assert updates_of(Open(n=1, more=3)) == [("n", 1)]  # type: ignore[call-arg]


@dataclass
class Data:
    n: int
    flag: bool = False
    zero: int = 0
    items: list[int] = field(default_factory=list)
    array: Any = None


def test_a_dataclass_stands_for_the_fields_that_differ_from_their_defaults() -> None:
    assert updates_of(Data(1)) == [("n", 1)]
    assert updates_of(Data(1, flag=True, items=[2])) == [("n", 1), ("flag", True), ("items", [2])]


def test_equal_is_not_the_same_across_types() -> None:
    assert updates_of(Data(1, zero=False)) == [("n", 1), ("zero", False)]


def test_a_value_without_a_single_answer_to_equality_counts_as_set() -> None:
    @dataclass
    class Arrays:
        array: Any = field(default_factory=lambda: np.zeros(2))

    updates = updates_of(Arrays())
    assert updates is not None
    assert [name for name, _ in updates] == ["array"]


def test_an_instance_that_a_node_got_and_returns_stands_for_all_its_fields() -> None:
    received = Data(1, flag=True)
    received.flag = False
    assert updates_of(received, received) == [("n", 1), ("flag", False), ("zero", 0), ("items", []), ("array", None)]
    assert updates_of(dataclasses.replace(received), received) == [("n", 1)]


def test_a_model_that_a_node_got_and_returns_stands_for_what_was_set() -> None:
    received = Model(n=2)
    received.n = 1
    assert updates_of(received, received) == [("n", 1)]


class Record(msgspec.Struct):
    n: int
    text: str = "x"
    items: list[int] = []
    later: int | msgspec.UnsetType = msgspec.UNSET


class Point(NamedTuple):
    x: int
    y: int = 0


class Plain:
    a: int
    b: int = 2
    c: int

    def __init__(self) -> None:
        self.a = 1


class Slotted:
    __slots__ = ("a", "b")
    a: int
    b: int

    def __init__(self) -> None:
        self.a = 1


@attrs.define
class Attrs:
    a: int
    b: list[int] = attrs.Factory(list)


@pytest.mark.parametrize(
    ("value", "writes"),
    [
        (Record(1), [("n", 1)]),
        (Record(1, "y", [2]), [("n", 1), ("text", "y"), ("items", [2])]),
        (Point(1), [("x", 1)]),
        (Point(1, 2), [("x", 1), ("y", 2)]),
        (Plain(), [("a", 1)]),
        (Slotted(), [("a", 1)]),
        (Attrs(1), [("a", 1), ("b", [])]),
    ],
)
def test_other_instances(value: object, writes: list[tuple[str, Any]]) -> None:
    assert updates_of(value) == writes


class Color(Enum):
    RED: int = 1  # type: ignore[misc]


class Local(dict[str, Any]):
    n: int


@pytest.mark.parametrize("value", [None, 1, "a", [1], {"a": 1}, (1, 2), object(), int, Color.RED, Local(n=1)])
def test_anything_else_is_no_instance(value: object) -> None:
    assert updates_of(value) is None


def test_a_class_whose_annotations_cannot_be_resolved_stands_for_nothing() -> None:
    class Lost:
        a: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - what it is about

    assert updates_of(Lost()) is None


def test_a_schema_knows_its_own_instances() -> None:
    class Sub(Data):
        pass

    assert introspect(Data).updates(Data(1)) == [("n", 1)]
    assert introspect(Data).updates(Sub(1)) == [("n", 1)]
    assert introspect(Data).updates(Record(1)) is None
    assert introspect(Data).updates({"n": 1}) is None
    assert introspect(Model).updates(Model(n=1)) == [("n", 1)]
    assert introspect(int).updates(1) is None


class Packed(msgspec.Struct):
    n: int = 1
    maybe: int | msgspec.UnsetType = msgspec.UNSET


@pytest.mark.parametrize(
    ("value", "writes"),
    [
        (Data(7), [("n", 7), ("flag", False), ("zero", 0), ("items", []), ("array", None)]),
        (Packed(), [("n", 1)]),
    ],
    ids=["dataclass", "struct"],
)
def test_an_input_also_brings_its_defaults(value: object, writes: list[tuple[str, Any]]) -> None:
    assert input_of(value, ()) == writes


def test_no_value_as_a_models_default_is_none() -> None:
    assert dict(input_of(Model(ident=0.0), ()) or ()) == {"n": 1, "items": [], "made": [], "ident": 0.0}
    assert input_of(Model(text=None, ident=0.0), ("n", "items", "made")) == [("text", None), ("ident", 0.0)]


def test_the_defaults_of_an_input_replace_nothing() -> None:
    assert input_of(Data(7, zero=3), ("n", "flag", "zero", "array")) == [("n", 7), ("zero", 3), ("items", [])]


@pytest.mark.parametrize("value", [{"n": 1}, 1, None])
def test_an_input_that_is_no_instance(value: object) -> None:
    assert input_of(value, ()) is None


@dataclass(frozen=True, slots=True)
class Frozen:
    n: int
    items: list[int]


class Solid(msgspec.Struct, frozen=True):
    n: int
    items: list[int]


class Row(NamedTuple):
    n: int
    items: list[int]


class Checked(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    n: int
    items: list[int]


@pytest.mark.parametrize("kind", [Data, Frozen, Solid, Row, Checked])
def test_an_instance_that_is_set_apart_shares_no_container(kind: Any) -> None:
    value = kind(n=1, items=[1])
    other = apart(value)
    assert type(other) is kind
    assert other == value
    other.items.append(2)
    assert value.items == [1]


class Word(Enum):
    A = "a"


@pytest.mark.parametrize("value", [1, "text", (1, [2]), object(), Word.A])
def test_what_is_no_instance_is_not_copied(value: object) -> None:
    assert apart(value) is value
