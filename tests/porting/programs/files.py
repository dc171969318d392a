"""Stores, savers and caches in files, opened as LangGraph's documentation opens them."""

import asyncio
import tempfile
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

folder = Path(tempfile.mkdtemp())


class State(TypedDict):
    n: int
    seen: int


def count(state: State, *, store: BaseStore):
    item = store.get(("counts",), "n")
    seen = item.value["seen"] + 1 if item else 1
    store.put(("counts",), "n", {"seen": seen})
    return {"seen": seen}


async def acount(state: State, *, store: BaseStore):
    item = await store.aget(("counts",), "n")
    seen = item.value["seen"] + 1 if item else 1
    await store.aput(("counts",), "n", {"seen": seen})
    return {"seen": seen}


config = {"configurable": {"thread_id": "1"}}
for _ in range(2):
    with SqliteStore.from_conn_string(str(folder / "store.db")) as store:
        with SqliteSaver.from_conn_string(str(folder / "saver.db")) as saver:
            store.setup()
            graph = StateGraph(State).add_node(count).add_edge(START, "count").compile(checkpointer=saver, store=store)
            print(graph.invoke({"n": 1}, config), len(list(graph.get_state_history(config))))


async def main():
    async with AsyncSqliteStore.from_conn_string(str(folder / "store.db")) as store:
        await store.setup()
        async with AsyncSqliteSaver.from_conn_string(str(folder / "saver.db")) as saver:
            builder = StateGraph(State).add_node(acount).add_edge(START, "acount")
            graph = builder.compile(checkpointer=saver, store=store)
            print(await graph.ainvoke({"n": 1}, config))
            print([t.metadata["step"] async for t in saver.alist(config, limit=2)])
            await saver.adelete_thread("1")
            print(await saver.aget_tuple(config))
        await store.aput(("a", "b"), "k", {"text": "x", "n": 1})
        await store.aput(("a", "c"), "k", {"text": "y", "n": 2})
        print([(i.namespace, i.value) for i in await store.asearch(("a",), filter={"n": {"$gt": 1}})])
        print(await store.alist_namespaces(prefix=("a",)))
        await store.adelete(("a", "b"), "k")
        print(await store.aget(("a", "b"), "k"), len(await store.asearch(("a",))))


asyncio.run(main())
