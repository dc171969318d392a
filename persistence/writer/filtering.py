"""Metadata filters: equality of JSON values, the same on every saver and for every key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from persistence.writer import plain_json


def normal_filter(wanted: Mapping[str, Any] | None) -> str | None:
    """Return the filter as JSON text, None if it asks nothing.

    Raises SerializationError if it holds other values than JSON's, TypeError if it is no mapping.
    """
    if wanted is None:
        return None
    if not isinstance(wanted, Mapping):
        message = f"filter must be a mapping of metadata keys to values, not {type(wanted).__name__}: {wanted!r:.80}"
        raise TypeError(message)
    if not wanted:
        return None
    plain_json.check(wanted, "filter")
    return plain_json.dump(wanted, "filter").decode()


def metadata_matches(metadata: str | bytes, wanted: str) -> bool:
    """Whether stored metadata holds the wanted values; a key it lacks matches nothing, not even None.

    Metadata that does not parse counts as a match: its reader then gets the error, instead of a history with a hole.
    """
    stored = _parsed(metadata)
    if stored is None:
        return True
    return all(key in stored and plain_json.same(stored[key], value) for key, value in _wanted(wanted).items())


def metadata_run_id(metadata: str | bytes) -> str | None:
    """Return the run that stored metadata names."""
    stored = _parsed(metadata)
    run_id = None if stored is None else stored.get("run_id")
    return run_id if isinstance(run_id, str) else None


def _parsed(text: str | bytes) -> dict[str, Any] | None:
    try:
        value = plain_json.decode(text)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None


@lru_cache(maxsize=16)
def _wanted(text: str) -> dict[str, Any]:
    return dict(plain_json.decode(text))
