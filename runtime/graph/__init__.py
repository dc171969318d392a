"""The public face: describe a graph, compile it, run it."""

from runtime.graph.builder import StateGraph
from runtime.graph.compiled import CompiledStateGraph
from runtime.graph.message import REMOVE_ALL_MESSAGES, MessagesState, add_messages, push_message
from runtime.types.constants import END, START

__all__ = [
    "END",
    "REMOVE_ALL_MESSAGES",
    "START",
    "CompiledStateGraph",
    "MessagesState",
    "StateGraph",
    "add_messages",
    "push_message",
]
