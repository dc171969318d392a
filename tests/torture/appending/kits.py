"""This project's names, for the graph that appends."""

from __future__ import annotations

from runtime.graph import END, START, StateGraph
from runtime.types import Command, interrupt
from tests.torture.appending.graphs import Kit

OURS = Kit(StateGraph, START, END, Command, interrupt)
