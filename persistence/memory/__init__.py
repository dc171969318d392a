"""A saver that keeps everything in this process's memory."""

from persistence.memory.saver import InMemorySaver

MemorySaver = InMemorySaver

__all__ = ["InMemorySaver", "MemorySaver"]
