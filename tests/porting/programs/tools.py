"""LangGraph's own tool node and messages in odd forms."""

from typing import Annotated, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage, convert_to_messages
from langgraph.graph import START, MessagesState, StateGraph, add_messages


class Ids(TypedDict):
    messages: Annotated[list, add_messages]


left = [HumanMessage("a", id="1"), AIMessage("b", id="2")]
print(add_messages(left, AIMessage("c", id="2")))
print(add_messages(left, [RemoveMessage(id="1")]))
print([m.content for m in add_messages(left, [("user", "t"), {"role": "ai", "content": "d"}])])
print([m.type for m in convert_to_messages(["text", ("system", "s")])])
print(all(m.id for m in add_messages([], ["x", "y"])))
print(add_messages([HumanMessage([{"type": "text", "text": "x"}], id="1")], [], format="langchain-openai")[0].content)
try:
    add_messages(left, [RemoveMessage(id="zz")])
except ValueError as error:
    print("ValueError", "zz" in str(error))


def update(state: Ids):
    return {"messages": [AIMessage("new", id="2"), ("user", "more")]}


graph = StateGraph(Ids).add_node(update).add_edge(START, "update").compile()
print([(m.type, m.content) for m in graph.invoke({"messages": left})["messages"]])
print([(m.type, m.content) for m in graph.invoke({"messages": "hello"})["messages"]])
several = StateGraph(MessagesState).add_node("a", lambda s: {"messages": "from a"}).add_node("b", lambda s: {"messages": {"role": "assistant", "content": "from b"}})
several = several.add_edge(START, "a").add_edge(START, "b").compile()
print([(m.type, m.content) for m in several.invoke({"messages": []})["messages"]])
partial = add_messages(format="langchain-openai")
print(callable(partial), [m.content for m in partial([HumanMessage("x", id="1")], AIMessage("y", id="2"))])
print([m.content for m in several.invoke({"messages": [ToolMessage("t", tool_call_id="c", id="t")]})["messages"]])
