"""A tool-calling loop by hand, a router with structured output, and multi-agent handoffs."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.types import Command, interrupt


@tool
def multiply(a: int, b: int) -> int:
    """Multiply a and b."""
    return a * b


@tool
def ask_human(question: str) -> str:
    """Ask a person."""
    return interrupt({"question": question})


tools = {t.name: t for t in (multiply, ask_human)}


def llm_call(state: MessagesState):
    last = state["messages"][-1]
    if isinstance(last, HumanMessage):
        calls = [{"name": "multiply", "args": {"a": 3, "b": 4}, "id": "c1"}]
        if "human" in last.content:
            calls.append({"name": "ask_human", "args": {"question": "really?"}, "id": "c2"})
        return {"messages": [AIMessage("", tool_calls=calls, id="ai1")]}
    return {"messages": [AIMessage(f"It is {last.content}", id="ai2")]}


def tool_node(state: MessagesState):
    result = []
    for call in state["messages"][-1].tool_calls:
        observation = tools[call["name"]].invoke(call["args"])
        result.append(ToolMessage(content=str(observation), tool_call_id=call["id"], id=f"t{call['id']}"))
    return {"messages": result}


def should_continue(state: MessagesState) -> Literal["tool_node", "__end__"]:
    return "tool_node" if state["messages"][-1].tool_calls else END


agent = StateGraph(MessagesState).add_node(llm_call).add_node(tool_node)
agent.add_edge(START, "llm_call").add_conditional_edges("llm_call", should_continue).add_edge("tool_node", "llm_call")
agent = agent.compile(checkpointer=InMemorySaver())
print([(m.type, m.content) for m in agent.invoke({"messages": "3 x 4?"}, {"configurable": {"thread_id": "1"}})["messages"]])
config = {"configurable": {"thread_id": "2"}}
result = agent.invoke({"messages": [HumanMessage("ask a human", id="h")]}, config)
print([i.value for i in result["__interrupt__"]], agent.get_state(config).next)
print([(m.type, m.content) for m in agent.invoke(Command(resume="yes"), config)["messages"]])
print(sorted(agent.get_graph().nodes), len(agent.get_graph().edges))


@dataclass
class Team:
    task: str
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
    visits: Annotated[list[str], operator.add] = field(default_factory=list)


def supervisor(state: Team) -> Command[Literal["researcher", "coder", "__end__"]]:
    order = ["researcher", "coder", END]
    return Command(goto=order[len([v for v in state.visits if v != "supervisor"])], update={"visits": ["supervisor"]})


def member(name):
    def work(state: Team) -> Command[Literal["supervisor"]]:
        said = HumanMessage(content=f"{name} did {state.task}", name=name, id=name)
        return Command(update={"messages": [said], "visits": [name]}, goto="supervisor")

    return work


team = StateGraph(Team).add_node(supervisor).add_node("researcher", member("researcher")).add_node("coder", member("coder"))
team = team.add_edge(START, "supervisor").compile()
found = team.invoke(Team(task="it"))
print(found["visits"], [(m.name, m.content) for m in found["messages"]])
print([list(chunk) for chunk in team.stream({"task": "it"})])
