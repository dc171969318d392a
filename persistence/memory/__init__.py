"""A saver and a cache that keep everything in this process's memory."""

from persistence.memory.cache import CacheStatistics, InMemoryCache
from persistence.memory.saver import InMemorySaver

MemorySaver = InMemorySaver

__all__ = ["CacheStatistics", "InMemoryCache", "InMemorySaver", "MemorySaver"]
