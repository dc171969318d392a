"""What a compiled graph hands to its runs: the plan and everything chosen at compile time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.context.runtime import RunControl
    from runtime.engine.plan import Plan
    from runtime.run.caching import Caching
    from runtime.run.nesting import Nested, Travel
    from runtime.streaming.hub import Hub
    from runtime.types.config import CallConfig
    from runtime.types.policy import Durability, MultitaskStrategy


@dataclass(slots=True)
class Program:
    """A compiled graph, as the conductor sees it."""

    plan: Plan
    saver: Any = None
    """What keeps checkpoints. For a subgraph also True (its own state, kept between runs of the parent's thread), False
    (no state), None (fresh state each time, in the parent's saver)."""
    store: Any = None
    caching: Caching | None = None
    interrupt_before: frozenset[str] | None = frozenset()
    """Names to pause before; None means every node."""
    interrupt_after: frozenset[str] | None = frozenset()
    step_timeout: float | None = None
    """Seconds for a whole superstep."""
    context_schema: Any = None
    multitask_strategy: MultitaskStrategy = "enqueue"
    debug: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Config that every call starts from (``with_config``)."""
    active: set[Any] = field(default_factory=set)
    """Runs at work."""


@dataclass(slots=True)
class Call:
    """One call of a graph."""

    input: Any
    config: CallConfig
    context: Any
    durability: Durability
    interrupt_before: frozenset[str] | None
    interrupt_after: frozenset[str] | None
    multitask_strategy: MultitaskStrategy
    control: RunControl | None = None
    hub: Hub | None = None
    output_keys: tuple[str, ...] | None = None
    nested: Nested | None = None
    """Where the call stands in a parent graph's run."""
    travel: Travel | None = None
    """Where subgraphs start when the call goes back in time."""
