"""A chat that remembers, with trimming and a summary."""

import operator
from typing import Annotated

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, trim_messages
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES


class State(MessagesState):
    summary: str
    turns: Annotated[int, operator.add]


model = GenericFakeChatModel(messages=iter(AIMessage(f"answer {n}", id=f"ai{n}") for n in range(100)))


def call_model(state: State):
    messages = state["messages"]
    if state.get("summary"):
        messages = [SystemMessage(f"Summary: {state['summary']}"), *messages]
    trimmed = trim_messages(messages, max_tokens=4, token_counter=len, strategy="last", allow_partial=False)
    return {"messages": [model.invoke(trimmed)], "turns": 1}


def summarize(state: State):
    kept = state["messages"][-2:]
    gone = [RemoveMessage(id=message.id) for message in state["messages"][:-2]]
    return {"summary": f"{len(state['messages'])} messages, the last two: {[m.content for m in kept]}", "messages": gone}


def should_summarize(state: State):
    return "summarize" if len(state["messages"]) > 4 else END


workflow = StateGraph(State)
workflow.add_node("model", call_model)
workflow.add_node(summarize)
workflow.add_edge(START, "model")
workflow.add_conditional_edges("model", should_summarize)
workflow.add_edge("summarize", END)
app = workflow.compile(checkpointer=MemorySaver())

config = {"configurable": {"thread_id": "1"}}
for n, text in enumerate(["hi", "I am Bob", "who am I?", "and now?"]):
    result = app.invoke({"messages": [HumanMessage(text, id=f"h{n}")]}, config)
    print([(m.type, m.content, m.id) for m in result["messages"]], result.get("summary"), result["turns"])
other = app.invoke({"messages": [("user", "hello")]}, {"configurable": {"thread_id": "2"}})
print([(m.type, m.content) for m in other["messages"]])
snapshot = app.get_state(config)
print(snapshot.next, snapshot.metadata["step"], snapshot.values["turns"])
for event in app.stream({"messages": [{"role": "user", "content": "dict", "id": "d"}]}, config, stream_mode="values"):
    print(event["messages"][-1].content, len(event["messages"]))
for chunk, metadata in app.stream({"messages": [HumanMessage("tokens", id="t")]}, config, stream_mode="messages"):
    print(type(chunk).__name__, chunk.content, metadata["langgraph_node"], metadata["langgraph_step"])
app.update_state(config, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
print(app.get_state(config).values["messages"])
