"""Subgraphs that share keys, that do not, that ask, and that keep what they know."""

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class SubgraphState(TypedDict):
    foo: str
    bar: str


def subgraph_node_1(state: SubgraphState):
    return {"bar": "bar"}


def subgraph_node_2(state: SubgraphState):
    answer = interrupt("Provide value:")
    return {"foo": state["foo"] + state["bar"] + answer}


subgraph_builder = StateGraph(SubgraphState)
subgraph_builder.add_node(subgraph_node_1)
subgraph_builder.add_node(subgraph_node_2)
subgraph_builder.add_edge(START, "subgraph_node_1")
subgraph_builder.add_edge("subgraph_node_1", "subgraph_node_2")
subgraph = subgraph_builder.compile()


class ParentState(TypedDict):
    foo: str


def node_1(state: ParentState):
    return {"foo": "hi! " + state["foo"]}


builder = StateGraph(ParentState)
builder.add_node("node_1", node_1)
builder.add_node("node_2", subgraph)
builder.add_edge(START, "node_1")
builder.add_edge("node_1", "node_2")
graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
for namespace, chunk in graph.stream({"foo": "foo"}, config, stream_mode="updates", subgraphs=True):
    print([part.split(":")[0] for part in namespace], {k: v if k != "__interrupt__" else v[0].value for k, v in chunk.items()})
parent_state = graph.get_state(config)
subgraph_state = graph.get_state(config, subgraphs=True).tasks[0].state
print(parent_state.next, parent_state.values, subgraph_state.values, subgraph_state.next, subgraph_state.tasks[0].interrupts[0].value)
graph.update_state(subgraph_state.config, {"bar": "edited"})
print(graph.get_state(config, subgraphs=True).tasks[0].state.values)
print(graph.invoke(Command(resume=" resumed"), config))


def call_subgraph(state: ParentState):
    response = plain.invoke({"bar": state["foo"]})
    return {"foo": response["bar"]}


class Private(TypedDict):
    bar: str


plain = StateGraph(Private).add_node("shout", lambda s: {"bar": s["bar"].upper() + "!"}).add_edge(START, "shout").compile()
outer = StateGraph(ParentState).add_node(call_subgraph).add_edge(START, "call_subgraph").compile()
print(outer.invoke({"foo": "quiet"}))
for namespace, chunk in outer.stream({"foo": "quiet"}, subgraphs=True):
    print([part.split(":")[0] for part in namespace], chunk)


class Counter(TypedDict):
    count: int


kept = StateGraph(Counter).add_node("add", lambda s: {"count": s.get("count", 0) + 1}).add_edge(START, "add")
stateful = kept.compile(checkpointer=True)
top = StateGraph(Counter).add_node("sub", lambda s: {"count": stateful.invoke({})["count"]}).add_edge(START, "sub")
top = top.compile(checkpointer=InMemorySaver())
print([top.invoke({"count": 0}, config) for _ in range(3)])


def to_parent(state: SubgraphState):
    return Command(update={"foo": "from child"}, goto="after", graph=Command.PARENT)


child = StateGraph(SubgraphState).add_node(to_parent).add_edge(START, "to_parent").compile()
handoff = StateGraph(ParentState).add_node("child", child).add_node("after", lambda s: {"foo": s["foo"] + ", then after"})
print(handoff.add_edge(START, "child").compile().invoke({"foo": ""}))
