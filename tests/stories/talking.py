"""Nodes that talk through LangChain's chat models, and readings of what the ``messages`` stream tells of them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

THERE: dict[str, Any] = {"messages": [("user", "hello?")]}


def model(text: str = "well met", identity: str = "m1", **options: Any) -> GenericFakeChatModel:
    """Return a model that says one thing, word by word where it is streamed."""
    return GenericFakeChatModel(messages=iter([AIMessage(text, id=identity)]), **options)


def speaker(*args: Any, **options: Any) -> Any:
    """Return a sync node that asks a model once: sync, because LangChain's async side knows asyncio alone."""

    def node(state: Any) -> dict[str, Any]:
        return {"messages": [model(*args, **options).invoke(state["messages"])]}

    return node


def told(chunks: list[Any]) -> list[tuple[str, str]]:
    """Return kind and text of what was told: a chunk of a message, or a whole one."""
    return [("chunk" if isinstance(said, AIMessageChunk) else "whole", said.content) for said, _ in chunks]


def whole(*texts: str, identity: str | None = None) -> list[BaseMessage]:
    """Return messages as a node may return them."""
    return [AIMessage(text, id=identity) for text in texts]
