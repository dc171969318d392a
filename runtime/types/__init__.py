"""The vocabulary of the runtime: frozen records and names. Imports nothing of ours but the error tree."""

from runtime.types.asking import interrupt
from runtime.types.command import Command, Overwrite, Send
from runtime.types.config import RunnableConfig
from runtime.types.interrupts import Interrupt
from runtime.types.parameters import All, Checkpointer
from runtime.types.parts import (
    CheckpointPayload,
    CheckpointStreamPart,
    CheckpointTask,
    CustomStreamPart,
    DebugPayload,
    DebugStreamPart,
    MessagesStreamPart,
    StreamPart,
    TaskPayload,
    TaskResultPayload,
    TasksStreamPart,
    ToolsStreamPart,
    UpdatesStreamPart,
    ValuesStreamPart,
)
from runtime.types.policy import (
    CachePolicy,
    Durability,
    MultitaskStrategy,
    RetryPolicy,
    TimeoutPolicy,
    default_retry_on,
)
from runtime.types.snapshot import PregelTask, StateSnapshot, StateUpdate
from runtime.types.streams import GraphOutput, StreamMode, StreamWriter

__all__ = [
    "All",
    "CachePolicy",
    "CheckpointPayload",
    "CheckpointStreamPart",
    "CheckpointTask",
    "Checkpointer",
    "Command",
    "CustomStreamPart",
    "DebugPayload",
    "DebugStreamPart",
    "Durability",
    "GraphOutput",
    "Interrupt",
    "MessagesStreamPart",
    "MultitaskStrategy",
    "Overwrite",
    "PregelTask",
    "RetryPolicy",
    "RunnableConfig",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamMode",
    "StreamPart",
    "StreamWriter",
    "TaskPayload",
    "TaskResultPayload",
    "TasksStreamPart",
    "TimeoutPolicy",
    "ToolsStreamPart",
    "UpdatesStreamPart",
    "ValuesStreamPart",
    "default_retry_on",
    "interrupt",
]
