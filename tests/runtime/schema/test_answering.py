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

from runtime.errors import is_invalid_resume
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
