"""Schemas of every kind: input, output, private ones, pydantic, dataclasses, defaults, reducers."""

import operator
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, Optional

from langgraph.channels import EphemeralValue, LastValue, Topic, UntrackedValue
from langgraph.graph import END, START, StateGraph
from langgraph.managed import IsLastStep
from langgraph.types import Overwrite
from pydantic import BaseModel, ValidationError, field_validator
from typing_extensions import NotRequired, TypedDict


class Input(TypedDict):
    user_input: str


class Output(TypedDict):
    graph_output: str


class Overall(TypedDict):
    foo: str
    user_input: str
    graph_output: str


class Private(TypedDict):
    bar: str


def node_1(state: Input) -> Overall:
    return {"foo": state["user_input"] + " name"}


def node_2(state: Overall) -> Private:
    return {"bar": state["foo"] + " is"}


def node_3(state: Private) -> Output:
    return {"graph_output": state["bar"] + " Lance"}


builder = StateGraph(Overall, input_schema=Input, output_schema=Output)
builder.add_node(node_1).add_node(node_2).add_node(node_3)
builder.add_edge(START, "node_1").add_edge("node_1", "node_2").add_edge("node_2", "node_3").add_edge("node_3", END)
graph = builder.compile()
print(graph.invoke({"user_input": "My"}), list(graph.stream({"user_input": "My"})))
print(graph.get_input_jsonschema()["properties"], graph.get_output_jsonschema()["properties"])


class Model(BaseModel):
    name: str
    age: int = 3
    tags: list[str] = []

    @field_validator("name")
    @classmethod
    def no_digits(cls, value):
        if any(c.isdigit() for c in value):
            raise ValueError("digits")
        return value.title()


def with_model(state: Model):
    return {"age": state.age + 1, "tags": [type(state).__name__, state.name]}


model = StateGraph(Model).add_node(with_model).add_edge(START, "with_model").compile()
print(model.invoke({"name": "Ann"}), model.invoke(Model(name="bob", age="7")))
for bad in ({"name": "b0b"}, {"name": "x", "age": "many"}, {}):
    try:
        print(model.invoke(bad))
    except ValidationError as error:
        print([e["loc"] for e in error.errors()], [e["type"] for e in error.errors()])


@dataclass
class Data:
    n: int = 1
    log: Annotated[list, operator.add] = field(default_factory=list)
    maybe: Optional[str] = None


def with_data(state: Data):
    return {"n": state.n + 1, "log": [state.maybe, state.n]}


data = StateGraph(Data).add_node(with_data).add_edge(START, "with_data").compile()
print(data.invoke({}), data.invoke(Data(n=5, log=["x"])), data.invoke({"maybe": "m"}))


def merge(left: dict | None, right: dict | None) -> dict:
    return {**(left or {}), **(right or {})}


class Reduced(TypedDict):
    merged: Annotated[dict, merge]
    seen: Annotated[set, operator.or_]
    counted: Annotated[Counter, operator.add]
    biggest: Annotated[int, lambda a, b: max(a, b)]
    topic: Annotated[list[int], Topic(int)]
    kept: Annotated[list[int], Topic(int, accumulate=True)]
    gone: Annotated[str, EphemeralValue(str)]
    hidden: Annotated[str, UntrackedValue(str)]
    last: Annotated[int, LastValue(int)]
    is_last: IsLastStep
    extra: NotRequired[Any]


def first(state: Reduced):
    update = {"merged": {"a": 1}, "seen": {1}, "counted": Counter("ab"), "biggest": 3, "topic": 1, "kept": [1, 2]}
    return update | {"gone": "soon", "hidden": "h", "last": 1}


def second(state: Reduced):
    print({k: v for k, v in state.items() if k != "seen"}, sorted(state["seen"]))
    return {"merged": {"b": 2}, "seen": {2}, "counted": Counter("b"), "biggest": 2, "kept": 3, "extra": None, "last": 2}


def third(state: Reduced):
    print(sorted(state), state.get("gone"), state.get("topic"))
    return {"merged": Overwrite({"z": 0}), "last": 3}


reduced = StateGraph(Reduced).add_sequence([first, second, third]).add_edge(START, "first").compile()
result = reduced.invoke({"merged": {}, "biggest": 1})
print({k: sorted(v) if isinstance(v, set) else v for k, v in sorted(result.items())})
single = StateGraph(Annotated[list, operator.add]).add_node("a", lambda s: [len(s)]).add_edge(START, "a").compile()
print(single.invoke([1, 2]))


class Nested(BaseModel):
    inner: Model
    items: dict[str, Model] = {}


deep = StateGraph(Nested).add_node("a", lambda s: {"items": {"x": s.inner}}).add_edge(START, "a").compile()
print(deep.invoke({"inner": Model(name="ann")}))
