"""The compiled graph: what never changes between runs, indexed for what a superstep asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.channels import EphemeralValue, Topic
from runtime.channels.values import LastValueAfterFinish
from runtime.types.command import Send
from runtime.types.constants import PULL, START, TASKS, branch_to

if TYPE_CHECKING:
    from runtime.channels import BaseChannel
    from runtime.schema.introspect import Schema
    from runtime.types.policy import CachePolicy, RetryPolicy, TimeoutPolicy


@dataclass(slots=True)
class BranchPlan:
    """A conditional edge: asks a router where to go."""

    name: str
    call: Any
    """How to call the router (actors/calling)."""
    schema: Schema
    """What of the state the router sees."""
    ends: Mapping[Any, str] | None
    """What the router's answers mean; None: they are names themselves."""
    exact: bool = False
    """Whether it sees the schema's keys alone, as its annotation asks; others see all that the node returned, too."""


@dataclass(slots=True)
class NodePlan:
    """One node: when it runs, what it reads, what follows it."""

    name: str
    call: Any
    """How to call the node's function (actors/calling)."""
    schema: Schema
    """What of the state the node sees."""
    triggers: tuple[str, ...] = ()
    """Sorted channel names."""
    targets: tuple[str, ...] = ()
    """Trigger channels of the nodes that follow by plain edges."""
    joins: tuple[str, ...] = ()
    """Barrier channels that wait for this node among others."""
    branches: tuple[BranchPlan, ...] = ()
    retry: tuple[RetryPolicy, ...] = ()
    timeout: TimeoutPolicy | None = None
    cache: CachePolicy | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    defer: bool = False
    subgraphs: tuple[Any, ...] = ()
    """Programs of the graphs that it runs, as far as known."""
    handler: NodePlan | None = None
    """What runs, in the same superstep, when the node has failed for good."""
    ends: bool = False
    """Whether an edge leads from it to the end; for drawing, as an end needs no channel."""
    destinations: Mapping[str, str | None] = field(default_factory=dict)
    """Where a Command of it may go, and what the way is called; for drawing."""
    source: str | None = None
    """A channel whose value is the whole input, instead of the schema's keys."""
    mapper: Callable[[Any], list[tuple[str, Any]]] | None = None
    """What a result stands for, instead of state keys."""
    index: int = 0
    """Position in the order in which nodes were added."""
    path_text: str = ""
    """Text form of ``path``, as stored."""
    edge_writes: tuple[tuple[str, Any], ...] = ()
    """What finishing writes to trigger channels, whatever the node returned."""

    @property
    def path(self) -> tuple[str, str]:
        """Path of a task that the state triggered."""
        return (PULL, self.name)

    def seal(self) -> None:
        """Compute what follows from name and edges; called once, when the graph is compiled."""
        self.path_text = f"~{PULL}, {self.name}"
        self.edge_writes = (*((target, None) for target in self.targets), *((join, self.name) for join in self.joins))


@dataclass(slots=True)
class Plan:
    """The whole graph."""

    name: str
    nodes: dict[str, NodePlan]
    state: dict[str, BaseChannel[Any, Any]]
    """Templates of the state's channels, by key."""
    internal: dict[str, BaseChannel[Any, Any]]
    """Templates of trigger, join and task channels; a run makes one only when it is written."""
    managed: dict[str, Any]
    input_schema: Schema
    output_schema: Schema
    input_keys: frozenset[str]
    output_keys: tuple[str, ...]
    bare: bool
    """Whether the state is one value without keys."""
    state_schema: Schema | None = None
    """What the state is, where observers may get it whole."""
    single: str | None = None
    """The one key whose value is the whole output, of a workflow function."""
    subscribers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Trigger channel to the nodes that it can start."""
    validators: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    """State keys by other names that programs may write them by: aliases of pydantic's fields, for one."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Old node names that saved work may still use."""
    triggers: frozenset[str] = frozenset()
    """Trigger channels of single nodes: they hold nothing but the fact that they were written."""
    untracked: frozenset[str] = frozenset()
    """State keys whose values are never stored, nor those that a Send gives to a node under these names."""
    shape: str = ""
    """Which graph it is, in every process: its name, its nodes and its keys."""

    def seal(self) -> Plan:
        """Build the indexes; called once, when the graph is compiled."""
        for position, node in enumerate(self.nodes.values()):
            node.index = position
            node.seal()
            if node.handler is not None:
                node.handler.seal()
            for trigger in node.triggers:
                self.subscribers[trigger] = (*self.subscribers.get(trigger, ()), node.name)
        self.untracked = frozenset(key for key, channel in self.state.items() if not channel.stored)
        self.shape = repr((self.name, list(self.nodes), list(self.state)))
        self.internal[TASKS] = Topic(Send, key=TASKS)
        self.internal[START] = EphemeralValue(object, key=START)
        self.triggers = frozenset(
            branch_to(name) for name, node in self.nodes.items() if name != START and not node.defer
        )
        return self

    @property
    def keyed(self) -> bool:
        """Whether the output is a dict of the state's keys."""
        return not self.bare and self.single is None

    def template(self, channel: str) -> BaseChannel[Any, Any] | None:
        """Return the empty channel of a name, or None if the graph has none."""
        found = self.state.get(channel)
        return found if found is not None else self.internal.get(channel)

    def known(self) -> list[str]:
        """Return the names that routes may use."""
        return sorted(name for name in self.nodes if name != START)


def trigger_channel(node: str, *, defer: bool) -> BaseChannel[Any, Any]:
    """Return the template of a node's own trigger."""
    key = branch_to(node)
    return LastValueAfterFinish(object, key=key) if defer else EphemeralValue(object, guard=False, key=key)
