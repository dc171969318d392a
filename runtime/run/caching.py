"""Reusing what nodes wrote for equal inputs: nodes with a ``CachePolicy``, in a graph compiled with a cache.

A result is kept if it is clean: no error, handled or not, no question asked or answered, and writes that can be
applied. What is kept is everything that the task wrote (state, edges, routes); a hit counts as the task having
finished. What a node takes from elsewhere than its input (context, config, store, clock) is not part of the key. Calls
of ``@task`` functions are keyed by their arguments.

A cache saves work and owes nothing. If it cannot be read or written, or if an input or result has no stored form, the
log says so and the node runs as without it. Only misuse is an error: a ``key_func`` that raises, a cache that is not
open, or is open on another event loop.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from persistence.errors import PersistenceClosedError, SaverLoopError, SerializationError
from runtime.channels import MISSING
from runtime.engine.projecting import node_input
from runtime.engine.writing import fresh_values
from runtime.run.identity import node_identity
from runtime.schema.coerce import view
from runtime.types.constants import PREVIOUS, RETURN
from runtime.types.telling import add_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from persistence.contracts.cache import BaseCache, FullKey, Namespace
    from runtime.engine.cells import Cells
    from runtime.engine.plan import BranchPlan, NodePlan, Plan
    from runtime.engine.tasks import Task
    from runtime.types.policy import CachePolicy

LOG: Final = logging.getLogger("actorgraph")

MISUSE: Final = (PersistenceClosedError, SaverLoopError)

_CALLS: Final = "@task"
"""Stands for a node's name where the results of ``@task`` calls are kept."""

_PREVIOUS_SHOWN: Final = frozenset({"previous", "runtime"})
"""Parameters by which a node learns what the last call left."""


class Caching:
    """A compiled graph's use of its cache."""

    def __init__(self, cache: BaseCache, plan: Plan) -> None:
        self.cache = cache
        self._plan = plan
        self.active = any(node.cache is not None for node in plan.nodes.values())
        """Whether any node has a policy."""
        self._namespaces: dict[str, Namespace] = {}

    async def clear(self, nodes: Iterable[str] | None) -> None:
        """Forget the results of some nodes, or of all and of the calls they make; those of older code as well."""
        names = (*self._plan.known(), _CALLS) if nodes is None else tuple(nodes)
        places: list[Namespace] = [(self._plan.name, name) for name in names]
        known = [self._plan.nodes[name] for name in names if name in self._plan.nodes]
        # Also whole, for a cache of a program's own that compares namespaces for equality, as LangGraph's do.
        places += [self._namespace(node) for node in known if node.cache is not None]
        await self.cache.aclear(places)

    def key(self, cells: Cells, task: Task, policy: CachePolicy) -> FullKey | None:
        """Return the key of a task's result; None if it has none. Raises what ``key_func`` raises."""
        try:
            value = node_input(cells, task)
        except Exception:  # noqa: BLE001 - the node builds its input again, and fails with what is to be said
            return None
        if policy.key_func is not None:
            return self._namespace(task.node), _given_key(policy, task.name, value)
        key = self._key_of([value, *_unseen(cells, task)], task.name)
        return None if key is None else (self._namespace(task.node), key)

    def call_key(self, task: Task, policy: CachePolicy) -> FullKey | None:
        """Return the key of a call's result, likewise."""
        arguments, named = task.given
        namespace = (self._plan.name, _CALLS, task.name, node_identity(self._plan, task.node))
        if policy.key_func is not None:
            return namespace, _given_key(policy, task.name, *arguments, **named)
        key = self._key_of([arguments, sorted(named.items())], task.name)
        return None if key is None else (namespace, key)

    def _namespace(self, node: NodePlan) -> Namespace:
        """Return where a node's results are kept: what its code is now, and nothing else."""
        found = self._namespaces.get(node.name)
        if found is None:
            found = self._namespaces[node.name] = (self._plan.name, node.name, node_identity(self._plan, node))
        return found

    def _key_of(self, value: Any, node: str) -> str | None:
        try:
            return self.cache.key_of(value)
        except Exception as error:  # noqa: BLE001 - see the module
            LOG.warning(
                "Node %r of graph %r is run without its cache, because its input cannot be told from others: %s "
                "Give its CachePolicy a key_func.",
                node,
                self._plan.name,
                error,
            )
            return None

    async def find(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what the cache has of these keys; nothing if it fails."""
        try:
            return await self.cache.aget(keys)
        except MISUSE:
            raise
        except Exception as error:  # noqa: BLE001 - see the module
            LOG.warning(
                "The cache of graph %r cannot be read, so its nodes are run: %s: %s",
                self._plan.name,
                type(error).__name__,
                error,
            )
            return {}

    async def keep(self, results: dict[FullKey, Task]) -> None:
        """Store the writes of finished tasks."""
        pairs = {key: (task.writes, _ttl(task.node)) for key, task in results.items()}
        try:
            await self.cache.aset(pairs)
        except MISUSE:
            raise
        except SerializationError as error:
            if len(results) > 1:
                for key, task in results.items():
                    await self.keep({key: task})
                return
            self._not_kept(results, error)
        except Exception as error:  # noqa: BLE001 - see the module
            self._not_kept(results, error)

    def writes(self, found: Any) -> list[tuple[str, Any]] | None:
        """Return what the cache had as writes; None if it is nothing that a task of this graph writes."""
        if not isinstance(found, list) or not all(self._is_write(item) for item in found):
            return None
        # Copies, as of what a node returns: two tasks may have asked for the same key.
        return [(channel, view(value)) for channel, value in found]

    def _is_write(self, item: Any) -> bool:
        return (
            isinstance(item, tuple)
            and len(item) == 2  # noqa: PLR2004 - (channel, value)
            and isinstance(item[0], str)
            and (item[0] == RETURN or self._plan.template(item[0]) is not None)
        )

    def _not_kept(self, results: dict[FullKey, Task], error: Exception) -> None:
        LOG.warning(
            "Results of graph %r are not kept (%s): %s: %s",
            self._plan.name,
            ", ".join(sorted({repr(task.name) for task in results.values()})),
            type(error).__name__,
            error,
        )


def caching_for(cache: Any, plan: Plan) -> Caching | None:
    """Return a graph's use of the cache that it is compiled with. Raises TypeError for something that is none."""
    if cache is None:
        return None
    if isinstance(cache, type):
        msg = f"cache must be a BaseCache, got the class {cache.__name__}: make one."
        raise TypeError(msg)
    for method in ("aget", "aset", "aclear", "key_of"):
        if not callable(getattr(cache, method, None)):
            msg = (
                f"cache must be a BaseCache (see persistence.memory, persistence.sqlite), got {type(cache).__name__}, "
                f"which has no {method}()."
            )
            raise TypeError(msg)
    return Caching(cache, plan)


class Reuse:
    """One run's use of it: asks before a superstep, keeps after it."""

    __slots__ = ("_caching", "_cells", "_missed")

    def __init__(self, caching: Caching, cells: Cells) -> None:
        self._caching = caching
        self._cells = cells
        self._missed: dict[FullKey, Task] = {}

    async def recall(self, tasks: Sequence[Task]) -> tuple[list[Task], tuple[Task, Exception] | None]:
        """Give tasks the writes that the cache has of them; return those that now count as finished.

        Also returns the first task whose ``key_func`` failed, with its error.
        """
        self._missed = {}
        keys: dict[int, FullKey] = {}
        for position, task in enumerate(tasks):
            policy = task.node.cache
            if policy is None or asked(task):
                continue
            try:
                key = self._caching.key(self._cells, task, policy)
            except Exception as error:  # noqa: BLE001 - a key_func may raise anything
                return [], (task, error)
            if key is not None:
                keys[position] = key
        if not keys:
            return [], None
        found = await self._caching.find(list(dict.fromkeys(keys.values())))
        return self._settled(tasks, keys, found), None

    def _settled(self, tasks: Sequence[Task], keys: dict[int, FullKey], found: dict[FullKey, Any]) -> list[Task]:
        settled = []
        for position, key in keys.items():
            task = tasks[position]
            task.writes = self._caching.writes(found.get(key))
            if task.finished:
                settled.append(task)
            else:
                self._missed[key] = task
        return settled

    async def keep(self) -> None:
        """Store the clean results of the superstep's tasks that were asked for and not there."""
        missed, self._missed = self._missed, {}
        clean = {key: task for key, task in missed.items() if not asked(task) and self._folds(task)}
        if clean:
            await self._caching.keep(clean)

    def _folds(self, task: Task) -> bool:
        """Tell whether a task has writes that can be applied: a hit must not fail for ever where the node may not."""
        written: dict[str, list[Any]] = {}
        for key, value in task.writes or ():
            written.setdefault(key, []).append(value)
        try:
            for key in written.keys() & self._cells.channels.keys():
                self._cells.channels[key].copy().update(written[key])
        except Exception:  # noqa: BLE001 - reducers may raise anything; the run says so where it applies the writes
            return False
        return task.writes is not None


def asked(task: Task) -> bool:
    """Tell whether the outcome depends on more than a key: on answers, or on a failure that a handler was given."""
    return bool(task.answers or task.below or task.interrupts or task.caught)


def _given_key(policy: CachePolicy, node: str, *arguments: Any, **named: Any) -> str:
    assert policy.key_func is not None  # noqa: S101 - asked only where there is one
    try:
        key = policy.key_func(*arguments, **named)
    except Exception as error:
        add_note(error, f"While computing the cache key of node {node!r} (CachePolicy.key_func)")
        raise
    if isinstance(key, bytes):
        return key.hex()
    if not isinstance(key, str):
        msg = f"The key_func of node {node!r} must return str or bytes, got {type(key).__name__}: {key!r:.80}"
        raise TypeError(msg)
    return key


def _unseen(cells: Cells, task: Task) -> list[Any]:
    """Return what the writes depend on beside the input: what a workflow left at its last call, what routers see."""
    previous = [cells.peek(PREVIOUS)] if _PREVIOUS_SHOWN & set(task.node.call.wants) else []
    return [
        *(value for value in previous if value is not MISSING),
        *_seen_by_routers(cells, task),
    ]


def _seen_by_routers(cells: Cells, task: Task) -> list[Any]:
    """Return what the node's routers see of the state and the node does not."""
    return [
        [
            fresh_values(cells, branch.schema, (), view),
            {key: manager.get(task.moment) for key, manager in branch.schema.managed.items()},
        ]
        for branch in task.node.branches
        if not _sees_all(task, branch)
    ]


def _sees_all(task: Task, branch: BranchPlan) -> bool:
    if task.send is not None:
        return False
    own, asked = task.node.schema, branch.schema
    return asked.channels.keys() <= own.channels.keys() and asked.managed.keys() <= own.managed.keys()


def _ttl(node: NodePlan) -> float | None:
    return None if node.cache is None else node.cache.ttl
