"""Graphs in graphs in graphs: streams, questions, states, histories, going back inside."""

import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    item: str


ran = []


def step(name):
    def run(state):
        ran.append(name)
        return {"log": [name]}

    return run


def ask(state):
    ran.append("ask")
    return {"log": [f"answer {interrupt('deep?')}"]}


low = StateGraph(State, output_schema=State).add_node("first", step("first")).add_node("ask", ask)
low = low.add_edge(START, "first").add_edge("first", "ask").compile()
mid = StateGraph(State).add_node("before", step("before")).add_node("low", low).add_node("after", step("after"))
mid = mid.add_edge(START, "before").add_edge("before", "low").add_edge("low", "after").compile()
top = StateGraph(State).add_node("mid", mid).add_node("last", step("last")).add_edge(START, "mid").add_edge("mid", "last")
graph = top.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}


def names(ns):
    return "/".join(part.split(":")[0] for part in ns)


def shown(chunk):
    return {k: [i.value for i in v] if k == "__interrupt__" else v for k, v in chunk.items()}


for ns, chunk in graph.stream({"log": []}, config, subgraphs=True, stream_mode="updates"):
    print(names(ns), shown(chunk))
state = graph.get_state(config, subgraphs=True)
while state.tasks and state.tasks[0].state:
    print(state.next, state.values)
    state = state.tasks[0].state
print(state.next, state.values, [i.value for t in state.tasks for i in t.interrupts])
deepest = state.config
history = list(graph.get_state_history(deepest))
print([(s.next, s.metadata["step"]) for s in history])
print(graph.invoke(Command(resume="yes"), config), ran)
ran.clear()
print([(s.next, s.metadata["source"]) for s in graph.get_state_history(config)])
for ns, mode, chunk in graph.stream({"log": []}, {"configurable": {"thread_id": "2"}}, subgraphs=True, stream_mode=["values", "tasks"]):
    print(names(ns), mode, sorted(chunk) if mode == "tasks" else shown(chunk))


def fan(state):
    return [Send("low", {"log": [], "item": x}) for x in ("p", "q")]


class Out(TypedDict):
    log: Annotated[list[str], operator.add]


one = StateGraph(State, output_schema=Out).add_node("first", step("first")).add_node("ask", ask)
one = one.add_edge(START, "first").add_edge("first", "ask").compile()
wide = StateGraph(State).add_node("low", one).add_conditional_edges(START, fan, ["low"])
wide = wide.compile(checkpointer=InMemorySaver())
result = wide.invoke({"log": []}, config)
print([i.value for i in result["__interrupt__"]], len({i.id for i in result["__interrupt__"]}))
answers = {i.id: "yes" for i in result["__interrupt__"]}
print(wide.invoke(Command(resume=answers), config))
print([(name, type(g).__name__) for name, g in graph.get_subgraphs(recurse=True)])
print(len(graph.get_graph(xray=True).nodes), len(graph.get_graph(xray=1).nodes), len(graph.get_graph().nodes))


def call_twice(state):
    found = [low_only.invoke({"log": [x]}) for x in ("i", "j")]
    return {"log": [line for one in found for line in one["log"]]}


low_only = StateGraph(State).add_node("q", lambda s: {"log": [f"{s['log'][0]}={interrupt(s['log'][0])}"]})
low_only = low_only.add_edge(START, "q").compile()
twice = StateGraph(State).add_node(call_twice).add_edge(START, "call_twice").compile(InMemorySaver())
print(shown(twice.invoke({"log": []}, config)))
print(shown(twice.invoke(Command(resume=1), config)))
print(shown(twice.invoke(Command(resume=2), config)))
