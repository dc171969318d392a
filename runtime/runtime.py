"""``Runtime`` under LangGraph's import path."""

from runtime.context.runtime import ExecutionInfo, RunControl, Runtime
from runtime.context.scope import get_runtime

__all__ = ["ExecutionInfo", "RunControl", "Runtime", "get_runtime"]
