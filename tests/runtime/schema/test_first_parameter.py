"""The input that a function's first parameter asks for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, Generic, NamedTuple, Optional, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from runtime.schema import first_parameter_schema

T = TypeVar("T")


class Query(TypedDict):
    text: str


class Box(TypedDict, Generic[T]):
    item: T


class Model(pydantic.BaseModel):
    n: int


class Record(msgspec.Struct):
    n: int


@dataclasses.dataclass
class Data:
    n: int


class Point(NamedTuple):
    x: int


class Nothing(TypedDict):
    pass


class Node:
    def __call__(self, query: Query) -> None: ...
    def method(self, query: Query) -> None: ...
    @classmethod
    def of_class(cls, query: Query) -> None: ...
    @staticmethod
    def static(query: Query) -> None: ...


def typed(query: Query) -> None: ...
async def later(query: Query) -> None: ...
def after(other: int, query: Query) -> None: ...
def only_keyword(*, query: Query) -> None: ...
def annotated(query: Annotated[Query, "what it is"]) -> None: ...
def beside_nowhere(query: Query, other: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def generic(box: Box[int]) -> None: ...
def model(query: Model) -> None: ...
def record(query: Record) -> None: ...
def data(query: Data) -> None: ...
def point(query: Point) -> None: ...


def wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return inner


@pytest.mark.parametrize(
    ("function", "schema"),
    [
        (typed, Query),
        (later, Query),
        (only_keyword, Query),
        (annotated, Query),
        (beside_nowhere, Query),
        (generic, Box[int]),
        (model, Model),
        (record, Record),
        (data, Data),
        (point, Point),
        (Node(), Query),
        (Node().method, Query),
        (Node.of_class, Query),
        (Node.static, Query),
        (functools.partial(typed), Query),
        (functools.partial(after, 1), Query),
        (functools.partial(Node().method), Query),
        (functools.partial(functools.partial(after), 1), Query),
        (wrapping(typed), Query),
        (wrapping(functools.partial(typed)), Query),
    ],
)
def test_a_class_with_fields_is_a_schema(function: Callable[..., Any], schema: Any) -> None:
    assert first_parameter_schema(function) == schema


def test_a_class_that_is_local_is_found_where_the_function_uses_it() -> None:
    class Local(TypedDict):
        n: int

    def node(query: Local) -> Any:
        return Local(n=query["n"])

    assert first_parameter_schema(node) is Local


def nothing() -> None: ...
def unannotated(query) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def nowhere(query: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def failing(query: 1 / 0) -> None: ...  # type: ignore[valid-type]
def plain(query: dict[str, Any]) -> None: ...
def number(query: int) -> None: ...
def anything(query: Any) -> None: ...
def optional(query: Optional[Query]) -> None: ...
def union(query: Query | None) -> None: ...
def without_fields(query: Nothing) -> None: ...
def returning() -> Query: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    "function",
    [
        nothing,
        unannotated,
        nowhere,
        failing,
        plain,
        number,
        anything,
        optional,
        union,
        without_fields,
        returning,
        lambda query: query,
        max,
        dict.update,
        Query,
        Node,
        functools.partial(print),
        5,
    ],
)
def test_anything_else_is_none(function: Any) -> None:
    assert first_parameter_schema(function) is None


def test_a_name_that_does_not_exist_yet_is_not_looked_at() -> None:
    def node(query: Query) -> Any:
        return missing

    assert first_parameter_schema(node) is Query
    missing = 1
