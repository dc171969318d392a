"""Type parameters of graphs, under LangGraph's import path."""

from runtime.types.parameters import ContextT, InputT, OutputT, StateT, StateT_co, StateT_contra

__all__ = ["ContextT", "InputT", "OutputT", "StateT", "StateT_co", "StateT_contra"]
