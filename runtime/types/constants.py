"""Names that are visible in stored rows, streams and snapshots."""

from __future__ import annotations

import sys
from typing import Final

START: Final = sys.intern("__start__")
"""The virtual first node."""
END: Final = sys.intern("__end__")
"""The virtual last node."""
ROOT: Final = "__root__"
"""The only channel of a graph whose state is one bare value."""
INPUT: Final = "__input__"
COPY: Final = "__copy__"
PREVIOUS: Final = "__previous__"
TASKS: Final = "__pregel_tasks"
PULL: Final = "__pregel_pull"
PUSH: Final = "__pregel_push"
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
ERROR: Final = "__error__"
ERROR_SOURCE_NODE: Final = "__error_source_node__"
CALLED_BY: Final = "__called_by__"
"""Which task or call made a call that has asked."""
NO_WRITES: Final = "__no_writes__"
RETURN: Final = "__return__"
OVERWRITE: Final = "__overwrite__"
METADATA: Final = "__metadata__"
"""Beside the nodes in a chunk of ``updates``."""
HANDLER: Final = "__error_handler__"
"""What the name of a node's error handler begins with."""
TAG_HIDDEN: Final = "langsmith:hidden"
TAG_NOSTREAM: Final = "nostream"
"""Keeps a model's tokens, or a tool's calls, out of the stream."""
NULL_TASK_ID: Final = "00000000-0000-0000-0000-000000000000"

NS_SEP: Final = "|"
"""Between the levels of a namespace."""
NS_END: Final = ":"
"""Between a node's name and its task id in a namespace."""

BRANCH: Final = "__branched__"
"""Metadata of what comes after a step back: where the branch began, and what it left (see run/lineage)."""
CALLERS: Final = "__callers__"
"""Metadata of a subgraph that keeps its state between calls: all tasks and calls around it, outermost first."""

CONTROL_WRITES: Final = frozenset({ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME, CALLED_BY})
"""Writes that do not make a task finished."""
RESERVED: Final = frozenset({NO_WRITES, PUSH, RESUME, INTERRUPT, RETURN, ERROR, ERROR_SOURCE_NODE, CALLED_BY})
"""Writes that never reach a channel."""
RESERVED_NODES: Final = frozenset({START, END, INPUT, COPY, INTERRUPT, METADATA})
"""What a node of this name wrote, or an edit in its name, would be taken for something else."""


def branch_to(node: str) -> str:
    """Return the trigger channel of a node."""
    return f"branch:to:{node}"
