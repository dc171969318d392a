"""Long-term memory: namespaces, filters, search by meaning, and a node that uses them."""

import uuid
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore


def embed(texts: list[str]) -> list[list[float]]:
    words = ["pizza", "food", "python", "code", "cat"]
    return [[float(text.lower().count(word)) + 0.01 for word in words] for text in texts]


store = InMemoryStore(index={"dims": 5, "embed": embed, "fields": ["memory", "$"]})
namespace = ("1", "memories")
store.put(namespace, "a", {"memory": "I like pizza and food", "kind": "taste"})
store.put(namespace, "b", {"memory": "I write python code", "kind": "work"})
store.put(namespace, "c", {"memory": "my cat writes code", "kind": "pet"}, index=["kind"])
store.put(namespace, "d", {"memory": "hidden cat"}, index=False)
store.put(("2", "memories"), "e", {"memory": "pizza"})
for item in store.search(namespace, query="which food do I like?", limit=2):
    print(item.key, item.value, item.namespace, item.score is not None)
print([i.key for i in store.search(namespace, query="code")], [i.key for i in store.search(("1",), query="cat", limit=1)])
print([i.key for i in store.search(namespace, filter={"kind": "work"})], [i.key for i in store.search(())])
print(store.list_namespaces(), store.list_namespaces(prefix=("1",)), store.list_namespaces(suffix=("memories",), max_depth=1))
print(store.get(namespace, "a").dict().keys(), store.get(namespace, "zz"))
store.delete(namespace, "a")
print([i.key for i in store.search(namespace)])
results = store.batch([GetOp(namespace, "b"), PutOp(namespace, "f", {"memory": "new"}), SearchOp(namespace, limit=1)])
print(results[0].value, results[1], [i.key for i in results[2]])


@dataclass
class Context:
    user_id: str


def call_model(state: MessagesState, runtime: Runtime[Context]):
    namespace = (runtime.context.user_id, "memories")
    memories = runtime.store.search(namespace, query=str(state["messages"][-1].content))
    info = "\n".join(d.value["memory"] for d in memories)
    last = state["messages"][-1]
    if "remember" in last.content.lower():
        runtime.store.put(namespace, str(uuid.uuid4()), {"memory": "User name is Bob"})
    return {"messages": [{"role": "assistant", "content": f"I know: {info}"}]}


def by_parameter(state: MessagesState, config: RunnableConfig, *, store: BaseStore):
    found = len(store.search((config["configurable"]["user_id"], "memories")))
    return {"messages": [("ai", f"{found} memories, {store is get_store()}")]}


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node(call_model)
builder.add_node(by_parameter)
builder.add_edge(START, "call_model")
builder.add_edge("call_model", "by_parameter")
graph = builder.compile(checkpointer=InMemorySaver(), store=store)
for thread, text in (("1", "Hi! Remember: my name is Bob"), ("2", "what is my name?")):
    config = {"configurable": {"thread_id": thread, "user_id": "bob"}}
    result = graph.invoke({"messages": [{"role": "user", "content": text}]}, config, context=Context(user_id="bob"))
    print([m.content for m in result["messages"]])
