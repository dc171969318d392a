"""Metadata filters: equality of JSON values, the same on every saver and for every key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from persistence.writer import plain_json


def normal_filter(wanted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the filter as JSON values, None if it asks nothing. Raises SerializationError for other values."""
    if not wanted:
        return None
    plain_json.check(wanted, "filter")
    return dict(wanted)


def matches(metadata: str, wanted: Mapping[str, Any]) -> bool:
    """Whether stored metadata holds the wanted values; a key it lacks matches nothing, not even None.

    Metadata that does not parse counts as a match: its reader then gets the error, instead of a history with a hole.
    """
    try:
        stored = plain_json.decode(metadata)
    except msgspec.DecodeError:
        return True
    return isinstance(stored, dict) and all(
        key in stored and plain_json.same(stored[key], value) for key, value in wanted.items()
    )
