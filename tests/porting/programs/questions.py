"""Several questions at once, answers by id, breakpoints, questions in loops and in tasks."""

import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Interrupt, interrupt


class State(TypedDict):
    text: Annotated[list[str], operator.add]
    n: int


def asker(name, count=1):
    def ask(state: State):
        return {"text": [name, *[interrupt(f"{name}{i}") for i in range(count)]]}

    return ask


config = {"configurable": {"thread_id": "1"}}


def shown(result):
    return {k: sorted([i.value for i in v], key=str) if k == "__interrupt__" else v for k, v in result.items()}


wide = StateGraph(State).add_node("a", asker("a")).add_node("b", asker("b", 2)).add_node("c", lambda s: {"text": ["c"]})
for name in "abc":
    wide.add_edge(START, name)
wide.add_node("end", lambda s: {"n": len(s["text"])}).add_edge(["a", "b", "c"], "end")
graph = wide.compile(InMemorySaver())
result = graph.invoke({"text": []}, config)
print(shown(result), graph.get_state(config).next)
ids = {i.value: i.id for i in result["__interrupt__"]}
result = graph.invoke(Command(resume={ids["a0"]: "A", ids["b0"]: "B0"}), config)
print(shown(result), graph.get_state(config).next)
result = graph.invoke(Command(resume="B1"), config)
print(shown(result), graph.get_state(config).next, isinstance(ids["a0"], str), len(ids["a0"]))

chain = StateGraph(State)
chain.add_node("one", lambda s: {"text": ["one"]}).add_node("two", lambda s: {"text": ["two"]})
chain.add_edge(START, "one").add_edge("one", "two").add_edge("two", END)
stops = chain.compile(InMemorySaver(), interrupt_before=["two"], interrupt_after=["one"])
for given in ({"text": []}, None, None):
    print(stops.invoke(given, config), stops.get_state(config).next)
calls = chain.compile(InMemorySaver())
print(calls.invoke({"text": []}, config, interrupt_before="*"), calls.get_state(config).next)
print([list(chunk) for chunk in calls.stream(None, config, interrupt_after=["one"])], calls.get_state(config).next)
calls.update_state(config, {"text": ["by hand"]}, as_node="one")
print(calls.invoke(None, config)["text"])
print(calls.invoke({"text": ["again"]}, config)["text"])


@task
def ask_in_task(what: str) -> str:
    return f"{what}: {interrupt(what)}"


@entrypoint(checkpointer=InMemorySaver())
def flow(names: list[str]) -> list[str]:
    return [ask_in_task(name).result() for name in names]


print(shown(flow.invoke(["x", "y"], config)))
print(shown(flow.invoke(Command(resume=1), config)))
print(flow.invoke(Command(resume=2), config))
print(Interrupt(value=1, id="i"), Interrupt(value=1, id="i") == Interrupt(value=1, id="i"))


def both(state: State):
    answer = interrupt("go?")
    return Command(update={"text": [answer]}, goto="one" if answer == "yes" else END)


gate = StateGraph(State).add_node("both", both, destinations=("one", END)).add_node("one", lambda s: {"n": 1})
gate = gate.add_edge(START, "both").compile(InMemorySaver())
for answer in ("yes", "no"):
    here = {"configurable": {"thread_id": answer}}
    gate.invoke({"text": []}, here)
    print(gate.invoke(Command(resume=answer, update={"text": ["with it"]}), here))
