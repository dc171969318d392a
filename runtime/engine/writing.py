"""What a node returned, as writes: state keys, routes, Sends."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runtime.channels import MISSING
from runtime.errors import ErrorCode, InvalidUpdateError, ParentCommand, UnknownNodeError, create_error_message
from runtime.schema.coerce import view
from runtime.schema.instances import input_of, updates_of
from runtime.types.command import Command, Send
from runtime.types.constants import END, ROOT, START, TASKS, branch_to
from runtime.types.naming import known_nodes
from runtime.types.strangers import stranger
from runtime.types.telling import add_note

if TYPE_CHECKING:
    from runtime.engine.cells import Cells
    from runtime.engine.plan import BranchPlan, NodePlan, Plan
    from runtime.schema.introspect import Schema

Write = tuple[str, Any]


def result_writes(plan: Plan, node: NodePlan, result: Any, received: Any = MISSING) -> list[Write]:
    """Return the writes that a node's return value stands for, its plain edges included; routers come after.

    Raises InvalidUpdateError naming the node; ParentCommand when the result addresses the parent graph.
    """
    if node.mapper is not None:
        return [*node.mapper(result), *node.edge_writes]
    if type(result) is dict and not (plan.bare or plan.validators or plan.renamed):
        state = plan.state
        writes = [(key, view(value)) for key, value in result.items() if key in state]
    elif result is None:
        writes = []
    else:
        writes = _mapped(plan, node.name, result, received)
    writes.extend(node.edge_writes)
    return writes


def _mapped(plan: Plan, node: str, result: Any, received: Any) -> list[Write]:
    if isinstance(result, (Command, Send)):
        return _directed(plan, node, result)
    if isinstance(result, (list, tuple)) and result and any(isinstance(item, (Command, Send)) for item in result):
        writes: list[Write] = []
        for item in result:
            writes.extend(
                _directed(plan, node, item) if isinstance(item, (Command, Send)) else update_writes(plan, node, item)
            )
        return writes
    return update_writes(plan, node, result, received)


def _directed(plan: Plan, node: str, result: Command[Any] | Send) -> list[Write]:
    """Return the writes of a result that says where to go on."""
    if isinstance(result, Send):
        return route_writes(plan, [result], f"What node {node!r} returned")
    return command_writes(plan, node, result)


def command_writes(plan: Plan, node: str, command: Command[Any]) -> list[Write]:
    """Return what a Command stands for."""
    if command.graph == Command.PARENT:
        raise ParentCommand(command)
    writes = update_writes(plan, node, command.update)
    goto = command.goto
    targets = goto if isinstance(goto, Iterable) and not isinstance(goto, str) else [goto]
    writes.extend(route_writes(plan, targets, f"Command.goto of node {node!r}"))
    return writes


def without_parent(plan: Plan, node: str) -> InvalidUpdateError:
    """Return the error for a Command to the parent of a graph that no other graph runs."""
    return InvalidUpdateError(
        f"Node {node!r} returned a Command to the parent graph (Command.PARENT), but graph {plan.name!r} was called by "
        "itself: it has no parent. Leave graph= out, or run the graph as a node of another one."
    )


def update_writes(plan: Plan, node: str, update: Any, received: Any = MISSING) -> list[Write]:
    """Return the state writes that an update stands for; keys that the graph does not have are dropped.

    ``received`` is what the node was given: an instance that it changed in place and returned writes all its fields.
    """
    if update is None:
        return []
    if plan.bare:
        return [(ROOT, _validated(plan, node, ROOT, view(update)))]
    if isinstance(update, Mapping):
        pairs: Iterable[Write] = _by_key(plan, update)
    else:
        _refuse_strangers(update if isinstance(update, (list, tuple)) else [update], f"Node {node!r} returned")
        known = updates_of(update, received)
        if known is None and isinstance(update, (list, tuple)) and all(_is_pair(item) for item in update):
            known = list(update)
        if known is None:
            raise InvalidUpdateError(
                create_error_message(
                    message=f"Expected dict, got {update!r}. Node {node!r} must return a dict of state keys, "
                    "an instance of the state's class, a Command or None.",
                    error_code=ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE,
                )
            )
        pairs = known
    return [(key, _validated(plan, node, key, view(value))) for key, value in pairs if key in plan.state]


def _refuse_strangers(values: Iterable[Any], where: str) -> None:
    """Raise InvalidUpdateError for a Command or Send that was imported from LangGraph: it would be lost in silence."""
    for value in values:
        if (found := stranger(value)) is not None:
            msg = f"{where} {found}."
            raise InvalidUpdateError(msg)


def _by_key(plan: Plan, values: Mapping[str, Any]) -> Iterable[Write]:
    """Return the items, those under another name of a state key under the key; what the key itself says wins."""
    if plan.renamed.keys().isdisjoint(values):
        return values.items()
    named = {key: value for name, value in values.items() if (key := plan.renamed.get(name, name)) != name}
    return {**named, **{name: value for name, value in values.items() if name not in plan.renamed}}.items()


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)  # noqa: PLR2004 - (key, value)


def _validated(plan: Plan, node: str, key: str, value: Any) -> Any:
    validator = plan.validators.get(key)
    if validator is None:
        return value
    try:
        return validator(value)
    except Exception as error:
        source = "The input has" if node == START else f"Node {node!r} wrote"
        add_note(error, f"{source} a value that state key {key!r} does not allow; nothing was stored.")
        raise


def route_writes(plan: Plan, targets: Iterable[Any], source: str) -> list[Write]:
    """Return the trigger and Send writes for a list of targets. Raises UnknownNodeError, InvalidUpdateError."""
    writes: list[Write] = []
    for target in targets:
        if isinstance(target, Send):
            if target.node == END:
                msg = f"{source}: cannot Send to END."
                raise InvalidUpdateError(msg)
            require_node(plan, target.node, source)
            writes.append((TASKS, target))
        elif target == END:
            continue
        else:
            if not isinstance(target, str):
                _refuse_strangers([target], f"{source}:")
                msg = f"{source}: expected a node name or Send, got {target!r}."
                raise InvalidUpdateError(msg)
            require_node(plan, target, source, besides=END)
            writes.append((branch_to(target), None))
    return writes


def require_node(plan: Plan, name: str, source: str, *, besides: str | None = None) -> None:
    """Raise UnknownNodeError unless the graph has the node. ``besides``: a constant that may be given as well."""
    if name not in plan.nodes or name == START:
        msg = f"{source}: there is no node {name!r}. {known_nodes(name, plan.known(), besides=besides)}"
        raise UnknownNodeError(msg)


def branch_writes(plan: Plan, node: str, branch: BranchPlan, answer: Any) -> list[Write]:
    """Return the writes for what a router answered."""
    answers = answer if isinstance(answer, (list, tuple)) else [answer]
    source = f"Conditional edge {branch.name!r} of {'START' if node == START else f'node {node!r}'}"
    targets: list[Any] = []
    for item in answers:
        if isinstance(item, Send) or branch.ends is None:
            target = item
        else:
            try:
                target = branch.ends[item]
            except (KeyError, TypeError):
                _refuse_strangers([item], f"{source} returned")
                msg = f"{source} returned {item!r}, which its path_map does not have: {sorted(map(str, branch.ends))}."
                raise UnknownNodeError(msg) from None
        if target is None or target == START:
            msg = f"{source}: Branch did not return a valid destination, got {target!r}."
            raise UnknownNodeError(msg)
        targets.append(target)
    return route_writes(plan, targets, source)


def fresh_values(cells: Cells, schema: Schema, writes: Sequence[Write], read: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what a router sees: the channels with this task's own writes folded in, on copies."""
    values: dict[str, Any] = {}
    mine: dict[str, list[Any]] = {}
    for key, value in writes:
        mine.setdefault(key, []).append(value)
    for key in schema.channels:
        channel = cells.channels.get(key)
        if channel is None:
            continue
        if key in mine:
            channel = channel.copy()
            channel.update(mine[key])
        value = channel.peek()
        if value is not MISSING:
            values[key] = read(value)
    return values


def input_writes(plan: Plan, given: Any, written: Container[str]) -> list[Write]:
    """Return the state writes of a graph's input: the keys of the input schema, others dropped.

    ``written`` are the channels that were ever written, which an instance's defaults leave alone.
    Raises InvalidUpdateError for a shape that the graph cannot take.
    """
    if plan.input_schema.kind == "bare":
        return [(ROOT, view(given))]
    if isinstance(given, Mapping):
        known: list[Write] | None = list(_by_key(plan, given))
    else:
        _refuse_strangers([given], f"The input of graph {plan.name!r} is")
        known = input_of(given, written)
    if known is None:
        msg = f"Expected dict, got {given!r} as the input of graph {plan.name!r} with keys {sorted(plan.input_keys)}."
        raise InvalidUpdateError(msg)
    return [(key, _validated(plan, START, key, view(value))) for key, value in known if key in plan.input_keys]
