"""``StateGraph``: describes nodes and edges over a typed state; ``compile()`` makes it runnable."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, Union, get_args, get_origin, get_type_hints

from runtime.actors.calling import Call
from runtime.errors import GraphDefinitionError
from runtime.graph.arguments import (
    cache_policy_of,
    check_saver,
    check_store,
    policies,
    refuse_generators,
    renamed,
    timeout_of,
)
from runtime.graph.breakpoints import breakpoints
from runtime.graph.compiled import CompiledStateGraph, check_strategy
from runtime.graph.planning import plan_of
from runtime.run.adapting import adapted
from runtime.run.caching import caching_for
from runtime.run.program import Program
from runtime.schema.introspect import first_parameter_schema, introspect, merge_channels
from runtime.types.command import Command
from runtime.types.constants import END, HANDLER, RESERVED_NODES, START
from runtime.types.naming import known_nodes
from runtime.types.parameters import ContextT, InputT, OutputT, StateT
from runtime.types.policy import CachePolicy, MultitaskStrategy, RetryPolicy, TimeoutPolicy


@dataclass(slots=True)
class NodeSpec:
    """A node as described."""

    name: str
    function: Any
    call: Call
    input_schema: Any = None
    retry: tuple[RetryPolicy, ...] = ()
    cache: CachePolicy | None = None
    timeout: TimeoutPolicy | None = None
    handler: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    defer: bool = False
    destinations: Mapping[str, str | None] = field(default_factory=dict)
    """Where a Command may go, and what the way is called; for drawing."""


@dataclass(slots=True)
class BranchSpec:
    """A conditional edge as described."""

    name: str
    function: Any
    call: Call
    ends: dict[Any, str] | None
    input_schema: Any = None


class StateGraph(Generic[StateT, ContextT, InputT, OutputT]):
    """A graph of nodes that read and write one typed state.

    Args:
        state_schema: TypedDict, dataclass, msgspec.Struct, pydantic model, or a bare (annotated) type. Each key is a
            channel; ``Annotated[T, reducer]`` folds writes, a plain type keeps the last one.
        context_schema: type of what callers pass as ``context``.
        input_schema: keys that callers may give; the state's by default.
        output_schema: keys that a run returns; the state's by default.

    """

    @renamed(config_schema="context_schema", input="input_schema", output="output_schema")
    def __init__(
        self,
        state_schema: Any,
        context_schema: Any = None,
        *,
        input_schema: Any = None,
        output_schema: Any = None,
    ) -> None:
        self.state_schema = state_schema
        self.context_schema = context_schema
        self.input_schema = state_schema if input_schema is None else input_schema
        self.output_schema = state_schema if output_schema is None else output_schema
        self.nodes: dict[str, NodeSpec] = {}
        self.edges: set[tuple[str, str]] = set()
        self.waiting_edges: set[tuple[tuple[str, ...], str]] = set()
        self.branches: dict[str, dict[str, BranchSpec]] = {}
        self.edge_order: list[tuple[str, str]] = []
        self.join_order: list[tuple[tuple[str, ...], str]] = []
        self.defaults: dict[str, Any] = {}
        for schema in (self.input_schema, self.output_schema):
            managed = introspect(schema).managed
            if schema is not state_schema and managed:
                msg = f"Managed values cannot be part of an input or output schema: {sorted(managed)}."
                raise GraphDefinitionError(msg)
        merge_channels(map(introspect, (state_schema, self.input_schema, self.output_schema)))

    # ---- describing --------------------------------------------------------------------------------------------

    @renamed(retry="retry_policy", input="input_schema")
    def add_node(
        self,
        node: str | Any,
        action: Any = None,
        *,
        defer: bool = False,
        metadata: Mapping[str, Any] | None = None,
        input_schema: Any = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        cache_policy: CachePolicy | None = None,
        timeout: Any = None,
        error_handler: Any = None,
        destinations: Mapping[str, str] | Sequence[str] | None = None,
    ) -> Self:
        """Add a node: ``add_node("name", function)`` or ``add_node(function)``.

        Args:
            node: the name, or the function whose name is taken.
            action: sync or async function, callable object, partial or runnable; its first parameter is the state.
            defer: run only once nothing else is left to do.
            metadata: shown to observers.
            input_schema: what of the state the node sees; by default its first parameter's annotation, else the state.
            retry_policy: how failures are retried; of several, the first that matches.
            cache_policy: how results are kept for equal inputs.
            timeout: seconds, timedelta or TimeoutPolicy for one attempt; async nodes only.
            error_handler: function that takes the node's input, and the failure as ``error: NodeError``; it runs in the
                same superstep once retries are used up, and what it returns takes the place of the node's result and
                edges.
            destinations: where a Command may go, with labels if a mapping: to be drawn, and ``compile`` checks that
                there are such nodes. By default what the return annotation says: ``Command[Literal["a", "b"]]``.

        Raises:
            GraphDefinitionError: a bad name, a duplicate, or something that cannot be called.

        """
        if not isinstance(node, str):
            action, node = node, _name_of(node)
        elif action is None:
            msg = f"Node {node!r} has no function: add_node(name, function)."
            raise GraphDefinitionError(msg)
        self._check_name(node)
        refuse_generators(action, "nodes")
        call = Call(action, node)
        policy = timeout_of(timeout)
        if policy is not None and not call.is_async:
            msg = f"Node {node!r} is a sync function: it cannot be cancelled, so it cannot have a timeout."
            raise GraphDefinitionError(msg)
        self.nodes[node] = NodeSpec(
            name=node,
            function=action,
            call=call,
            input_schema=input_schema if input_schema is not None else first_parameter_schema(call.function),
            retry=policies(retry_policy),
            cache=cache_policy_of(cache_policy),
            timeout=policy,
            handler=_handler(error_handler),
            metadata=dict(metadata or {}),
            defer=defer,
            destinations=_destinations(destinations, call.function),
        )
        return self

    def set_node_defaults(
        self,
        *,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        cache_policy: CachePolicy | None = None,
        timeout: Any = None,
        error_handler: Any = None,
    ) -> Self:
        """Set policies for every node that has none of its own.

        Error handlers are retried by these too, and timed if they are async, but neither cached nor handled. With a
        timeout, sync nodes are refused at compile.
        """
        given = {
            "retry": policies(retry_policy),
            "cache": cache_policy_of(cache_policy),
            "timeout": timeout_of(timeout),
            "handler": _handler(error_handler),
        }
        self.defaults.update({key: value for key, value in given.items() if value})
        return self

    def add_edge(self, start_key: str | Sequence[str], end_key: str) -> Self:
        """Let ``end_key`` run after ``start_key``; after a list, once each of them has run since it last did.

        Raises:
            GraphDefinitionError: it starts at END, ends at START, or joins what is not a node added before.

        """
        if isinstance(start_key, str):
            if start_key == END:
                msg = "END cannot be a start node."
                raise GraphDefinitionError(msg)
            if end_key == START:
                msg = "START cannot be an end node."
                raise GraphDefinitionError(msg)
            if (start_key, end_key) not in self.edges:
                self.edge_order.append((start_key, end_key))
            self.edges.add((start_key, end_key))
            return self
        starts = tuple(start_key)
        if not starts:
            msg = f"The join edge to {end_key!r} has no start nodes."
            raise GraphDefinitionError(msg)
        for start in starts:
            if start in (START, END) or start not in self.nodes:
                msg = f"The join edge to {end_key!r} starts at {start!r}, which is not a node added before."
                raise GraphDefinitionError(msg)
        if end_key == START or (end_key != END and end_key not in self.nodes):
            msg = f"The join edge ends at {end_key!r}, which is not a node added before."
            raise GraphDefinitionError(msg)
        if (starts, end_key) not in self.waiting_edges:
            self.join_order.append((starts, end_key))
        self.waiting_edges.add((starts, end_key))
        return self

    def add_conditional_edges(
        self, source: str, path: Any, path_map: Mapping[Any, str] | Sequence[str] | None = None
    ) -> Self:
        """Ask ``path`` where to go after ``source``: a name, a Send, a list of them, or END.

        Args:
            source: node, or START.
            path: sync or async function of the state, with ``source``'s writes in it.
            path_map: what the answers mean, or which there are; by default the ``Literal`` of the return annotation,
                else the names. A single text says nothing, as in LangGraph.

        Raises:
            GraphDefinitionError: it starts at END, cannot be called, or the source has a router of that name.

        """
        name = _name_of(path)
        if source == END:
            msg = "END cannot have conditional edges."
            raise GraphDefinitionError(msg)
        if name in self.branches.get(source, {}):
            msg = f"Branch with name {name!r} already exists for node {source!r}."
            raise GraphDefinitionError(msg)
        call = Call(path, name)
        ends: dict[Any, str] | None
        if isinstance(path_map, Mapping):
            ends = dict(path_map)
        elif path_map is not None and not isinstance(path_map, str):
            ends = {target: target for target in path_map}
        else:
            literal = _returned_literal(call.function)
            ends = {target: target for target in literal} if literal else None
        spec = BranchSpec(name, path, call, ends, first_parameter_schema(call.function))
        self.branches.setdefault(source, {})[name] = spec
        return self

    def add_sequence(self, nodes: Sequence[Any | tuple[str, Any]]) -> Self:
        """Add nodes that run one after another.

        Args:
            nodes: functions, or pairs of name and function.

        Raises:
            GraphDefinitionError: there is none, or one that ``add_node`` refuses.

        """
        if not nodes:
            msg = "Sequence requires at least one node."
            raise GraphDefinitionError(msg)
        previous: str | None = None
        for node in nodes:
            name, action = node if isinstance(node, tuple) else (_name_of(node), node)
            self.add_node(name, action)
            if previous is not None:
                self.add_edge(previous, name)
            previous = name
        return self

    def set_entry_point(self, key: str) -> Self:
        """Start at this node."""
        return self.add_edge(START, key)

    def set_finish_point(self, key: str) -> Self:
        """End after this node."""
        return self.add_edge(key, END)

    def set_conditional_entry_point(self, path: Any, path_map: Mapping[Any, str] | Sequence[str] | None = None) -> Self:
        """Start where ``path`` says."""
        return self.add_conditional_edges(START, path, path_map)

    if not TYPE_CHECKING:  # or type checkers would find every name here

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, which says what to do where the compiled graph has that name."""
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_") and hasattr(CompiledStateGraph, name):
                msg += f": it only describes a graph. Call {name} on what its compile() returns."
            raise AttributeError(msg, name=name, obj=self)

    # ---- checking ----------------------------------------------------------------------------------------------

    def validate(self, interrupt: Sequence[str] | None = None) -> Self:
        """Check that every edge joins known nodes and that there is a way in. Raises GraphDefinitionError."""
        for start, end in self.edge_order:
            self._require(start, f"Found edge starting at unknown node {start!r}.", besides=START)
            self._require(end, f"Found edge ending at unknown node {end!r}.")
        for source, branches in self.branches.items():
            self._require(source, f"Conditional edges start at unknown node {source!r}.", besides=START)
            for branch in branches.values():
                for target in (branch.ends or {}).values():
                    msg = f"Conditional edge {branch.name!r} of {source!r} may go to unknown node {target!r}."
                    self._require(target, msg)
        for name, node in self.nodes.items():
            for target in node.destinations:
                msg = (
                    f"A Command of node {name!r} may go to unknown node {target!r}, as its destinations or its return "
                    "annotation say. Nodes of a graph around this one are not named there."
                )
                self._require(target, msg)
        if not any(start == START for start, _ in self.edges) and START not in self.branches:
            msg = "Graph must have an entrypoint: add at least one edge from START to another node."
            raise GraphDefinitionError(msg)
        for name in interrupt or ():
            self._require(name, f"Interrupt node {name!r} not found.", besides=None)
        return self

    def _require(self, node: str, message: str, *, besides: str | None = END) -> None:
        if node != besides and node not in self.nodes:
            msg = f"{message} {known_nodes(node, self.nodes, besides=besides)}"
            raise GraphDefinitionError(msg)

    # ---- compiling ---------------------------------------------------------------------------------------------

    def compile(
        self,
        checkpointer: Any = None,
        *,
        cache: Any = None,
        store: Any = None,
        interrupt_before: Literal["*"] | Sequence[str] | None = None,
        interrupt_after: Literal["*"] | Sequence[str] | None = None,
        name: str | None = None,
        debug: bool = False,
        node_aliases: Mapping[str, str] | None = None,
        multitask_strategy: MultitaskStrategy = "enqueue",
        step_timeout: float | None = None,
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """Check the graph and make it runnable.

        Args:
            checkpointer: saver that keeps checkpoints. As a subgraph: None uses the parent's saver and starts afresh
                each time; True uses it too and keeps the state from one run of the thread to the next; False keeps
                nothing, so that a pause starts it over; a saver of its own is used. By itself: with None or False
                nothing is kept, and True is an error.
            cache: keeps the results of nodes that have a CachePolicy.
            store: long-term memory that nodes can reach.
            interrupt_before: nodes to pause before; ``"*"`` for all.
            interrupt_after: nodes to pause after.
            name: shown in errors and to observers.
            debug: find nodes that change their input in place, deep inside it; costs a fingerprint per node.
            node_aliases: old node name to new name, for work that was saved before a node was renamed.
            multitask_strategy: what a second run on a busy thread does.
            step_timeout: seconds for a whole superstep.

        Raises:
            GraphDefinitionError: the graph is not consistent.

        """
        before = breakpoints(interrupt_before or (), "interrupt_before")
        after = breakpoints(interrupt_after or (), "interrupt_after")
        self.validate([*(before or ()), *(after or ())])
        self._check_aliases(node_aliases or {})
        check_strategy(multitask_strategy)
        plan = plan_of(self, name or "LangGraph", dict(node_aliases or {}))
        check_saver(checkpointer)
        check_store(store)
        program = Program(
            plan=plan,
            saver=adapted(checkpointer),
            store=store,
            caching=caching_for(cache, plan),
            interrupt_before=before,
            interrupt_after=after,
            step_timeout=step_timeout,
            context_schema=self.context_schema,
            multitask_strategy=multitask_strategy,
            debug=debug,
        )
        return CompiledStateGraph(self, program)

    def _check_aliases(self, aliases: Mapping[str, str]) -> None:
        for old, new in aliases.items():
            if new not in self.nodes:
                msg = f"node_aliases: there is no node {new!r} to hand the work of {old!r} to. Known: {self._known()}."
                raise GraphDefinitionError(msg)
            if old in self.nodes:
                msg = f"node_aliases: {old!r} is a node of this graph, so its work is its own."
                raise GraphDefinitionError(msg)

    def _check_name(self, name: str) -> None:
        if name in RESERVED_NODES or name.startswith(HANDLER):
            msg = f"Node {name!r} is reserved."
            raise GraphDefinitionError(msg)
        if not name or any(mark in name for mark in "|:"):
            msg = f"{name!r} is no valid node name: it must not be empty nor contain '|' or ':'."
            raise GraphDefinitionError(msg)
        if "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
            msg = f"{name!r} is no valid node name: it holds a NUL or a lone surrogate, databases cannot key on it."
            raise GraphDefinitionError(msg)
        if name in self.nodes:
            msg = f"Node {name!r} already present."
            raise GraphDefinitionError(msg)

    def _known(self) -> str:
        return ", ".join(self.nodes) or "none"


def _name_of(function: Any) -> str:
    """Return the name of a function or runnable, or of an object's class: a partial's is ``partial``."""
    if hasattr(function, "invoke") and hasattr(function, "get_name"):
        name = function.get_name()
    else:
        name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _handler(function: Any) -> Any:
    """Return an error handler. Raises GraphDefinitionError if it cannot be one."""
    if function is not None:
        refuse_generators(function, "error handlers")
        Call(function, "error_handler")
    return function


def _hints(function: Any) -> dict[str, Any]:
    plain = function if inspect.isroutine(function) or not hasattr(function, "func") else function.func
    if not inspect.isroutine(plain):
        plain = type(plain).__call__
    try:
        return get_type_hints(plain)
    except Exception:  # noqa: BLE001 - hints that do not resolve say nothing
        return {}


def _returned_literal(function: Callable[..., Any]) -> tuple[Any, ...]:
    returned = _hints(function).get("return")
    return get_args(returned) if get_origin(returned) is Literal else ()


def _destinations(
    given: Mapping[str, str] | Sequence[str] | None, function: Callable[..., Any]
) -> dict[str, str | None]:
    """Return where a Command may go, and what the way is called."""
    if isinstance(given, Mapping):
        return dict(given)
    return dict.fromkeys(_command_targets(_hints(function).get("return")) if given is None else given)


def _command_targets(returned: Any) -> tuple[str, ...]:
    """Return what ``Command[Literal[...]]`` names, also as one of several return types."""
    if get_origin(returned) is Command:
        return tuple(get_args(get_args(returned)[0]))
    if get_origin(returned) in (Union, UnionType):
        return tuple(target for choice in get_args(returned) for target in _command_targets(choice))
    return ()
