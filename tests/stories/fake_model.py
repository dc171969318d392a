"""A chat model that answers by rule, so that every story has one known outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def content_of(message: Any) -> str:
    """Return the text of a message, be it a dict or an object."""
    return str(message["content"] if isinstance(message, Mapping) else message.content)


def role_of(message: Any) -> str:
    """Return ``user``, ``assistant`` or ``system``, whatever the message's own vocabulary is."""
    if isinstance(message, Mapping):
        name = message.get("role", message.get("type"))
    else:
        name = getattr(message, "type", None) or getattr(message, "role", None)
    return {"human": "user", "ai": "assistant"}.get(str(name), str(name))


def answer(messages: Sequence[Any]) -> str:
    """Answer the last message by rule, using what earlier messages told."""
    text = content_of(messages[-1])
    if text == "我是谁？你是谁？":
        return f"你是{_last_told(messages, '我是')}，我是{_last_told(messages, '你是')}。"
    if "七言绝句" in text:
        return f"诗《{_topic(text)}》"
    if "笑话" in text:
        return f"笑话《{_topic(text)}》"
    return f"收到：{text}"


def _last_told(messages: Sequence[Any], opening: str) -> str:
    said = [content_of(message) for message in messages if role_of(message) == "user"]
    told = [name for text in said for name in re.findall(rf"{opening}(?!谁)(\w+)", text)]
    return told[-1] if told else "不知道"


def _topic(text: str) -> str:
    found = re.search(r"关于\s*(.+?)\s*(?:主题)?的", text)
    return found.group(1) if found else text


class FakeModel:
    """Stands in for a chat model: ``invoke(messages)`` returns one message and is recorded in ``prompts``."""

    def __init__(self, reply: Callable[[str], Any]) -> None:
        """Take the function that wraps an answer's text into a message."""
        self._reply = reply
        self.prompts: list[list[str]] = []

    def invoke(self, messages: Sequence[Any]) -> Any:
        """Answer the conversation."""
        self.prompts.append([content_of(message) for message in messages])
        return self._reply(answer(messages))


class FakeRouterModel:
    """Stands in for a model with structured output: names the topic and the kind of text that is asked for."""

    def __init__(self) -> None:
        """Start with no prompts seen."""
        self.prompts: list[str] = []

    def invoke(self, messages: Sequence[Any]) -> dict[str, str]:
        """Classify the last message."""
        text = content_of(messages[-1])
        self.prompts.append(text)
        return {"topic": _topic(text), "mode": "poem" if "七言绝句" in text else "joke"}
