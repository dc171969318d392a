"""A store that finds by meaning and by value, and agents' memories in it that outlive their threads."""

import asyncio
from typing import Annotated, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

WORDS = ("tea", "rain", "train", "music")


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0 + text.count(word) * 3 for word in WORDS] for text in texts]


async def aembed(texts: list[str]) -> list[list[float]]:
    return embed(texts)


def keys(items):
    return [(item.namespace, item.key, None if item.score is None else round(item.score, 3)) for item in items]


for index in (
    {"dims": 4, "embed": aembed, "fields": ["$"]},
    {"dims": 4, "embed": embed},
    {"dims": 4, "embed": embed, "fields": ["text", "tags[*]"]},
):
    store = InMemoryStore(index=index)
    ann, bo = ("people", "ann"), ("people", "bo")

    async def fill():
        await store.aput(ann, "1", {"text": "likes tea", "tags": ["rain", "music"], "age": 3})
        await store.aput(ann, "2", {"text": "takes the train", "tags": [], "age": 5})
        await store.aput(bo, "3", {"text": "plays music", "age": 7}, index=["text"])
        await store.aput(bo, "4", {"text": "hates tea tea", "age": 9}, index=False)
        print(keys(await store.asearch(("people",), query="tea")))
        print(keys(await store.asearch(("people",), query="music", filter={"age": {"$gt": 3}}, limit=2)))
        print(keys(await store.asearch(bo, query="rain", offset=1)))

    asyncio.run(fill())
print(keys(store.search(("people",))), keys(store.search(("people",), filter={"age": 5})))
for operator, value in (("$eq", 7), ("$ne", 7), ("$gt", 5), ("$gte", 5), ("$lt", 5), ("$lte", 5)):
    print(operator, [item.key for item in store.search(("people",), filter={"age": {operator: value}})])
print(store.list_namespaces(), store.list_namespaces(max_depth=1), store.list_namespaces(suffix=("bo",)))
print(store.list_namespaces(prefix=("*", "ann")), store.list_namespaces(limit=1, offset=1))
got = store.batch(
    [
        PutOp(("people", "cy"), "5", {"text": "new"}),
        GetOp(("people", "ann"), "2"),
        SearchOp(("people", "bo"), filter={"age": 9}, limit=1),
        ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("people",)),), max_depth=2),
        PutOp(("people", "bo"), "3", None),
    ]
)
print(got[0], got[1].value, [item.key for item in got[2]], got[3], got[4])
print(store.get(("people", "bo"), "3"), store.get(("people", "cy"), "5").value, store.get(("no",), "where"))
item = store.get(("people", "cy"), "5")
print(sorted(item.dict()), item.key, item.namespace, item.created_at <= item.updated_at)
for namespace, key, value in (((), "k", {}), (("a.b",), "k", {}), (("",), "k", {}), (("langgraph",), "k", {})):
    try:
        store.put(namespace, key, value)
    except ValueError as error:
        print(namespace, [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0])


class Who(TypedDict):
    user: str


def remember(state: MessagesState, runtime: Runtime[Who]):
    space = ("notes", runtime.context["user"])
    said = state["messages"][-1].content
    if said.startswith("remember"):
        runtime.store.put(space, str(len(runtime.store.search(space))), {"text": said.removeprefix("remember ")})
    return {}


def answer(state: MessagesState, *, store: BaseStore, config):
    assert store is get_store()
    space = ("notes", config["configurable"]["user"])
    found = store.search(space, query=state["messages"][-1].content, limit=1)
    return {"messages": AIMessage(found[0].value["text"] if found else "nothing", id=str(len(state["messages"])))}


builder = StateGraph(MessagesState, context_schema=Who).add_sequence([remember, answer]).add_edge(START, "remember")
graph = builder.compile(InMemorySaver(), store=InMemoryStore(index={"dims": 4, "embed": embed, "fields": ["text"]}))
for number, (user, said) in enumerate(
    [("ann", "remember tea at four"), ("ann", "remember the train at nine"), ("ann", "when is tea?"), ("bo", "and train?")]
):
    config = {"configurable": {"thread_id": str(number), "user": user}}
    told = graph.invoke({"messages": [("user", said)]}, config, context={"user": user})
    print([(message.type, message.content) for message in told["messages"]])


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


print([message.content for message in add_messages([("user", "a")], {"role": "assistant", "content": "b"})])
