"""What subgraphs note in the metadata of their checkpoints, beside what every run does."""

from __future__ import annotations

from typing import Final

CALLER: Final = "caller"
"""Metadata of a subgraph that keeps its state between calls: the task that made the call."""

KEPT_AT: Final = "kept_at"
"""Metadata of a subgraph that keeps its state between calls: what the next call finds it by (see run/routes)."""

CALL_MARK: Final = "call"
"""Metadata of a subgraph that was called at once with others: what tells its call apart (see run/telling_apart)."""
