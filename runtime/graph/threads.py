"""Reading and editing the threads of a graph, and forgetting what its cache keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runtime.engine.writing import require_node
from runtime.errors import ConfigError
from runtime.graph import state_api
from runtime.graph.blocking import BlockingDoor, iterating, waiting
from runtime.types.config import CallConfig, parse_config

if TYPE_CHECKING:
    from runtime.run.program import Program
    from runtime.types.config import RunnableConfig
    from runtime.types.snapshot import StateSnapshot, StateUpdate


class ThreadDoors(BlockingDoor):
    """The methods of a compiled graph that read and edit its threads."""

    async def aget_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state of a thread now, or at ``checkpoint_id``. An empty thread gives an empty snapshot.

        Args:
            config: the thread; a ``checkpoint_id`` addresses an older checkpoint, a ``checkpoint_ns`` a subgraph (the
                ``state`` of a task that runs one is such a config).
            subgraphs: let ``state`` of each task that runs a subgraph be the subgraph's snapshot, at all depths, in
                place of its config. Subgraphs that a function calls are found too, unless compiled with
                ``checkpointer=False``.

        Raises:
            ValueError: the graph has no checkpointer.
            ConfigError: the config names no thread, or has a setting in a wrong place.
            CheckpointNotFoundError: the addressed checkpoint does not exist.
            PersistenceError: it cannot be read; of its values, some may have types that are not registered.

        """
        return await state_api.get_state(self.program, self._addressed(config), subgraphs=subgraphs)

    def aget_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's public name
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Yield the thread's checkpoints, newest first.

        Args:
            config: the thread; with a ``checkpoint_id``, only that checkpoint.
            filter: metadata keys that must be equal.
            before: only checkpoints older than its ``checkpoint_id``.
            limit: at most this many; 0 yields none.

        Raises:
            ValueError: the graph has no checkpointer, or a limit below zero.
            ConfigError: the config names no thread, or has a setting in a wrong place.
            PersistenceError: a checkpoint cannot be read.

        """
        return state_api.get_history(self.program, self._addressed(config), filter, before, limit)

    async def aupdate_state(
        self,
        config: Mapping[str, Any],
        values: Any,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> RunnableConfig:
        """Write to a thread's state as if ``as_node`` had returned ``values``; return the new checkpoint's config.

        The node does not run; its edges and routers decide what runs next. Nothing already stored changes: the update
        is a new checkpoint, and at an older ``checkpoint_id`` a new branch.

        Args:
            config: the thread, and if need be a ``checkpoint_id``; with a ``checkpoint_ns`` (``aget_state(...,
                subgraphs=True).tasks[0].state.config``) the update goes to that subgraph, as if a node of it had
                returned. Questions that the subgraph had put are taken back.
            values: what the node would return.
            as_node: its name. Without it, the node that ran last; on a thread where none ran, START. ``END`` with None
                ends the thread, ``"__input__"`` gives new input, ``"__copy__"`` makes a sibling of the checkpoint.
            task_id: id under which the update is recorded, where it stands for a task that is known already.

        Raises:
            ValueError: the graph has no checkpointer, or no subgraph at ``checkpoint_ns``.
            InvalidUpdateError: it cannot be told which node is meant, or the values do not fit.
            CheckpointNotFoundError: the addressed checkpoint does not exist.

        """
        update = state_api.StateUpdate(values, as_node, task_id)
        return await state_api.update_state(self.program, self._addressed(config), [[update]])

    async def abulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Apply updates superstep by superstep, each a checkpoint; return the last one's config.

        Raises:
            ValueError: there is no superstep, one without an update, no such subgraph, or no checkpointer.
            InvalidUpdateError: it cannot be told which node is meant, or the values do not fit.
            CheckpointNotFoundError: the addressed checkpoint does not exist.
            ThreadConflictError: another process moved the thread on meanwhile.
            PersistenceError: it cannot be read or stored.

        """
        return await state_api.update_state(self.program, self._addressed(config), supersteps)

    get_state = waiting(aget_state)
    get_state_history = iterating("Yield the thread's checkpoints, newest first.")(aget_state_history)
    update_state = waiting(aupdate_state)
    bulk_update_state = waiting(abulk_update_state)

    # ---- cached results ----------------------------------------------------------------------------------------

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget what the cache keeps of these nodes' results, or of all nodes of this graph.

        Raises:
            ValueError: the graph has no cache, or no such node.

        """
        caching = self.program.caching
        if caching is None:
            msg = "No cache is set for this graph, so there is nothing to clear: compile it with cache=."
            raise ValueError(msg)
        for name in nodes or ():
            require_node(self.program.plan, name, "aclear_cache")
        await caching.clear(nodes)

    clear_cache = waiting(aclear_cache)

    def _addressed(self, config: Mapping[str, Any]) -> CallConfig:
        if not has_saver(self.program):
            msg = "No checkpointer set: compile the graph with a checkpointer to read or edit threads."
            raise ValueError(msg)
        parsed = parse_config(self.program.defaults, config)
        require_thread(parsed)
        return parsed


def has_saver(program: Program) -> bool:
    """Tell whether the graph has a saver of its own (True and False only say how a subgraph uses its parent's)."""
    return program.saver is not None and not isinstance(program.saver, bool)


def require_thread(config: CallConfig) -> None:
    """Raise ConfigError unless the config names a thread."""
    if config.thread_id is None:
        msg = (
            "The graph has a checkpointer, so the call must name a thread: "
            "config={'configurable': {'thread_id': '...'}}."
        )
        raise ConfigError(msg)
