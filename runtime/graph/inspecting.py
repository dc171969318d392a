"""Looking at a compiled graph: its nodes, its subgraphs, and what it takes and returns as JSON schemas."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import typing_extensions as te

from runtime.graph.alone import LoneNode
from runtime.schema.hints import class_of, fields_of, kind_of
from runtime.types.constants import NS_SEP

if TYPE_CHECKING:
    from runtime.graph.compiled import CompiledStateGraph
    from runtime.run.program import Program

Subgraph = tuple[str, "CompiledStateGraph[Any, Any, Any, Any]"]


class Inspectable:
    """The methods of a compiled graph that tell what is in it."""

    program: Program

    @property
    def nodes(self) -> Mapping[str, LoneNode]:
        """The nodes by name, START first; each can be called by itself: ``graph.nodes["name"].invoke(state)``."""
        graph: Any = self
        return {name: LoneNode(graph, node) for name, node in self.program.plan.nodes.items()}

    @property
    def channels(self) -> Mapping[str, Any]:
        """The empty channels of the state, by key."""
        return dict(self.program.plan.state)

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """Return the name given at compile time, or ``name``; with a suffix, that of a part of it."""
        found = name or self.program.plan.name
        if not suffix:
            return found
        return found + suffix.title() if found[0].isupper() else f"{found}_{suffix.lower()}"

    def get_subgraphs(self, *, namespace: str | None = None, recurse: bool = False) -> Iterator[Subgraph]:
        """Yield the subgraphs that nodes run, as far as their functions show them, by the names of their nodes.

        Args:
            namespace: only the one that this node runs; ``"outer|inner"`` for one inside another.
            recurse: also those inside of them, unless one is named.

        """
        first, _, inner = (namespace or "").partition(NS_SEP)
        for name, node in self.program.plan.nodes.items():
            if (first and name != first) or not node.subgraphs:
                continue
            found = node.subgraphs[0].graph
            if not inner:
                yield name, found
            if inner or (recurse and not first):
                for deeper, graph in found.get_subgraphs(namespace=inner or None, recurse=recurse):
                    yield f"{name}{NS_SEP}{deeper}", graph

    async def aget_subgraphs(self, *, namespace: str | None = None, recurse: bool = False) -> AsyncIterator[Subgraph]:
        """Yield what ``get_subgraphs`` does."""
        for found in self.get_subgraphs(namespace=namespace, recurse=recurse):
            yield found

    def get_input_jsonschema(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Return what the graph takes, as a JSON schema; ``config`` changes nothing."""
        return jsonschema(self.program.plan.input_schema.type)

    def get_output_jsonschema(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Return what the graph returns, as a JSON schema; ``config`` changes nothing."""
        return jsonschema(self.program.plan.output_schema.type)

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return what calls give as ``context``, as a JSON schema; None without a ``context_schema``."""
        schema = self.program.context_schema
        return None if schema is None else jsonschema(schema)


def jsonschema(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of a type: pydantic's where that is installed and knows the type, else msgspec's.

    Raises:
        TypeError: neither knows it.

    """
    try:
        import pydantic  # noqa: PLC0415 - optional
    except ImportError:
        return msgspec.json.schema(hint)
    for known in (hint, *([_extended(hint)] if kind_of(class_of(hint)) in ("typeddict", "annotated") else ())):
        try:
            return pydantic.TypeAdapter(known).json_schema()
        except (pydantic.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError):
            continue
    return msgspec.json.schema(hint)


def _extended(hint: Any) -> Any:
    """Return a TypedDict as one of ``typing_extensions``: before Python 3.12 pydantic takes no other.

    Of another class with annotations, one with its keys: that is what graphs take for it.
    """
    fields = {}
    for key, field in fields_of(hint).items():
        marked: Any = te.get_origin(field)
        plain = te.get_args(field)[0] if marked in (te.Required, te.NotRequired) else field
        fields[key] = plain if key in getattr(hint, "__required_keys__", (key,)) else te.NotRequired[plain]
    extended: Any = te.TypedDict(hint.__name__, fields)  # type: ignore[misc]
    extended.__doc__ = hint.__doc__
    return extended
