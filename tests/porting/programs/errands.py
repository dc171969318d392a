"""Workflows that call each other, graphs and tasks; results that outlive failures; several calls at once."""

import asyncio
from typing import TypedDict
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, RetryPolicy, StreamWriter, interrupt

done: list[str] = []


@task
def fetch(shop: str) -> str:
    done.append(shop)
    return f"bread of {shop}"


@task(retry_policy=RetryPolicy(retry_on=ValueError, initial_interval=0.001, jitter=False))
def haggle(price: int) -> int:
    done.append(f"haggled {price}")
    if len([one for one in done if one == f"haggled {price}"]) < 3:
        raise ValueError("no deal")
    return price - 1


@task
def fragile() -> str:
    done.append("fragile")
    if done.count("fragile") < 2:
        raise KeyError("dropped")
    return "whole"


class Basket(TypedDict):
    weight: int


weigh = StateGraph(Basket).add_node("double", lambda basket: {"weight": basket["weight"] * 2})
weigh = weigh.add_edge(START, "double").compile()


@entrypoint()
def pack(given: dict) -> int:
    return given["a"] + given["b"]


@entrypoint(checkpointer=InMemorySaver(), store=InMemoryStore())
def errand(shops: list[str], *, config: RunnableConfig, writer: StreamWriter, store, previous) -> dict:
    found = [fetch(shop).result() for shop in shops]
    writer("asked all of them")
    store.put(("found",), config["configurable"]["thread_id"], {"how many": len(found)})
    get_stream_writer()({"paid": haggle(len(found)).result()})
    kept = fragile().result()
    answer = interrupt({"take": found})
    weight = weigh.invoke({"weight": len(found)}, config)["weight"]
    total = pack.invoke({"a": weight, "b": len(previous["found"]) if previous else 0})
    return {"found": found, "answer": answer, "total": total, "kept": kept}


here = {"configurable": {"thread_id": UUID(int=5)}}
try:
    for chunk in errand.stream(["mill", "oven"], here, stream_mode=["custom", "updates", "values"]):
        print(chunk)
except KeyError as error:
    print("failed", repr(error), errand.get_state(here).next, errand.get_state(here).values)
for given in (None, Command(resume="all")):
    for mode, chunk in errand.stream(given, here, stream_mode=["custom", "updates", "values"]):
        told = chunk.get("__interrupt__") if isinstance(chunk, dict) else None
        print(mode, [asked.value for asked in told] if told else chunk)
print(done)
print(errand.get_state(here).values, errand.get_state(here).next)
print(errand.get_state(here).config["configurable"]["thread_id"])
print([(saved.metadata["step"], saved.next, saved.values) for saved in errand.get_state_history(here)])
print(errand.invoke(["shed"], here)["__interrupt__"][0].value)
print(errand.invoke(Command(resume="one"), here))
print(errand.get_state({"configurable": {"thread_id": UUID(int=6)}}))

slow: list[int] = []


@task(cache_policy=CachePolicy(ttl=600))
def square(x: int) -> int:
    slow.append(x)
    return x * x


@entrypoint(cache=InMemoryCache())
def squares(given: dict) -> dict:
    return {"first": square(given["x"]).result()}


for x in (4, 4, 5):
    print(list(squares.stream({"x": x}, stream_mode="updates")), slow)


@task(name="shout")
async def louder(word: str) -> str:
    await asyncio.sleep(0)
    return word.upper()


@entrypoint(checkpointer=InMemorySaver())
async def choir(words: list[str], *, previous: int | None = None):
    sung = await asyncio.gather(*[louder(word) for word in words])
    first = louder(words[0])
    return entrypoint.final(value=[*sung, await first, previous], save=(previous or 0) + len(sung))


async def sing():
    config = {"configurable": {"thread_id": "hall"}}
    print(await choir.ainvoke(["do", "re"], config))
    async for chunk in choir.astream(["mi"], config):
        print(chunk)
    print((await choir.aget_state(config)).values)


asyncio.run(sing())
