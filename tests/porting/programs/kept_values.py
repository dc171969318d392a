"""Values of many types, through a saver and back."""

import asyncio
import collections
import datetime as dt
import decimal
import enum
import inspect
import ipaddress
import pathlib
import re
import uuid
import zoneinfo
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.messages import *
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel
from typing_extensions import TypedDict


def tried(what, function):
    """Print what comes of a call: its result, or the kind of its error."""
    try:
        result = function()
        print(what, "->", asyncio.run(result) if inspect.iscoroutine(result) else result)
    except Exception as error:
        print(what, [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0])


class E(enum.Enum):
    A = 1


class SE(str, enum.Enum):
    X = "x"


class IE(enum.IntEnum):
    ONE = 1


@dataclass
class D:
    a: int
    b: list = field(default_factory=list)


class P(BaseModel):
    a: int
    d: dt.date | None = None


class NT(NamedTuple):
    a: int
    b: str


class S(TypedDict, total=False):
    v: Any
    d: D
    p: P
    e: E
    nt: NT
    se: SE
    ie: IE


vals = [
    None,
    True,
    1,
    1.5,
    "é",
    b"x",
    bytearray(b"y"),
    [1],
    {"a": 1},
    {1: 2},
    {(1, 2): 3},
    {1},
    frozenset([1]),
    dt.datetime(2024, 1, 2, 3, 4, 5),
    dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc),
    dt.date(2024, 1, 2),
    dt.time(1, 2),
    dt.timedelta(1),
    uuid.UUID(int=5),
    decimal.Decimal("1.5"),
    pathlib.Path("/a/b"),
    E.A,
    D(1, [2]),
    P(a=1, d=dt.date(2024, 1, 1)),
    NT(1, "b"),
    SE.X,
    IE.ONE,
    re.compile("a+", re.I),
    collections.deque([1, 2]),
    ipaddress.ip_address("1.2.3.4"),
    zoneinfo.ZoneInfo("Europe/Berlin"),
    HumanMessage("x", id="1"),
    AIMessage("y", id="2", tool_calls=[{"name": "f", "args": {}, "id": "c"}]),
    ToolMessage("z", tool_call_id="c", id="3"),
    AIMessageChunk(content="c", id="4"),
    RemoveMessage(id="5"),
    Document("doc", metadata={"a": 1}),
    np.array([1, 2]),
    Send("a", 1),
    Command(goto="x"),
    Interrupt(value=1, id="i"),
    {"n": [D(3), P(a=2)]},
    float("inf"),
    2**63 - 1,
    -(2**63),
    "",
    [],
    {},
    set(),
    [None, [None]],
]
saver = InMemorySaver()
for k, v in enumerate(vals):

    def go():
        g = (
            StateGraph(S)
            .add_node("n", lambda s: {"v": v})
            .add_node("m", lambda s: None)
            .add_edge(START, "n")
            .add_edge("n", "m")
            .compile(saver)
        )
        c = {"configurable": {"thread_id": str(k)}}
        out = g.invoke({}, c)
        r = g.get_state(c).values["v"]
        return type(r).__name__, repr(r)

    tried(repr(v)[:60], go)
s = JsonPlusSerializer()
tried("rt", lambda: s.loads_typed(s.dumps_typed({"a": [1, dt.date(2024, 1, 1)]})))
