"""A saver, a cache and a store that keep everything in this process's memory."""

from persistence.memory.cache import CacheStatistics, InMemoryCache
from persistence.memory.saver import InMemorySaver
from persistence.memory.store import InMemoryStore

MemorySaver = InMemorySaver

__all__ = ["CacheStatistics", "InMemoryCache", "InMemorySaver", "InMemoryStore", "MemorySaver"]
