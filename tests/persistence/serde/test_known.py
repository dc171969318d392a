"""LangChain's messages and documents are stored without being registered, and rebuilt only where they are loaded."""

from __future__ import annotations

import sys

import pytest
from langchain_core import messages
from langchain_core.documents import Document
from langchain_core.prompt_values import StringPromptValue

from persistence.errors import SerializationError, UnknownTypeError
from persistence.serde import Serializer
from persistence.serde.known import NAMES, known_class, known_name

VALUES = [
    Document(page_content="text", metadata={"a": [1]}),
    messages.HumanMessage("h", id="1"),
    messages.AIMessage("a", tool_calls=[{"name": "n", "args": {"x": 1}, "id": "c"}], usage_metadata=None),
    messages.AIMessageChunk(content="part"),
    messages.SystemMessage("s"),
    messages.ToolMessage("t", tool_call_id="c", artifact={"k": (1, 2)}),
    messages.FunctionMessage(content="f", name="n"),
    messages.ChatMessage(content="c", role="r"),
    messages.RemoveMessage(id="1"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_they_come_back(value: object) -> None:
    found = Serializer().loads_typed(Serializer().dumps_typed([value]))
    assert found == [value]
    assert type(found) is list
    assert type(found[0]) is type(value)


def test_the_table_names_classes_that_exist() -> None:
    for name in NAMES:
        cls = known_class(name)
        assert cls is not None, name
        assert known_name(cls) == name


def test_others_of_the_same_package_are_refused() -> None:
    with pytest.raises(SerializationError, match="not registered"):
        Serializer().dumps_typed(StringPromptValue(text="x"))
    assert known_class("langchain_core.prompt_values:StringPromptValue") is None


def test_a_class_that_only_bears_the_name_is_refused() -> None:
    twin = type("Document", (Document,), {"__module__": Document.__module__})
    with pytest.raises(SerializationError, match="not the registered class of that name"):
        Serializer().dumps_typed(twin(page_content="x"))


def test_where_the_module_is_not_loaded_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Serializer().dumps_typed([Document(page_content="x")])
    monkeypatch.delitem(sys.modules, "langchain_core.documents.base")
    with pytest.raises(UnknownTypeError, match=r"documents\.base:Document"):
        Serializer().loads_typed(stored)
    assert "langchain_core.documents.base" not in sys.modules
