"""Addresses: what a config says about where a checkpoint lives, checked once at the door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from persistence.contracts.saver import Config


class Address(NamedTuple):
    """A place in the store; without ``checkpoint_id`` it means the newest checkpoint there."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str | None


def address(config: Config) -> Address:
    """Take the address out of a config.

    Raises:
        ValueError: There is no thread id, or an id holds text no database can key on.
        TypeError: An id is not a string.
    """
    configurable = _configurable(config)
    thread_id = configurable.get("thread_id")
    if thread_id is None:
        message = 'No thread_id: pass config={"configurable": {"thread_id": "..."}}.'
        raise ValueError(message)
    checkpoint_id = configurable.get("checkpoint_id")
    return Address(
        name(thread_id, "thread_id"),
        name(configurable.get("checkpoint_ns", ""), "checkpoint_ns"),
        None if not checkpoint_id else name(checkpoint_id, "checkpoint_id"),
    )


def optional_part(config: Config | None, key: str) -> str | None:
    """Return one checked part of a config's address, None if the config leaves it open."""
    value = None if config is None else _configurable(config).get(key)
    return None if value is None else name(value, key)


def config_of(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> dict[str, Any]:
    """Return the config that addresses one checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}}


def name(value: object, what: str) -> str:
    """Return an id or name if every database can key on it: a string without NUL and lone surrogates.

    The rule is the same on all savers, so that a thread can move from one to another.
    """
    if not isinstance(value, str):
        message = f"{what} must be a string, not {type(value).__name__}: {value!r:.80}"
        raise TypeError(message)
    if value.isprintable():  # true of nearly every name; NUL and lone surrogates are not printable
        return value
    if "\0" in value or not (value.isascii() or _encodes(value)):
        message = f"{what} {value!r:.80} holds a NUL or a lone surrogate; remove it, databases cannot key on it."
        raise ValueError(message)
    return value


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _configurable(config: Config) -> Mapping[str, Any]:
    if not isinstance(config, Mapping):
        message = f'A config must be a mapping with a "configurable", not {type(config).__name__}: {config!r:.80}'
        raise TypeError(message)
    configurable = config.get("configurable", {})
    if not isinstance(configurable, Mapping):
        message = f'config["configurable"] must be a mapping, not {type(configurable).__name__}.'
        raise TypeError(message)
    return configurable
