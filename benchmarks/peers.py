"""Who takes part: this engine and, where it is installed, LangGraph, each with the settings its makers recommend.

A side is the handful of names a graph program needs, so that one program serves both. ``settings`` is printed in every
report: a number without them means nothing.
"""

from __future__ import annotations

import importlib
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

LANGGRAPH = "LangGraph"
OURS = "actorgraph"
POOL = 10
"""Connections of LangGraph's pool to PostgreSQL; this project's saver has as many by default."""
PATIENCE = 300.0
"""Seconds after which a single sample counts as hung."""

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """One engine on one event loop."""

    label: str
    backend: str
    state_graph: Any
    start: str
    end: str
    send: Any
    memory: Callable[[], Any]
    sqlite: Callable[[str], AbstractAsyncContextManager[Any]]
    add_messages: Any
    settings: tuple[str, ...]
    postgres: Callable[[str], AbstractAsyncContextManager[Any]] | None = None
    """Opens a saver on PostgreSQL; None where what it needs is not installed."""
    valkey: Callable[[str, str], AbstractAsyncContextManager[Any]] | None = None
    """Opens a saver on Redis or Valkey, with a prefix for its keys; None where there is none that runs there."""
    delta: Any = None
    """Marks a list as append-only where that must be said; None where a plain ``operator.add`` is enough."""

    def run(self, work: Callable[..., Awaitable[T]], *args: object) -> T:
        """Run an async function to its end in a fresh event loop. Raises TimeoutError if it hangs."""

        async def patiently() -> T:
            with anyio.fail_after(PATIENCE):
                return await work(*args)

        return anyio.run(patiently, backend=self.backend)


def langgraph() -> Side | None:
    """Return LangGraph's side, or None where it or its SQLite saver is not installed."""
    if find_spec("langgraph") is None or find_spec("langgraph.checkpoint.sqlite") is None:
        return None
    os.environ["LANGSMITH_TRACING"] = "false"
    graph = importlib.import_module("langgraph.graph")
    saver = importlib.import_module("langgraph.checkpoint.sqlite.aio").AsyncSqliteSaver
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("langgraph", "langgraph-checkpoint-sqlite"))
    return Side(
        label=LANGGRAPH,
        backend="asyncio",
        state_graph=graph.StateGraph,
        start=graph.START,
        end=graph.END,
        send=importlib.import_module("langgraph.types").Send,
        memory=importlib.import_module("langgraph.checkpoint.memory").InMemorySaver,
        sqlite=saver.from_conn_string,
        add_messages=importlib.import_module("langgraph.graph.message").add_messages,
        postgres=pooled if find_spec("langgraph.checkpoint.postgres") and find_spec("psycopg_pool") else None,
        delta=importlib.import_module("langgraph.channels").DeltaChannel,
        settings=(
            f"{versions}, asyncio",
            "async API throughout (ainvoke), tracing off, no callbacks",
            "AsyncSqliteSaver.from_conn_string, one saver for all runs, as its own pragmas leave it",
            f"AsyncPostgresSaver on an AsyncConnectionPool of {POOL}, as its guide sets it up",
            "durability passed per run; graphs compiled once per sample, outside the timing",
        ),
    )


@asynccontextmanager
async def pooled(url: str) -> AsyncIterator[Any]:
    """Open LangGraph's saver on a pool of connections that are set up as it asks."""
    pools: Any = importlib.import_module("psycopg_pool")
    saver: Any = importlib.import_module("langgraph.checkpoint.postgres.aio")
    rows: Any = importlib.import_module("psycopg.rows")
    # libpq takes the schema as an option of the session.
    address = url.replace("search_path=", "options=-csearch_path%3D").replace(":@", "@")
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": rows.dict_row}
    async with pools.AsyncConnectionPool(address, min_size=POOL, max_size=POOL, kwargs=settings) as pool:
        made = saver.AsyncPostgresSaver(pool)
        await made.setup()
        yield made


def actorgraph(backend: str = "asyncio") -> Side:
    """Return this project's side on an event loop."""
    graph = importlib.import_module("runtime.graph")
    saver = importlib.import_module("persistence.sqlite").SqliteSaver
    return Side(
        label=OURS if backend == "asyncio" else f"{OURS} on {backend}",
        backend=backend,
        state_graph=graph.StateGraph,
        start=graph.START,
        end=graph.END,
        send=importlib.import_module("runtime.types").Send,
        memory=importlib.import_module("persistence.memory").InMemorySaver,
        sqlite=saver.from_conn_string,
        add_messages=importlib.import_module("runtime.graph.message").add_messages,
        postgres=importlib.import_module("persistence.postgres").PostgresSaver if find_spec("asyncpg") else None,
        valkey=prefixed if find_spec("redis") else None,
        settings=(
            f"this tree, {backend}",
            "async API throughout (ainvoke), nobody streaming",
            "SqliteSaver(path), PostgresSaver(url), RedisSaver(url), one saver for all runs, default settings",
            "durability passed per run; graphs compiled once per sample, outside the timing",
        ),
    )


def prefixed(url: str, prefix: str) -> AbstractAsyncContextManager[Any]:
    """Return this project's saver on Redis or Valkey."""
    saver: Any = importlib.import_module("persistence.redis").RedisSaver
    return saver(url, prefix=prefix)  # type: ignore[no-any-return]


def sides(labels: Sequence[str] | None = None) -> list[Side]:
    """Return those who take part, LangGraph first because it is what the others are compared with.

    Raises ValueError if a label names nobody.
    """
    rival = langgraph()
    everyone = {side.label: side for side in [*([rival] if rival else []), actorgraph(), actorgraph("trio")]}
    unknown = [label for label in labels or () if label not in everyone]
    if unknown:
        message = f"no side is called {unknown[0]!r}; there are {', '.join(everyone)}"
        raise ValueError(message)
    return [side for label, side in everyone.items() if not labels or label in labels]
