"""A call's config: the public mapping, and the form it is parsed into once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, TypedDict, cast

from persistence.contracts.checkpoint import EXCLUDED_METADATA_KEYS
from runtime.errors import ConfigError

DEFAULT_RECURSION_LIMIT: Final = int(os.environ.get("ACTORGRAPH_DEFAULT_RECURSION_LIMIT", "10007"))

_OPTIONS: Final = frozenset(
    {"tags", "metadata", "callbacks", "run_name", "run_id", "max_concurrency", "recursion_limit", "configurable"}
)
_ARGUMENTS: Final = frozenset(
    {
        "checkpoint_during",
        "context",
        "control",
        "durability",
        "interrupt_after",
        "interrupt_before",
        "multitask_strategy",
        "output_keys",
        "stream_mode",
        "subgraphs",
        "version",
    }
)
"""Options of a call that are arguments of their own. Within the config they would be ignored in silence: an approval
that is asked for there would never be asked."""

_MISPLACED: Final = _ARGUMENTS | (_OPTIONS - {"configurable", "run_id"})
"""What does nothing inside ``configurable``. A ``run_id`` there is the program's own, and stored like its others."""

_LEAST_INT: Final = -(2**63)
_END_OF_INTS: Final = 2**64


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
    """Merge configs, later ones winning: tags and callbacks are joined, metadata and configurable merged by key.

    An unknown key is a setting of the program: it belongs to ``configurable``.

    Raises:
        ConfigError: a wrong shape, or a setting of ours in a place where it does nothing.

    """
    merged: dict[str, Any] = {}
    for config in configs:
        if not config:
            continue
        if type(config) is not dict and not isinstance(config, Mapping):
            raise _wrong("config", "a mapping", config)
        for key, value in config.items():
            if value is None:
                continue
            if key in ("metadata", "configurable"):
                _check_mapping(key, value)
                merged[key] = {**merged.get(key, {}), **value}
            elif key == "tags":
                if isinstance(value, str) or not isinstance(value, Iterable):
                    raise _wrong("config['tags']", "a list of strings", value)
                merged[key] = [*merged.get(key, ()), *value]
            elif key == "callbacks" and merged.get(key) is not None:
                merged[key] = _merged_callbacks(merged[key], value)
            elif key in _OPTIONS:
                merged[key] = value
            else:
                if key in _ARGUMENTS:
                    raise _misplaced(key, "as a key of config")
                merged["configurable"] = {**merged.get("configurable", {}), key: value}
    return cast("RunnableConfig", merged)


def _check_mapping(key: str, value: Any) -> None:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise _wrong(f"config[{key!r}]", "a mapping", value)
    if key == "configurable" and not _MISPLACED.isdisjoint(value):
        raise _misplaced(min(_MISPLACED & value.keys()), "inside config['configurable']")


def passed_down(callbacks: Any) -> Any:
    """Return those of a call's callbacks that also hear what it calls: of a manager, those that it passes on."""
    if not hasattr(callbacks, "inheritable_handlers"):
        return callbacks
    manager = callbacks.copy()
    manager.handlers = list(manager.inheritable_handlers)
    return manager


def _merged_callbacks(first: Any, second: Any) -> Any:
    """Return the handlers of both: as a manager, if one of them is LangChain's, or else as a list."""
    managers = [one for one in (first, second) if hasattr(one, "add_handler")]
    if len(managers) > 1:
        manager = first.merge(second)
        for name in ("handlers", "inheritable_handlers"):  # the merge keeps no order
            setattr(manager, name, list(dict.fromkeys([*getattr(first, name), *getattr(second, name)])))
        return manager
    others: list[Any] = []
    for one in (first, second):
        if one not in managers:
            others += one if isinstance(one, (list, tuple)) else [one]
    if not managers:
        return others
    manager = managers[0].copy()
    for handler in others:
        manager.add_handler(handler, inherit=True)
    return manager


def parse_config(*configs: Mapping[str, Any] | None) -> CallConfig:
    """Merge and check. Raises ConfigError, before anything runs or is saved."""
    raw = merge_configs(*configs)
    configurable = raw.setdefault("configurable", {})
    limit = raw.get("recursion_limit", DEFAULT_RECURSION_LIMIT)
    if not _is_count(limit):
        raise _wrong("recursion_limit", "an integer of at least 1", limit)
    concurrency = raw.get("max_concurrency")
    if concurrency is not None and not _is_count(concurrency):
        raise _wrong("max_concurrency", "an integer of at least 1 or None", concurrency)
    thread_id, checkpoint_id = configurable.get("thread_id"), configurable.get("checkpoint_id")
    return CallConfig(
        raw=raw,
        thread_id=None if thread_id is None else _thread_text(thread_id),
        checkpoint_ns=_id_text(configurable.get("checkpoint_ns", ""), "checkpoint_ns"),
        checkpoint_id=None if checkpoint_id in (None, "") else _id_text(checkpoint_id, "checkpoint_id"),
        recursion_limit=limit,
        max_concurrency=concurrency,
        run_id=None if raw.get("run_id") is None else str(raw["run_id"]),
        stored=_storable(raw, configurable),
    )


def checkpoint_config(
    thread_id: str, ns: str, checkpoint_id: str, parents: Mapping[str, str] | None = None
) -> RunnableConfig:
    """Return the config that addresses one checkpoint; inside a subgraph with those of the graphs around it."""
    place: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    if parents:
        place["checkpoint_map"] = {**parents, ns: checkpoint_id}
    return {"configurable": place}


def _thread_text(value: object) -> str:
    """Return a thread's id; an empty one is a name that was not filled in, and all callers would share its thread."""
    if value == "":
        msg = "thread_id is empty. Give each thread an id of its own, such as str(uuid.uuid4())."
        raise ConfigError(msg)
    return _id_text(value, "thread_id")


def _id_text(value: object, name: str) -> str:
    """Accept text, numbers, UUIDs and what else has a text of its own, as LangGraph does.

    Refused are shapes that a query could misread, and objects that show nothing but where they lie in memory.
    """
    if isinstance(value, str):
        return value
    kind = type(value)
    nameless = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    if value is None or nameless or isinstance(value, (Mapping, list, tuple, set, frozenset, bytes, bytearray, bool)):
        msg = f"{name} must be a string, got {kind.__name__}."
        raise ConfigError(msg)
    return str(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _wrong(what: str, expected: str, got: object) -> ConfigError:
    return ConfigError(f"{what} must be {expected}, got {got!r}.")


def _misplaced(name: str, found: str) -> ConfigError:
    right = f"the argument {name}= of the call" if name in _ARGUMENTS else f"config[{name!r}]"
    return ConfigError(
        f"{name!r} {found} has no effect. Pass it as {right}, or give a setting of your own another name."
    )


def _storable(raw: RunnableConfig, configurable: dict[str, Any]) -> dict[str, Any]:
    """Return the scalars that checkpoints can keep; other settings are the program's own affair."""
    stored: dict[str, Any] = {}
    for source in (raw.get("metadata") or {}, configurable):
        for key, value in source.items():
            if isinstance(value, (str, int, float)) and _keeps(key):
                scalar = _scalar(key, value)
                if scalar is not None:
                    stored.setdefault(key, scalar)
    return stored


def _keeps(key: object) -> bool:
    return isinstance(key, str) and not key.startswith("__") and key not in EXCLUDED_METADATA_KEYS


def _scalar(key: str, value: str | float) -> str | float | None:
    """Return the plain value of a scalar (of an Enum's member, a numpy number); None if JSON has no such number."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not value.isascii():
            _check_unicode(key, value)
        return value.replace("\0", "")
    if isinstance(value, int):
        return int(value) if _LEAST_INT <= value < _END_OF_INTS else None
    return float(value) if isfinite(value) else None


def _check_unicode(key: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(f"The setting {key!r}", "valid Unicode, to be stored with checkpoints", value) from None
