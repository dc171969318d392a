"""One node of a compiled graph, called by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runtime.channels.values import LastValue
from runtime.engine.plan import NodePlan, Plan
from runtime.graph.blocking import BlockingDoor, waiting
from runtime.run.program import Program
from runtime.schema.coerce import view
from runtime.schema.introspect import introspect
from runtime.types.constants import END, START

if TYPE_CHECKING:
    from runtime.graph.compiled import CompiledStateGraph


class LoneNode(BlockingDoor):
    """A node of a graph, to be looked at, and to be called without the graph around it, as tests do.

    What it is given is what its function gets, and what it returns is what that returned: no state is folded, no edge
    is followed, nothing is retried, cached or saved. What the function asks for beside the state it gets, and what it
    calls is run.
    """

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any], node: NodePlan) -> None:
        self.name = node.name
        self.metadata: Mapping[str, Any] = node.metadata
        self.program = graph.program
        self._node = node
        self._kind = type(graph)
        self._builder = graph.builder

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
    ) -> Any:
        """Call the node's function and return what it returns; the graph's start returns its input.

        Args:
            input: what the function gets.
            config: as for a graph's ``ainvoke``; nothing is saved, whatever it names.
            context: what the function finds as ``runtime.context``.

        Raises:
            Exception: what the function raises, with notes.

        """
        if self._node.call is None:
            return input
        return await self._kind(self._builder, self._program()).ainvoke(input, config, context=context)

    invoke = waiting(ainvoke)

    def _program(self) -> Program:
        node, bare = self._node, introspect(object)
        mapper: Callable[[Any], list[tuple[str, Any]]] = lambda result: [(END, view(result))]  # noqa: E731 - typed
        alone = NodePlan(
            node.name,
            node.call,
            bare,
            triggers=(START,),
            timeout=node.timeout,
            metadata=node.metadata,
            subgraphs=node.subgraphs,
            source=START,
            mapper=mapper,
        )
        plan = Plan(
            name=self.program.plan.name,
            nodes={node.name: alone},
            state={END: LastValue(object, END)},
            internal={},
            managed={},
            input_schema=bare,
            output_schema=bare,
            input_keys=frozenset(),
            output_keys=(END,),
            bare=False,
            single=END,
        ).seal()
        return Program(
            plan=plan,
            store=self.program.store,
            context_schema=self.program.context_schema,
            defaults=self.program.defaults,
        )

    def __repr__(self) -> str:
        return f"<node {self.name!r}>"
