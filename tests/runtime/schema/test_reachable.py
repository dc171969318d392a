"""The classes that values of annotated types are made of."""

# Annotations are evaluated at once here: the classes below are local to their tests.
import dataclasses
import operator
import subprocess
import sys
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Optional, ParamSpec, Protocol, TypeVar

import msgspec
import pydantic
import pytest
import typing_extensions as te

from runtime.channels import LastValue, Topic
from runtime.schema import MessagesState, types_in
from runtime.types.managed import IsLastStep

P = ParamSpec("P")


@dataclasses.dataclass
class A:
    n: int


class B(msgspec.Struct):
    n: int


class Color(Enum):
    RED = 1


class Opaque:
    inner: A


class Shape(Protocol):
    area: A


@dataclasses.dataclass
class Node:
    child: "Node | None"
    item: A
    first: dataclasses.InitVar[B]
    kind: ClassVar[Color]


class Record(typing.TypedDict):
    a: te.NotRequired[A]
    again: "Record"


class Model(pydantic.BaseModel):
    a: A
    others: list["Model"] = []


class Pair(NamedTuple):
    a: A
    b: B


T = TypeVar("T", bound=A)
U = TypeVar("U", A, B)
Number = te.NewType("Number", A)
Alias = te.TypeAliasType("Alias", list[A])


class Generics(typing.TypedDict, Generic[T]):
    item: T


class Carton(pydantic.BaseModel, Generic[T]):
    item: T


class Lost(typing.TypedDict):
    a: A
    b: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - what it is about


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        (A, {A}),
        (Optional[A], {A}),
        (A | list[B] | None, {A, B}),
        (dict[str, list[tuple[A, ...]]], {A}),
        (Annotated[list[A], operator.add], {A}),
        (Annotated[list, Topic(A)], {A}),
        (Annotated[A, LastValue, "what it is", B], {A}),
        (Annotated[list, Topic[B]], {B}),
        (Literal[Color.RED, 1], {Color}),
        (Color, {Color}),
        (Alias, {A}),
        (Number, {A}),
        (T, {A}),
        (U, {A, B}),
        (Callable[[A], B], {A, B}),
        (Callable[P, B], {B}),
        (Callable[..., A], {A}),
        (type[A], set()),
        (Iterable[A], {A}),
        (dataclasses.InitVar[A], {A}),
        (Record, {A}),
        (Pair, {Pair, A, B}),
        (Node, {Node, A, B}),
        (Model, {Model, A}),
        (Generics[A], {A}),
        (Generics, {A}),
        (Opaque, {Opaque}),
        (Shape, set()),
        (IsLastStep, set()),
        (Lost, set()),
        ("A", set()),
        (None, set()),
        (Any, set()),
        (int, set()),
        (list, set()),
    ],
)
def test_types_in(hint: Any, found: set[type]) -> None:
    assert {cls for cls in types_in(hint) if not cls.__module__.startswith("collections")} == found


def test_several_annotations_at_once() -> None:
    assert types_in(A, int, list[B]) == {A, B}


def test_parametrised_models_and_their_arguments() -> None:
    assert types_in(list[Carton[A]]) == {Carton[A], A}


def test_a_type_may_name_others() -> None:
    class Family:
        @staticmethod
        def value_types() -> list[Any]:
            return [A, list[B]]

    assert types_in(Family) == {Family, A, B}


def test_conversations_name_the_message_classes() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    expected = {
        messages.HumanMessage,
        messages.AIMessage,
        messages.ToolMessage,
        messages.AIMessageChunk,
        messages.RemoveMessage,
    }
    assert expected <= types_in(MessagesState)
    base: Any = messages.BaseMessage
    assert expected <= types_in(Annotated[list[base], operator.add])


def test_conversations_name_nothing_where_langchain_core_is_not_installed() -> None:
    program = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "import runtime.schema as s\n"
        "print(s.types_in(s.MessagesState))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
