"""One file for threads, long-term memory and kept results: each is deleted by its own rules."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from persistence.sqlite import SqliteCache, SqliteSaver, SqliteStore
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime
from runtime.types import CachePolicy, Command
from tests.stories.graphs import Log, chain, history, thread
from tests.stories.nests import Runs, asked

pytestmark = pytest.mark.anyio


def rows(database: str) -> dict[str, dict[str, int]]:
    """Count, in each table that knows threads, the rows of each thread."""
    found: dict[str, dict[str, int]] = {}
    with closing(sqlite3.connect(database)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
            if "thread_id" in columns:
                found[table] = dict(
                    connection.execute(f"SELECT thread_id, count(*) FROM {table} GROUP BY thread_id").fetchall()
                )
    return found


async def test_deleting_a_thread_leaves_memories_results_and_other_threads(database: str) -> None:
    runs = Runs()

    async def remember(state: Log, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.execution_info is not None
        await runtime.store.aput(("notes",), str(runtime.execution_info.thread_id), {"log": state["log"]})
        return {"log": ["remembered"]}

    kept = chain("k").compile(checkpointer=True)
    asking = chain(runs.asker("n")).compile()
    builder = StateGraph(Log).add_node(*runs.step("cached"), cache_policy=CachePolicy(key_func=lambda _: "same"))
    builder.add_node("remember", remember).add_node("kept", kept).add_node("asking", asking)
    builder.add_edge(START, "cached").add_edge("cached", "remember").add_edge("remember", "kept")
    builder.add_edge("kept", "asking")

    async with SqliteSaver(database) as saver, SqliteStore(database) as store, SqliteCache(database) as cache:
        graph = builder.compile(saver, store=store, cache=cache)
        for name in ("gone", "stays"):
            assert asked(await graph.ainvoke({"log": ["in"]}, thread(name))) == ["n?"]
        assert runs["cached"] == 1
        before = await history(graph, thread("stays"))

        await saver.adelete_thread("gone")
        left = rows(database)
        assert left
        assert all(set(counted) <= {"stays"} for counted in left.values()), left
        assert await history(graph, thread("stays")) == before
        assert {item.key for item in await store.asearch(("notes",))} == {"gone", "stays"}
        assert asked(await graph.ainvoke({"log": ["again"]}, thread("gone"))) == ["n?"]
        assert runs["cached"] == 1

        await store.adelete(("notes",), "stays")
        await graph.aclear_cache()
        assert (await graph.ainvoke(Command(resume="yes"), thread("stays")))["log"][-1] == "n:yes"
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
