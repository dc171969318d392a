"""The shapes of what a stream hands out: one part a chunk of ``version="v2"``, and what modes put into them."""

from __future__ import annotations

from typing import Any, Generic, Literal, NotRequired, TypeAlias, TypedDict

from runtime.interrupts import Interrupt
from runtime.types.config import RunnableConfig
from runtime.types.parameters import OutputT, StateT
from runtime.types.snapshot import StateSnapshot


class TaskPayload(TypedDict):
    """``tasks``: a task begins."""

    id: str
    name: str
    input: Any
    triggers: list[str]
    metadata: NotRequired[dict[str, Any]]


class TaskResultPayload(TypedDict):
    """``tasks``: a task has ended."""

    id: str
    name: str
    error: str | None
    interrupts: list[dict[str, Any]]
    result: dict[str, Any]


class CheckpointTask(TypedDict):
    """A task that is due at a checkpoint."""

    id: str
    name: str
    error: NotRequired[str]
    result: NotRequired[Any]
    interrupts: NotRequired[list[dict[str, Any]]]
    state: StateSnapshot | RunnableConfig | None
    """Of a subgraph."""


class CheckpointPayload(TypedDict, Generic[StateT]):
    """``checkpoints``: the state after a superstep."""

    config: RunnableConfig | None
    metadata: dict[str, Any]
    values: StateT
    next: list[str]
    parent_config: RunnableConfig | None
    tasks: list[CheckpointTask]


class DebugPayload(TypedDict):
    """``debug``: what ``tasks`` and ``checkpoints`` tell, with the number of the superstep."""

    step: int
    timestamp: str
    type: Literal["checkpoint", "task", "task_result"]
    payload: Any
    """A CheckpointPayload, TaskPayload or TaskResultPayload."""


class _Part(TypedDict):
    ns: tuple[str, ...]
    """The subgraph's namespace; ``()`` for the graph itself."""
    durable_upto: str | None
    """The newest checkpoint of the streamed run that was on disk when the chunk was handed out."""


class ValuesStreamPart(_Part, Generic[OutputT]):
    """The state after a superstep."""

    type: Literal["values"]
    data: OutputT
    """An instance of the state's schema, if that is a class with instances."""
    interrupts: tuple[Interrupt, ...]
    """The questions that the run stops at."""


class UpdatesStreamPart(_Part):
    """What a node has returned, by its name."""

    type: Literal["updates"]
    data: dict[str, Any]


class MessagesStreamPart(_Part):
    """A message, or a token of one, and the metadata of the node that it comes from."""

    type: Literal["messages"]
    data: tuple[Any, dict[str, Any]]


class CustomStreamPart(_Part):
    """What a node wrote to its stream writer."""

    type: Literal["custom"]
    data: Any


class ToolsStreamPart(_Part):
    """What happens in a tool."""

    type: Literal["tools"]
    data: Any


class TasksStreamPart(_Part):
    """A task begins or has ended."""

    type: Literal["tasks"]
    data: TaskPayload | TaskResultPayload


class CheckpointStreamPart(_Part, Generic[StateT]):
    """A checkpoint."""

    type: Literal["checkpoints"]
    data: CheckpointPayload[StateT]


class DebugStreamPart(_Part):
    """A task or a checkpoint, with the number of its superstep."""

    type: Literal["debug"]
    data: DebugPayload


StreamPart: TypeAlias = (
    ValuesStreamPart[Any]
    | UpdatesStreamPart
    | MessagesStreamPart
    | CustomStreamPart
    | ToolsStreamPart
    | TasksStreamPart
    | CheckpointStreamPart[Any]
    | DebugStreamPart
)
"""One chunk of a ``version="v2"`` stream; its ``type`` tells which."""
