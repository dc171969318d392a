"""The vocabulary of the runtime: frozen records and names. Imports nothing of ours but the error tree."""

from runtime.types.asking import interrupt
from runtime.types.command import Command, Overwrite, Send
from runtime.types.config import RunnableConfig
from runtime.types.interrupts import Interrupt
from runtime.types.policy import (
    CachePolicy,
    Durability,
    MultitaskStrategy,
    RetryPolicy,
    TimeoutPolicy,
    default_retry_on,
)
from runtime.types.snapshot import PregelTask, StateSnapshot, StateUpdate
from runtime.types.streams import GraphOutput, StreamMode, StreamPart, StreamWriter

__all__ = [
    "CachePolicy",
    "Command",
    "Durability",
    "GraphOutput",
    "Interrupt",
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
    "TimeoutPolicy",
    "default_retry_on",
    "interrupt",
]
