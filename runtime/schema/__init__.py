"""State types: what they say about channels, and what becomes of values on their way in and out."""

from runtime.schema.coerce import fingerprint, view
from runtime.schema.introspect import (
    Schema,
    first_parameter_schema,
    introspect,
    merge_channels,
    types_in,
    updates_of,
)
from runtime.schema.messages import REMOVE_ALL_MESSAGES, MessagesState, add_messages

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "MessagesState",
    "Schema",
    "add_messages",
    "fingerprint",
    "first_parameter_schema",
    "introspect",
    "merge_channels",
    "types_in",
    "updates_of",
    "view",
]
