"""Long conversations: messages taken out, replaced, summed up and mended by hand before they go on."""

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage, trim_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, Overwrite, interrupt


def shown(messages):
    return [(message.type, message.content, message.id) for message in messages]


class Talk(MessagesState):
    summary: str


def reply(state: Talk):
    kept = trim_messages(state["messages"], max_tokens=3, token_counter=len, strategy="last", start_on="human")
    number = len(state["messages"])
    before = [SystemMessage(state["summary"])] if state.get("summary") else []
    return {"messages": [AIMessage(f"heard {len(before + kept)}", id=f"a{number}")]}


def sum_up(state: Talk):
    gone = [RemoveMessage(id=message.id) for message in state["messages"][:-2]]
    return {"summary": f"{state.get('summary', '')}+{len(gone)}", "messages": gone}


def long_enough(state: Talk):
    return "sum_up" if len(state["messages"]) > 4 else END


builder = StateGraph(Talk).add_node(reply).add_node(sum_up).add_edge(START, "reply").add_edge("sum_up", END)
graph = builder.add_conditional_edges("reply", long_enough, ["sum_up", END]).compile(InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
for number, said in enumerate(("hello", "how are you", "and now", "good bye")):
    told = graph.invoke({"messages": [HumanMessage(said, id=f"h{number}")]}, thread)
    print(told.get("summary"), shown(told["messages"]))

print("by hand")
held = graph.get_state(thread).values["messages"]
graph.update_state(thread, {"messages": [RemoveMessage(id=held[0].id)]})
print(shown(graph.get_state(thread).values["messages"]))
graph.update_state(thread, {"messages": [AIMessage("said otherwise", id=held[-1].id)]})
print(shown(graph.get_state(thread).values["messages"]))
graph.update_state(thread, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), ("user", "anew")]})
print([(message.type, message.content) for message in graph.get_state(thread).values["messages"]])
graph.update_state(thread, {"messages": Overwrite([HumanMessage("only this", id="o")])})
print(shown(graph.get_state(thread).values["messages"]))
try:
    graph.update_state(thread, {"messages": [RemoveMessage(id="unknown")]})
except ValueError as error:
    print("ValueError", "unknown" in str(error) or "doesn't exist" in str(error))


def call(state: MessagesState):
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": AIMessage(f"so: {state['messages'][-1].content}", id="end")}
    wish = [{"name": "look_up", "args": {"word": "rain"}, "id": "c1"}]
    return {"messages": AIMessage("", tool_calls=wish, id="wish")}


def review(state: MessagesState) -> Command:
    wish = state["messages"][-1]
    answer = interrupt({"allow": wish.tool_calls[0]})
    if answer["do"] == "go":
        return Command(goto="run")
    if answer["do"] == "change":
        mended = {**wish.tool_calls[0], "args": answer["args"]}
        return Command(goto="run", update={"messages": [AIMessage("", tool_calls=[mended], id=wish.id)]})
    refused = ToolMessage(answer["why"], tool_call_id=wish.tool_calls[0]["id"], name="look_up", id="no")
    return Command(goto="call", update={"messages": [refused]})


def run(state: MessagesState):
    wish = state["messages"][-1].tool_calls[0]
    return {"messages": ToolMessage(f"found {wish['args']['word']}", tool_call_id=wish["id"], id="found")}


def more(state: MessagesState):
    return "review" if state["messages"][-1].tool_calls else END


builder = StateGraph(MessagesState).add_node(call).add_node(review, destinations=("run", "call")).add_node(run)
builder.add_edge(START, "call").add_conditional_edges("call", more, ["review", END]).add_edge("run", "call")
agent = builder.compile(InMemorySaver())
for answer in ({"do": "go"}, {"do": "change", "args": {"word": "snow"}}, {"do": "refuse", "why": "not today"}):
    thread = {"configurable": {"thread_id": str(answer)}}
    asked = agent.invoke({"messages": [HumanMessage("weather?", id="q")]}, thread)["__interrupt__"][0].value
    print(asked, agent.get_state(thread).next)
    for chunk in agent.stream(Command(resume=answer), thread, stream_mode="updates"):
        print({name: shown(add_messages([], value["messages"])) if value else value for name, value in chunk.items()})
    print(shown(agent.get_state(thread).values["messages"]))
