"""Back to an earlier step, and forks from it."""

import operator
from typing import Annotated, NotRequired

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import StateUpdate
from typing_extensions import TypedDict


class State(TypedDict):
    topic: NotRequired[str]
    joke: NotRequired[str]
    log: Annotated[list[str], operator.add]


ran = []


def generate_topic(state: State):
    ran.append("topic")
    return {"topic": "socks in the dryer", "log": ["topic"]}


def write_joke(state: State):
    ran.append("joke")
    return {"joke": f"a joke about {state['topic']}", "log": ["joke"]}


workflow = StateGraph(State)
workflow.add_node("generate_topic", generate_topic)
workflow.add_node("write_joke", write_joke)
workflow.add_edge(START, "generate_topic")
workflow.add_edge("generate_topic", "write_joke")
workflow.add_edge("write_joke", END)
graph = workflow.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "t"}}
print(graph.invoke({"log": []}, config))
states = list(graph.get_state_history(config))
for state in states:
    print(state.next, state.metadata, state.values, [(t.name, t.result) for t in state.tasks])
selected = states[1]
ran.clear()
print(graph.invoke(None, selected.config), ran)
new_config = graph.update_state(selected.config, values={"topic": "chickens"})
print(sorted(new_config["configurable"]))
ran.clear()
print(graph.invoke(None, new_config), ran)
for state in graph.get_state_history(config):
    print(state.next, state.metadata["source"], state.metadata["step"], state.values.get("joke"))
print(graph.get_state(config).values)
print([s.values.get("topic") for s in graph.get_state_history(config, filter={"source": "update"})])
print(len(list(graph.get_state_history(config, limit=2))), len(list(graph.get_state_history(config, before=selected.config))))
forked = graph.update_state(selected.config, {"log": ["as topic"]}, as_node="generate_topic")
print(graph.get_state(forked).next, graph.invoke(None, forked)["log"])
paused = workflow.compile(checkpointer=InMemorySaver(), interrupt_before=["write_joke"])
print(paused.invoke({"log": []}, config), paused.get_state(config).next)
paused.update_state(config, {"topic": "edited"})
print(paused.invoke(None, config))
bulk = {"configurable": {"thread_id": "bulk"}}
updates = [[StateUpdate({"log": ["a"]}, "generate_topic")], [StateUpdate({"log": ["b"]}, "write_joke")]]
print(graph.bulk_update_state(bulk, updates)["configurable"]["thread_id"], graph.get_state(bulk).values)
