"""The functional API, under LangGraph's import path."""

from runtime.graph.functional import entrypoint, task

__all__ = ["entrypoint", "task"]
