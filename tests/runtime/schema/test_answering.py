"""Answers are shown and checked as on LangGraph where pydantic knows the type, and by msgspec where it does not."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pydantic
import pytest
import typing_extensions as te

from runtime.errors import GraphDefinitionError, is_invalid_resume
from runtime.schema import answering
from runtime.schema.answering import accepted, described


@dataclass
class Count:
    number: int


class Place(te.TypedDict):
    number: int


class Row(msgspec.Struct):
    number: int


@pytest.mark.parametrize(("schema", "expected"), [(Count, Count(5)), (Place, {"number": 5})])
def test_what_pydantic_knows_is_its_affair(schema: Any, expected: object) -> None:
    assert described(schema) == pydantic.TypeAdapter(schema).json_schema()
    assert accepted(schema, {"number": "5"}) == expected
    with pytest.raises(pydantic.ValidationError) as caught:
        accepted(schema, {"number": "many"})
    assert is_invalid_resume(caught.value)


def test_what_it_does_not_know_is_checked_all_the_same() -> None:
    assert "Row" in described(Row)["$defs"]
    assert accepted(Row, {"number": "5"}) == Row(5)
    with pytest.raises(msgspec.ValidationError):
        accepted(Row, {"number": "many"})


Stars = te.Annotated[int, msgspec.Meta(ge=1, le=5)]


class Author(pydantic.BaseModel):
    age: Stars = 0
    """A model is pydantic's affair, whatever stands in it."""
    best: Review | None = None


class Review(pydantic.BaseModel):
    words: int


@dataclass
class Rated:
    stars: Stars
    author: Author | None = None


class Rating(te.TypedDict):
    stars: Stars


Many = te.TypeAliasType("Many", list[Stars])


@pytest.mark.parametrize(
    ("schema", "good", "bad", "expected"),
    [
        (Stars, 5, 99, 5),
        (Stars | None, "5", 99, 5),
        (Many, [5], [5, 99], [5]),
        (dict[str, Stars], {"a": 5}, {"a": 99}, {"a": 5}),
        (Rating, {"stars": 5}, {"stars": 99}, {"stars": 5}),
        (Rated, {"stars": 5}, {"stars": 99}, Rated(5)),
    ],
    ids=["itself", "or none", "alias", "inside", "typed dict", "dataclass"],
)
def test_what_a_meta_asks_for_is_shown_and_checked(schema: Any, good: object, bad: object, expected: object) -> None:
    assert '"maximum": 5' in json.dumps(described(schema))
    assert accepted(schema, good) == expected
    with pytest.raises(msgspec.ValidationError) as caught:
        accepted(schema, bad)
    assert is_invalid_resume(caught.value)


def test_models_beside_it_are_pydantics_affair() -> None:
    shown = described(Rated)
    assert shown["$defs"]["Review"] == Review.model_json_schema()
    assert "Author" in json.dumps(shown)
    author = {"age": 99, "best": {"words": "7"}}
    assert accepted(Rated, {"stars": 5, "author": author}) == Rated(5, Author(age=99, best=Review(words=7)))
    with pytest.raises(msgspec.ValidationError, match="words") as caught:
        accepted(Rated, {"stars": 5, "author": {"best": {"words": "many"}}})
    assert is_invalid_resume(caught.value)
    assert accepted(list[Author], [{"age": "99"}]) == [Author(age=99)]


def test_what_only_pydantic_takes_is_left_to_it() -> None:
    beside = Author | Stars
    assert described(beside) == pydantic.TypeAdapter(beside).json_schema()
    assert accepted(beside, {"age": 7}) == Author(age=7)


class Closed(type):
    """Says of what it has not that there is no such key."""

    def __getattr__(cls, name: str) -> Any:
        raise KeyError(name)


class Weird(metaclass=Closed):
    number: int


@dataclass
class Unfinished:
    number: NotThere  # type: ignore[name-defined]  # noqa: F821 - that is the point


@pytest.mark.parametrize(
    ("schema", "name"),
    [(Weird, "<class '.*Weird'>"), (list[Weird], "of the kind GenericAlias")],
    ids=["itself", "inside"],
)
def test_a_type_whose_code_fails_is_named(schema: Any, name: str) -> None:
    for asked in (described, lambda given: accepted(given, {})):
        with pytest.raises(GraphDefinitionError, match=f"response_schema {name} cannot be read: KeyError") as caught:
            asked(schema)
        assert isinstance(caught.value.__cause__, KeyError)


def test_an_answer_to_a_type_with_an_unknown_name_is_told_so() -> None:
    assert described(Unfinished) is None
    with pytest.raises(GraphDefinitionError, match="Unfinished.* cannot be read: NameError: .*NotThere") as caught:
        accepted(Unfinished, {"number": 5})
    assert is_invalid_resume(caught.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Literal["yes", "no"], Literal["no", "yes"]),
        (int | str, str | int),
        (list[Literal[1, 2]], list[Literal[2, 1]]),
    ],
    ids=["choices", "types", "inside"],
)
def test_what_is_equal_is_shown_as_each_was_written(first: Any, second: Any) -> None:
    assert first == second, "else this tests nothing"
    for schema in (first, second, first):
        assert json.dumps(described(schema)) == json.dumps(pydantic.TypeAdapter(schema).json_schema())


def test_it_need_not_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    answering._made.cache_clear()
    try:
        assert "Count" in described(Count)["$defs"]
        assert accepted(Count, {"number": "5"}) == Count(5)
    finally:
        answering._made.cache_clear()
