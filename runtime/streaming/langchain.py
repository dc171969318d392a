"""LangChain's callbacks: how models and tools that a node calls are heard, without the node passing anything on.

A handler stands in the node's config, where LangChain finds it. It hears everything below its node, graphs inside
included, and tells only of what runs in its own task: each task inside has a handler of its own. LangChain is an
optional package, and slow to import; it is imported only where somebody listens to ``messages`` or ``tools``.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from runtime.streaming.messages import identified
from runtime.streaming.tools import Teller, ToolCall
from runtime.types.constants import TAG_NOSTREAM

if TYPE_CHECKING:
    from uuid import UUID

HEARD: Final = frozenset({"messages", "tools"})
"""Modes that LangChain's callbacks feed."""

_STEP: Final = "seq:step"
"""How tags begin that LangChain gives the steps of a sequence."""


def handlers(modes: Collection[str], ns: str, tell: Teller) -> list[Any]:
    """Return what listens, in a task's config, to the models and tools that the task calls."""
    made = _makers()
    return [] if made is None else [make(ns, tell) for mode, make in made.items() if mode in modes]


class Listening:
    """Listens to what runs in one task."""

    raise_error = True  # that a stream overflows must reach the node
    run_inline = True  # in order, and in the thread of what is heard

    def __init__(self, ns: str, tell: Teller) -> None:
        self._ns = ns
        self._tell = tell
        self._heard: dict[UUID, Any] = {}
        """What is known of runs under way."""

    def concerns(self, metadata: Mapping[str, Any] | None, tags: list[str] | None) -> bool:
        """Tell whether a run is to be told of."""
        if metadata is None or metadata.get("langgraph_checkpoint_ns") != self._ns:
            return False
        return not (tags and TAG_NOSTREAM in tags)

    # LangChain's models stream by themselves for handlers that have these two.

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[Any]) -> AsyncIterator[Any]:  # noqa: ARG002
        """Leave what a runnable yields as it is."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Iterator[Any]) -> Iterator[Any]:  # noqa: ARG002
        """Leave what a runnable yields as it is."""
        return output


class Models(Listening):
    """Tells of tokens, and of whole messages of models that give no tokens."""

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - LangChain's signature
        messages: list[list[Any]],  # noqa: ARG002 - likewise
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Note a model at work."""
        if metadata is not None and self.concerns(metadata, tags):
            shown = [tag for tag in tags or () if not tag.startswith(_STEP)]
            self._heard[run_id] = {**metadata, "tags": shown} if shown else dict(metadata)

    def on_llm_new_token(self, token: str, *, run_id: UUID, chunk: Any = None, **_: Any) -> None:  # noqa: ARG002
        """Tell of a token."""
        message = getattr(chunk, "message", None)
        if message is not None and run_id in self._heard:
            self._tell("messages", (identified(message), self._heard[run_id]))

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Tell of the message, unless its tokens were told."""
        metadata = self._heard.pop(run_id, None)
        if metadata is not None and response.generations and response.generations[0]:
            message = getattr(response.generations[0][0], "message", None)
            if message is not None:
                self._tell("messages", (identified(message), metadata), once=True)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002
        """Forget a model that failed."""
        self._heard.pop(run_id, None)


class Tools(Listening):
    """Tells of calls of tools."""

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,  # noqa: ARG002 - LangChain's signature
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Tell that a tool was called."""
        if self.concerns(metadata, tags):
            name = (serialized or {}).get("name") or more.get("name") or ""
            call_id = more.get("tool_call_id") or str(run_id)
            self._heard[run_id] = ToolCall(self._tell, call_id, name, inputs)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Tell that a tool returned."""
        if run_id in self._heard:
            self._heard.pop(run_id).finished(output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Tell that a tool failed."""
        if run_id in self._heard:
            self._heard.pop(run_id).failed(error)


@functools.cache
def _makers() -> dict[str, Callable[[str, Teller], Any]] | None:
    """Return what makes the handler of each mode; None without LangChain, whose class it must be."""
    try:
        from langchain_core.callbacks import BaseCallbackHandler  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return None
    return {
        "messages": type("Models", (Models, BaseCallbackHandler), {}),
        "tools": type("Tools", (Tools, BaseCallbackHandler), {}),
    }
