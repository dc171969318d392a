"""Channels: the cells that hold a graph's state between supersteps."""

from runtime.channels.barriers import NamedBarrierValue, NamedBarrierValueAfterFinish
from runtime.channels.base import MISSING, BaseChannel, detached
from runtime.channels.reducers import BinaryOperatorAggregate, DeltaChannel
from runtime.channels.topics import Topic
from runtime.channels.values import AnyValue, EphemeralValue, LastValue, LastValueAfterFinish, UntrackedValue

__all__ = [
    "MISSING",
    "AnyValue",
    "BaseChannel",
    "BinaryOperatorAggregate",
    "DeltaChannel",
    "EphemeralValue",
    "LastValue",
    "LastValueAfterFinish",
    "NamedBarrierValue",
    "NamedBarrierValueAfterFinish",
    "Topic",
    "UntrackedValue",
    "detached",
]
