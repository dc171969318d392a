"""A call's config: the public mapping, and the form it is parsed into once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict, cast

from runtime.errors import ConfigError

DEFAULT_RECURSION_LIMIT: Final = int(os.environ.get("ACTORGRAPH_DEFAULT_RECURSION_LIMIT", "10007"))

_OPTIONS: Final = frozenset(
    {"tags", "metadata", "callbacks", "run_name", "run_id", "max_concurrency", "recursion_limit", "configurable"}
)
_MISPLACED: Final = frozenset({"max_concurrency", "recursion_limit", "callbacks", "durability", "multitask_strategy"})
"""Options that do nothing inside ``configurable``; there they would be ignored in silence."""

_NOT_METADATA: Final = frozenset(
    {
        "thread_id",
        "checkpoint_id",
        "checkpoint_ns",
        "checkpoint_map",
        "langgraph_step",
        "langgraph_node",
        "langgraph_triggers",
        "langgraph_path",
        "langgraph_checkpoint_ns",
    }
)


class RunnableConfig(TypedDict, total=False):
    """Settings of one call."""

    tags: list[str]
    metadata: dict[str, Any]
    """Scalars here are stored with every checkpoint and can be filtered on."""
    callbacks: Any
    run_name: str
    run_id: Any
    max_concurrency: int | None
    """How many nodes of the run may be at work at once; None: no limit."""
    recursion_limit: int
    """How many supersteps of nodes the run may take."""
    configurable: dict[str, Any]
    """``thread_id``, ``checkpoint_ns``, ``checkpoint_id`` and the program's own settings."""


@dataclass(slots=True)
class CallConfig:
    """A config, checked and taken apart."""

    raw: RunnableConfig
    thread_id: str | None
    checkpoint_ns: str
    checkpoint_id: str | None
    recursion_limit: int
    max_concurrency: int | None
    run_id: str | None
    stored: dict[str, Any] = field(default_factory=dict)
    """What goes into every checkpoint's metadata."""

    @property
    def configurable(self) -> dict[str, Any]:
        """The program's own settings, with the addressing keys."""
        return self.raw["configurable"]


def merge_configs(*configs: Mapping[str, Any] | None) -> RunnableConfig:
    """Merge configs, later ones winning: tags are concatenated, metadata and configurable merged by key."""
    merged: dict[str, Any] = {}
    for config in configs:
        if not config:
            continue
        for key, value in config.items():
            if value is None:
                continue
            if key in ("metadata", "configurable"):
                merged[key] = {**merged.get(key, {}), **value}
            elif key == "tags":
                merged[key] = [*merged.get(key, ()), *value]
            elif key in _OPTIONS:
                merged[key] = value
            else:
                merged["configurable"] = {**merged.get("configurable", {}), key: value}
    return cast("RunnableConfig", merged)


def parse_config(*configs: Mapping[str, Any] | None) -> CallConfig:
    """Merge and check. Raises ConfigError, before anything runs or is saved."""
    raw = merge_configs(*configs)
    configurable = raw.setdefault("configurable", {})
    misplaced = _MISPLACED & configurable.keys()
    if misplaced:
        name = min(misplaced)
        msg = f"{name!r} inside config['configurable'] has no effect; pass it as config[{name!r}] or as an argument."
        raise ConfigError(msg)
    limit = raw.get("recursion_limit", DEFAULT_RECURSION_LIMIT)
    if not isinstance(limit, int) or limit < 1:
        msg = f"recursion_limit must be an integer of at least 1, got {limit!r}."
        raise ConfigError(msg)
    concurrency = raw.get("max_concurrency")
    if concurrency is not None and (not isinstance(concurrency, int) or concurrency < 1):
        msg = f"max_concurrency must be an integer of at least 1 or None, got {concurrency!r}."
        raise ConfigError(msg)
    thread_id = configurable.get("thread_id")
    return CallConfig(
        raw=raw,
        thread_id=None if thread_id is None else _id_text(thread_id, "thread_id"),
        checkpoint_ns=_id_text(configurable.get("checkpoint_ns", ""), "checkpoint_ns"),
        checkpoint_id=_id_text(configurable["checkpoint_id"], "checkpoint_id")
        if configurable.get("checkpoint_id")
        else None,
        recursion_limit=limit,
        max_concurrency=concurrency,
        run_id=None if raw.get("run_id") is None else str(raw["run_id"]),
        stored=_storable(raw, configurable),
    )


def checkpoint_config(thread_id: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    """Return the config that addresses one checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def _id_text(value: object, name: str) -> str:
    """Accept text, numbers and UUIDs as LangGraph does; refuse shapes that a query could misread."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (Mapping, list, tuple, set, frozenset, bytes, bytearray, bool)):
        msg = f"{name} must be a string, got {type(value).__name__}."
        raise ConfigError(msg)
    return str(value)


def _storable(raw: RunnableConfig, configurable: dict[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = {}
    for source in (configurable, raw.get("metadata") or {}):
        for key, value in source.items():
            if isinstance(value, str):
                if _keeps(key):
                    stored[key] = value.replace("\0", "")
            elif isinstance(value, (int, float, bool)) and _keeps(key):
                stored[key] = value
    return stored


def _keeps(key: str) -> bool:
    return not key.startswith("__") and key not in _NOT_METADATA
