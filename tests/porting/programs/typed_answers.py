"""Questions that say what their answers look like, and forms that ask again until an answer will do."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Interrupt, interrupt
from pydantic import BaseModel, Field, ValidationError
from typing_extensions import TypedDict


class Verdict(BaseModel):
    allowed: bool
    remark: str = Field(default="none", max_length=12)


@dataclass
class Amount:
    euros: float
    rounded: bool = False


class Address(TypedDict):
    street: str
    number: int


class Form(TypedDict):
    answer: Verdict | Amount | Address | Any


def form(schema):
    def node(state: Form):
        return {"answer": interrupt({"please": "fill in"}, response_schema=schema)}

    return StateGraph(Form).add_node("node", node).add_edge(START, "node").compile(InMemorySaver())


def thread(name):
    return {"configurable": {"thread_id": name}}


JSON = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
CASES = {
    "model": (Verdict, [{"allowed": "maybe"}, {"allowed": True, "remark": "far too long for it"}, {"allowed": "yes"}]),
    "instance": (Verdict, [Verdict(allowed=False, remark="no")]),
    "dataclass": (Amount, [{"euros": "much"}, {"euros": "2.5"}]),
    "typed dict": (Address, [{"street": "Elm"}, {"street": "Elm", "number": "7"}]),
    "json schema": (JSON, [{"x": "not looked at"}]),
    "nothing": (None, [["as", "it", "is"]]),
}
for name, (schema, answers) in CASES.items():
    graph = form(schema)
    asked = graph.invoke({"answer": None}, thread(name))["__interrupt__"][0]
    print(name, isinstance(asked, Interrupt), asked.value, asked.response_schema)
    print(graph.get_state(thread(name)).tasks[0].interrupts[0].response_schema == asked.response_schema)
    for answer in answers:
        try:
            print(graph.invoke(Command(resume=answer), thread(name)))
        except ValidationError as error:
            print("refused", error.error_count(), error.errors()[0]["loc"], graph.get_state(thread(name)).next)


class Trip(TypedDict, total=False):
    travellers: int
    log: Annotated[list[str], operator.add]


def in_one_node(state: Trip):
    prompt, tried = "How many travel?", []
    while True:
        given = interrupt(prompt)
        if isinstance(given, int) and given > 0:
            return {"travellers": given, "log": [*tried, "good"]}
        tried.append(f"not {given!r}")
        prompt = f"{given!r} is no number of travellers."


graph = StateGraph(Trip).add_node(in_one_node).add_edge(START, "in_one_node").compile(InMemorySaver())
told = graph.invoke({"log": []}, thread("loop"))
for answer in ("two", -1, 2.5, 3):
    print(told["__interrupt__"][0].value, len(graph.get_state(thread("loop")).interrupts))
    told = graph.invoke(Command(resume=answer), thread("loop"))
print(told)


def collect(state: Trip):
    return {"travellers": interrupt(f"attempt {len(state['log']) + 1}"), "log": ["asked"]}


def check(state: Trip):
    return "collect" if state["travellers"] <= 0 else END


graph = StateGraph(Trip).add_node(collect).add_edge(START, "collect")
graph = graph.add_conditional_edges("collect", check, ["collect", END]).compile(InMemorySaver())
given = {"log": []}
for answer in (0, -4, 9):
    told = graph.invoke(given, thread("edge"))
    print(told, graph.get_state(thread("edge")).next)
    given = Command(resume=answer)
print(graph.invoke(given, thread("edge")))
print([(saved.metadata["step"], saved.next, len(saved.interrupts)) for saved in graph.get_state_history(thread("edge"))])
