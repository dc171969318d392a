"""What a node's config passes on to LangChain's models, tools and runnables, if the node uses such."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

LIBRARY: Final = "langchain_core.runnables.config"
"""The module in which LangChain looks for the config of what calls it."""

_PLACE: Final = frozenset({"checkpoint_id", "checkpoint_ns", "checkpoint_map", "__pregel_task_id"})


def heard(callbacks: Any, more: Sequence[Any], config: Mapping[str, Any], *, is_async: bool) -> Any:
    """Return callbacks as a node finds them: those of the call with more handlers, and the node's tags and metadata.

    A manager, because what a model is called with replaces the tags and metadata of its surroundings, but not those of
    a manager. Without LangChain there is none, and a list will do.
    """
    handlers = [*_handlers(callbacks), *more]
    try:
        from langchain_core.callbacks import AsyncCallbackManager, CallbackManager  # noqa: PLC0415 - optional, and slow
    except ImportError:
        return handlers
    tags = list(dict.fromkeys([*getattr(callbacks, "inheritable_tags", ()), *(config.get("tags") or ())]))
    metadata = {**getattr(callbacks, "inheritable_metadata", {}), **_metadata(config)}
    made = AsyncCallbackManager if is_async else CallbackManager
    return made(
        handlers=handlers,
        inheritable_handlers=list(handlers),
        parent_run_id=getattr(callbacks, "parent_run_id", None),
        tags=tags,
        inheritable_tags=list(tags),
        metadata=metadata,
        inheritable_metadata=dict(metadata),
    )


def _handlers(callbacks: Any) -> list[Any]:
    """Return the handlers of callbacks that hear what nodes call: of a manager, a list, or one by itself."""
    if callbacks is None:
        return []
    if isinstance(callbacks, (list, tuple)):
        return list(callbacks)
    return list(getattr(callbacks, "inheritable_handlers", [callbacks]))


def seat(config: Mapping[str, Any], *, wanted: bool) -> None:
    """Let LangChain find a node's config in the current context, as it finds that of its own runnables.

    Unless ``wanted`` this is done only if LangChain is loaded. The node's place in the run stays out of it: a graph of
    another library that the node calls would take it for a place of its own.
    """
    library: Any = sys.modules.get(LIBRARY)
    if library is None and wanted:
        with suppress(ImportError):
            from langchain_core.runnables import config as library  # noqa: PLC0415 - optional, and slow to import
    if library is None:
        return
    configurable = {key: value for key, value in config["configurable"].items() if key not in _PLACE}
    library.var_child_runnable_config.set({**config, "configurable": configurable, "metadata": _metadata(config)})


def _metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"checkpoint_ns": config["configurable"]["checkpoint_ns"], **config["metadata"]}
