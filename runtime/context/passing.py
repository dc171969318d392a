"""What a node's config passes on to LangChain's models, tools and runnables, if the node uses such."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from typing_extensions import override

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_keys, dict_values

LIBRARY: Final = "langchain_core.runnables.config"
"""The module in which LangChain looks for the config of what calls it."""

_PLACE: Final = frozenset({"checkpoint_id", "checkpoint_ns", "checkpoint_map", "__pregel_task_id"})


def heard(callbacks: Any, more: Sequence[Any], config: Mapping[str, Any], *, task_id: str, is_async: bool) -> Any:
    """Return callbacks as a node finds them: those of the call with more handlers, and the node's tags and metadata.

    A manager, because what a model is called with replaces the tags and metadata of its surroundings, but not those of
    a manager. Without LangChain there is none, and a list will do. Where nothing is around the graph, the task is what
    LangChain takes for the run around what the node does: without one, events of a program's own are refused.
    """
    handlers = [*_handlers(callbacks), *more]
    managers = _managers()
    if managers is None:
        return handlers
    tags = list(dict.fromkeys([*getattr(callbacks, "inheritable_tags", ()), *(config.get("tags") or ())]))
    metadata = {**getattr(callbacks, "inheritable_metadata", {}), **_metadata(config)}
    return managers[is_async](
        handlers=handlers,
        inheritable_handlers=list(handlers),
        parent_run_id=getattr(callbacks, "parent_run_id", None) or UUID(task_id),
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


def seat(make: Callable[[], Mapping[str, Any]], *, wanted: bool) -> None:
    """Let LangChain find a node's config in the current context, as it finds that of its own runnables.

    Unless ``wanted`` this is done only if LangChain is loaded.
    """
    library: Any = _library() if wanted else sys.modules.get(LIBRARY)
    if library is not None:
        library.var_child_runnable_config.set(_Seated(make))


@functools.cache
def _library() -> Any:
    try:
        from langchain_core.runnables import config  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return None
    return config


@functools.cache
def _managers() -> tuple[Any, Any] | None:
    """Return the managers for sync and for async nodes; None without LangChain."""
    try:
        from langchain_core.callbacks import AsyncCallbackManager, CallbackManager  # noqa: PLC0415 - optional, and slow
    except ImportError:
        return None
    return CallbackManager, AsyncCallbackManager


class _Seated(dict[str, Any]):
    """A node's config, made when it is first looked at: most nodes call nothing that looks.

    The node's place in the run stays out of it: a graph of another library that the node calls would take that for a
    place of its own.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        self._make: Callable[[], Mapping[str, Any]] | None = make

    def _made(self) -> Self:
        if self._make is not None:
            config, self._make = self._make(), None
            configurable = {key: value for key, value in config["configurable"].items() if key not in _PLACE}
            self.update(config, configurable=configurable, metadata=_metadata(config))
        return self

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return dict.__len__(self._made())

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self._made())

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self._made(), key)

    def __getitem__(self, key: str) -> Any:
        return dict.__getitem__(self._made(), key)

    @override
    def get(self, key: str, default: Any = None) -> Any:
        return dict.get(self._made(), key, default)

    @override
    def keys(self) -> dict_keys[str, Any]:
        return dict.keys(self._made())

    @override
    def values(self) -> dict_values[str, Any]:
        return dict.values(self._made())

    @override
    def items(self) -> dict_items[str, Any]:
        return dict.items(self._made())

    @override
    def copy(self) -> dict[str, Any]:
        return dict(self.items())


def _metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"checkpoint_ns": config["configurable"]["checkpoint_ns"], **config["metadata"]}
