"""Names of the virtual nodes, and tags, under LangGraph's import path."""

from runtime.types.constants import END, START, TAG_HIDDEN, TAG_NOSTREAM

__all__ = ["END", "START", "TAG_HIDDEN", "TAG_NOSTREAM"]
