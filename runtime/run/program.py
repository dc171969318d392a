"""What a compiled graph hands to its runs: the plan and everything chosen at compile time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from runtime.schema.reachable import types_in

if TYPE_CHECKING:
    from runtime.context.runtime import RunControl
    from runtime.engine.plan import Plan
    from runtime.run.caching import Caching
    from runtime.run.nesting import Nested
    from runtime.run.travelling import Travel
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
    graph: Any = None
    """The compiled graph that it belongs to."""
    lost_pause: bool = False
    """Whether it was told that a run has paused that nothing keeps, or is told elsewhere."""
    known_to: WeakSet[Any] = field(default_factory=WeakSet)
    """Savers and caches that may rebuild the types of its values."""

    def register_types(self, keeper: Any, *hints: Any) -> None:
        """Let a saver or cache rebuild what the graph's channels, and those of its subgraphs, can hold."""
        if keeper in self.known_to:
            return
        self.known_to.add(keeper)
        plan = self.plan
        mentioned = [node.schema.type for node in plan.nodes.values()]
        mentioned += [channel.typ for channel in plan.state.values()]
        keeper.register_types(types_in(plan.input_schema.type, plan.output_schema.type, *mentioned, *hints))
        for node in plan.nodes.values():
            for program in node.subgraphs:
                program.register_types(keeper)


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
    """Where the call itself is streamed to."""
    output_keys: tuple[str, ...] | None = None
    output_key: str | None = None
    """The one key whose value alone is the output."""
    aside: bool = False
    """Whether the node around it made it beside its own line of work, so maybe at once with others."""
    nested: Nested | None = None
    """Where the call stands in a parent graph's run."""
    travel: Travel | None = None
    """Where subgraphs start when the call goes back in time."""
