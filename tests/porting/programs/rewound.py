"""Back in time on a thread named by a UUID: old points run again, edited, streamed and told of in the history."""

import operator
import uuid
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt
from typing_extensions import NotRequired, TypedDict


class Poem(TypedDict):
    theme: NotRequired[str]
    lines: Annotated[list[str], operator.add]
    length: NotRequired[int]


ran: list[str] = []


def choose(poem: Poem):
    ran.append("choose")
    return {"theme": f"theme {ran.count('choose')}"}


def write(poem: Poem):
    ran.append("write")
    return {"lines": [f"on {poem['theme']}"], "length": len(poem["lines"]) + 1}


def judge(poem: Poem):
    ran.append("judge")
    return {"lines": [f"judged {interrupt(poem['lines'])}"]}


def seen(snapshot):
    asked = [question.value for question in snapshot.interrupts]
    return snapshot.metadata["source"], snapshot.metadata["step"], snapshot.next, snapshot.values, asked


builder = StateGraph(Poem).add_sequence([choose, write, judge]).add_edge(START, "choose").add_edge("judge", END)
graph = builder.compile(InMemorySaver())
thread = {"configurable": {"thread_id": uuid.UUID(int=77), "poet": "Ann"}, "metadata": {"shelf": 3}}
nothing = graph.get_state(thread)
print(nothing, list(graph.get_state_history(thread)))
print(graph.invoke({"lines": []}, thread)["__interrupt__"][0].value)
print(graph.invoke(Command(resume="fine"), thread))
history = list(graph.get_state_history(thread))
for one in history:
    print(*seen(one))
print([sorted(key for key in one.metadata) for one in history][:2])
print([one.parent_config == after.config for one, after in zip(history, history[1:])], history[-1].parent_config)
at_write = next(one for one in history if one.next == ("write",))

print("again from there")
for chunk in graph.stream(None, at_write.config, stream_mode="updates"):
    print({name: value if name != "__interrupt__" else value[0].value for name, value in chunk.items()})
print(*seen(graph.get_state(thread)))
print(ran)

print(sorted(graph.update_state(thread, {"lines": []}, as_node="judge")["configurable"]))
print("with another theme")
edited = graph.update_state(at_write.config, {"theme": "rain", "lines": Overwrite(["a first line"])})
print(sorted(edited["configurable"]), *seen(graph.get_state(edited)))
print(graph.invoke(None, edited)["__interrupt__"][0].value)
print(graph.invoke(Command(resume="wet"), thread))

print("as if another had been there")
for as_node, values in (("choose", {"theme": "x"}), ("write", {"lines": ["y"]}), ("judge", {"lines": ["z"]})):
    edited = graph.update_state(at_write.config, values, as_node=as_node)
    print(as_node, *seen(graph.get_state(edited)))
print(len(list(graph.get_state_history(thread))), len(list(graph.get_state_history(thread, limit=2))))
print([seen(one)[:3] for one in graph.get_state_history(thread, filter={"source": "update"})])
print([seen(one)[:3] for one in graph.get_state_history(thread, before=at_write.config)])


def lead(poem: Poem):
    return [Send("verse", {"theme": poem["theme"], "number": number}) for number in range(3)]


def verse(given: dict):
    if given["number"] == 1 and given["theme"] != "mended":
        raise ValueError(f"no verse on {given['theme']}")
    return {"lines": [f"{given['theme']} {given['number']}"]}


builder = StateGraph(Poem).add_node(choose).add_node(verse).add_edge(START, "choose")
graph = builder.add_conditional_edges("choose", lead, ["verse"]).compile(InMemorySaver())
try:
    graph.invoke({"lines": []}, thread)
except ValueError as error:
    print(error)
stuck = graph.get_state(thread)
print(stuck.next, [(task.name, task.result, task.error) for task in stuck.tasks if task.error])
print(graph.invoke(None, graph.update_state(thread, {"theme": "mended"}, as_node="choose")))
