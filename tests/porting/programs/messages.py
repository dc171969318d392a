"""Messages and documents in states of every declaration, kept in a file."""

import operator
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph, add_messages


class One(TypedDict):
    found: Annotated[list, add_messages]


class Two(TypedDict):
    found: Annotated[Sequence[BaseMessage], operator.add]


class Three(TypedDict):
    found: Annotated[list, operator.add]


class Four(TypedDict):
    found: list[Document]


class Five(TypedDict):
    found: list


class Six(TypedDict):
    found: Any


class Seven(TypedDict):
    found: Annotated[list[AnyMessage], operator.add]


SAID = [SystemMessage("s", id="1"), HumanMessage("h", id="2"), AIMessage("a", id="3"), ToolMessage("t", tool_call_id="c", id="4")]
path = str(Path(tempfile.mkdtemp()) / "file.db")
for number, schema in enumerate((One, Two, Three, Four, Five, Six, Seven)):
    given = [Document(page_content="text", metadata={"a": 1})] if schema in (Four, Six) else SAID
    config = {"configurable": {"thread_id": str(number)}}
    builder = StateGraph(schema).add_node("a", lambda s: {"found": given}).add_edge(START, "a")
    try:
        with SqliteSaver.from_conn_string(path) as saver:
            builder.compile(checkpointer=saver).invoke({"found": []}, config)
        with SqliteSaver.from_conn_string(path) as saver:
            print(schema.__name__, builder.compile(checkpointer=saver).get_state(config).values["found"] == given)
    except Exception as error:
        print(schema.__name__, type(error).__name__, error)
