"""What running code can ask for, under LangGraph's import path."""

from runtime.context.scope import get_config, get_store, get_stream_writer
from runtime.streaming.tools import get_tool_writer

__all__ = ["get_config", "get_store", "get_stream_writer", "get_tool_writer"]
