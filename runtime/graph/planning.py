"""From a graph as described to the plan that runs: channels, triggers, writers, all indexed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runtime.actors.calling import Call
from runtime.channels import LastValue, NamedBarrierValue, NamedBarrierValueAfterFinish
from runtime.engine.plan import BranchPlan, NodePlan, Plan, trigger_channel
from runtime.errors import GraphDefinitionError
from runtime.graph.subgraphs import programs_in
from runtime.schema.introspect import Schema, introspect, merge_channels
from runtime.types.constants import END, HANDLER, RESERVED, START, TASKS, branch_to

if TYPE_CHECKING:
    from runtime.graph.builder import NodeSpec, StateGraph
    from runtime.types.policy import TimeoutPolicy


def plan_of(graph: StateGraph[Any, Any, Any, Any], name: str, aliases: dict[str, str]) -> Plan:
    """Return the plan of a graph that was found consistent."""
    state = introspect(graph.state_schema)
    given, returned = introspect(graph.input_schema), introspect(graph.output_schema)
    specs = graph.nodes.values()
    own = {spec.name: introspect(spec.input_schema) for spec in specs if spec.input_schema is not None}
    asked = {
        (source, branch.name): introspect(branch.input_schema)
        for source, branches in graph.branches.items()
        for branch in branches.values()
        if branch.input_schema is not None
    }
    schemas = [state, given, returned, *own.values(), *asked.values()]
    channels = merge_channels(schemas)
    guarded = replace(state, build=state.rebuild)
    nodes: dict[str, NodePlan] = {START: NodePlan(START, None, given, triggers=(START,))}
    internal: dict[str, Any] = {}
    ends: dict[str, list[str]] = {}
    """By node, where its plain edges lead."""
    for start, end in graph.edge_order:
        ends.setdefault(start, []).append(end)
    joined: dict[str, list[tuple[str, str]]] = {}
    """By node, the joins that wait for it, each with where it leads."""
    joins: dict[str, list[str]] = {}
    """By node, the joins that start it."""
    for starts, end in graph.join_order:
        key = f"join:{'+'.join(starts)}:{end}"
        for start in dict.fromkeys(starts):
            joined.setdefault(start, []).append((key, end))
        if end == END:
            continue
        if key in internal:
            msg = f"Two join edges to {end!r} have the same name {key!r}: rename a node whose name has a '+'."
            raise GraphDefinitionError(msg)
        kind = NamedBarrierValueAfterFinish if graph.nodes[end].defer else NamedBarrierValue
        internal[key] = kind(str, set(starts), key)
        joins.setdefault(end, []).append(key)
    for spec in graph.nodes.values():
        trigger = branch_to(spec.name)
        internal[trigger] = trigger_channel(spec.name, defer=spec.defer)
        schema = own.get(spec.name)
        nodes[spec.name] = NodePlan(
            spec.name,
            spec.call,
            guarded if schema is None or schema.type is state.type else schema,
            triggers=tuple(sorted((trigger, *joins.get(spec.name, ())))),
            retry=spec.retry or graph.defaults.get("retry", ()),
            timeout=_timeout(graph, spec),
            cache=spec.cache or graph.defaults.get("cache"),
            handler=_handler(graph, spec, guarded if schema is None else schema),
            metadata=spec.metadata,
            subgraphs=programs_in(spec.function),
            defer=spec.defer,
            destinations=spec.destinations,
        )
    _refuse_taken(channels, internal)
    for node, plan in nodes.items():
        plan.targets = tuple(branch_to(end) for end in ends.get(node, ()) if end != END)
        plan.joins = tuple(key for key, end in joined.get(node, ()) if end != END)
        plan.ends = END in ends.get(node, ()) or any(end == END for _, end in joined.get(node, ()))
        plan.branches = tuple(
            BranchPlan(
                name,
                spec.call,
                _seen_by(asked.get((node, name)), guarded, own.get(node)),
                spec.ends,
                exact=(node, name) in asked,
            )
            for name, spec in graph.branches.get(node, {}).items()
        )
    return Plan(
        name=name,
        nodes=nodes,
        state=channels,
        internal=internal,
        managed={key: manager for schema in schemas for key, manager in schema.managed.items()},
        input_schema=given,
        output_schema=returned,
        state_schema=state,
        input_keys=frozenset(given.channels),
        output_keys=tuple(returned.channels),
        bare=state.kind == "bare",
        validators=_guards(channels, given, state),
        renamed={alias: key for schema in schemas for alias, key in schema.aliases.items() if alias not in channels},
        aliases=aliases,
    ).seal()


def _refuse_taken(channels: Mapping[str, Any], internal: Mapping[str, Any]) -> None:
    """Refuse state keys whose writes would be taken for the runtime's own. Raises GraphDefinitionError."""
    for key in channels:
        if key in RESERVED or key in (START, TASKS) or key in internal:
            msg = f"State key {key!r} is reserved: under this name the runtime keeps records of its own. Rename it."
            raise GraphDefinitionError(msg)


def _timeout(graph: StateGraph[Any, Any, Any, Any], spec: NodeSpec) -> TimeoutPolicy | None:
    if spec.timeout is not None or not graph.defaults.get("timeout"):
        return spec.timeout
    if not spec.call.is_async:
        msg = (
            f"Node {spec.name!r} is a sync function: it cannot be cancelled, so it cannot have the timeout that "
            "set_node_defaults gives to every node. Make it async, or give timeout to the async nodes one by one."
        )
        raise GraphDefinitionError(msg)
    default: TimeoutPolicy = graph.defaults["timeout"]
    return default


def _handler(graph: StateGraph[Any, Any, Any, Any], spec: NodeSpec, schema: Schema) -> NodePlan | None:
    function = spec.handler or graph.defaults.get("handler")
    if function is None:
        return None
    name = f"{HANDLER}{spec.name}"
    call = Call(function, name)
    return NodePlan(
        name,
        call,
        schema,
        retry=graph.defaults.get("retry", ()),
        timeout=graph.defaults.get("timeout") if call.is_async else None,
        subgraphs=programs_in(function),
    )


def _seen_by(asked: Schema | None, state: Schema, own: Schema | None) -> Schema:
    """Return what a router sees: its own annotation, else what its node sees."""
    seen = asked if asked is not None else own
    return state if seen is None or seen.type is state.type else seen


def _guards(channels: Mapping[str, Any], *schemas: Schema) -> dict[str, Any]:
    """Return what validates writes: for keys that keep the last value; a reducer's writes are not of its type."""
    return {
        key: validator
        for schema in schemas
        for key, validator in schema.validators.items()
        if type(channels[key]) is LastValue
    }
