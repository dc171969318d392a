"""Where LangGraph's public names are here, and which are not: the table that ``test_names`` holds both to.

What is not offered is named in README, under "Not offered"; here stand only the insides, which programs do not import.
"""

from __future__ import annotations

from typing import Final

PLACES: Final[dict[str, tuple[str, ...]]] = {
    "langgraph.cache.base": ("persistence.cache",),
    "langgraph.cache.memory": ("persistence.memory",),
    "langgraph.cache.redis": ("persistence.redis",),
    "langgraph.cache.sqlite": ("persistence.sqlite",),
    "langgraph.callbacks": ("runtime.callbacks",),
    "langgraph.channels": ("runtime.channels",),
    "langgraph.checkpoint.base": ("persistence.saver",),
    "langgraph.checkpoint.base.id": ("persistence.saver",),
    "langgraph.checkpoint.memory": ("persistence.memory",),
    "langgraph.checkpoint.postgres": ("persistence.postgres",),
    "langgraph.checkpoint.postgres.aio": ("persistence.postgres",),
    "langgraph.checkpoint.serde.base": ("persistence.serde",),
    "langgraph.checkpoint.serde.encrypted": ("persistence.serde",),
    "langgraph.checkpoint.serde.jsonplus": ("persistence.serde",),
    "langgraph.checkpoint.serde.types": ("persistence.saver",),
    "langgraph.checkpoint.sqlite": ("persistence.sqlite",),
    "langgraph.checkpoint.sqlite.aio": ("persistence.sqlite",),
    "langgraph.config": ("runtime.config",),
    "langgraph.constants": ("runtime.constants",),
    "langgraph.errors": ("runtime.errors",),
    "langgraph.func": ("runtime.func",),
    "langgraph.graph": ("runtime.graph",),
    "langgraph.graph.message": ("runtime.graph",),
    "langgraph.graph.state": ("runtime.graph",),
    "langgraph.managed": ("runtime.managed",),
    "langgraph.managed.is_last_step": ("runtime.managed",),
    "langgraph.runtime": ("runtime.runtime",),
    "langgraph.store.base": ("runtime.store", "persistence.store"),
    "langgraph.store.memory": ("persistence.memory",),
    "langgraph.store.postgres": ("persistence.postgres",),
    "langgraph.store.postgres.aio": ("persistence.postgres",),
    "langgraph.store.sqlite": ("persistence.sqlite",),
    "langgraph.store.sqlite.aio": ("persistence.sqlite",),
    "langgraph.types": ("runtime.types",),
    "langgraph.typing": ("runtime.typing",),
}
"""Modules there, and where their names are here; each has a row in README's table. What lies below goes with them."""

RENAMED: Final = {"JsonPlusSerializer": "Serializer"}
"""The two names of one thing."""

INSIDES: Final = {
    "langgraph.checkpoint.base.id": {"UUID"},
    "langgraph.checkpoint.base": {"DeltaChannelHistory", "writes_sort_key"},
    "langgraph.checkpoint.memory": {"PersistentDict"},
    "langgraph.checkpoint.postgres": {"BasePostgresSaver", "Conn", "MetadataInput"},
    "langgraph.checkpoint.serde.base": {"SerializerCompat", "UntypedSerializerProtocol", "maybe_add_typed_methods"},
    "langgraph.checkpoint.serde.types": {"ChannelProtocol", "SendProtocol"},
    "langgraph.checkpoint.sqlite.utils": {"load_pending_writes", "pending_writes_sql", "search_where"},
    "langgraph.callbacks": {
        "get_async_graph_callback_manager_for_config",
        "get_sync_graph_callback_manager_for_config",
    },
    "langgraph.constants": {"CONF", "CONFIG_KEY_CHECKPOINTER", "TASKS"},
    "langgraph.managed.base": {"ManagedValueMapping", "ManagedValueSpec"},
    "langgraph.managed.is_last_step": {"RemainingStepsManager"},
    "langgraph.store.postgres.base": {"BasePostgresStore", "Migration", "Row", "get_distance_operator"},
    "langgraph.store.sqlite.base": {"BaseSqliteStore", "PreparedGetQuery"},
    "langgraph.types": {"PregelExecutableTask", "ensure_valid_checkpointer"},
}
"""Names of LangGraph's own machinery that stand in modules whose other names are here."""

_ENGINE: Final = {
    "InputType",
    "OutputType",
    "attach_branch",
    "attach_edge",
    "attach_node",
    "cache_policy",
    "config",
    "config_schema",
    "context_schema",
    "copy",
    "get_config_jsonschema",
    "retry_policy",
    "stream_channels",
    "stream_channels_asis",
    "stream_channels_list",
    "stream_eager",
    "stream_mode",
    "validate",
}
_SAVER: Final = {
    "aget_delta_channel_history",
    "config_specs",
    "cursor",
    "get_delta_channel_history",
    "serde",
    "with_allowlist",
}
_STORE: Final = {"embeddings", "index_config", "lock", "pipe", "supports_pipeline"}
_BLOCKING: Final = {
    "copy_thread",
    "delete_for_runs",
    "delete_thread",
    "get_tuple",
    "list",
    "prune",
    "put",
    "put_writes",
}

ATTRIBUTES: Final[dict[str, set[str]]] = {
    "AsyncPostgresSaver": _SAVER,
    "AsyncPostgresStore": _STORE,
    "AsyncSqliteSaver": _SAVER,
    "AsyncSqliteStore": _STORE,
    "BaseCache": {"clear", "get", "serde", "set"},  # nothing here calls the blocking ones; serde is each one's own
    "BaseCheckpointSaver": _SAVER | _BLOCKING,  # a saver has the blocking methods that it defines
    "CompiledStateGraph": _ENGINE,
    "DeltaChannel": {"replay_writes"},
    "InMemoryCache": {"serde"},
    "InMemorySaver": _SAVER,
    "InMemoryStore": _STORE,
    "JsonPlusSerializer": {"with_msgpack_allowlist"},  # types are registered
    "Interrupt": {"interrupt_id"},  # deprecated there
    "MemorySaver": _SAVER,
    "PostgresSaver": _SAVER,
    "PostgresStore": _STORE,
    "RedisCache": {"serde"},
    "RetryPolicy": {"count", "index"},  # a tuple there
    "SqliteCache": {"serde"},
    "SqliteSaver": _SAVER,
    "SqliteStore": _STORE,
}
"""What classes of the same name show there of their machinery."""

PARAMETERS: Final[dict[str, set[str]]] = {
    "AsyncPostgresSaver": {"conn", "pipe", "serde"},  # the last by name here
    "AsyncPostgresStore": {"conn", "deserializer", "pipe"},
    "AsyncSqliteSaver": {"conn"},
    "AsyncSqliteStore": {"conn", "deserializer"},
    "CachePolicy": {"key_func"},  # the default key is the cache's matter here
    "CompiledStateGraph": {"schema_to_mapper"},  # made by compile()
    "EncryptedSerializer": {"cipher", "serde"},  # takes a key
    "EncryptedSerializer.from_pycryptodome_aes": {"serde"},  # its default is made when it is asked for
    "InMemoryCache.aset": {"keys"},  # ``pairs``, as in the base class
    "InMemoryCache.set": {"keys"},
    "InMemorySaver": {"factory"},
    "Interrupt": {"id"},  # "placeholder-id" there
    # No imports by name, no pickles.
    "JsonPlusSerializer": {"allowed_json_modules", "allowed_msgpack_modules", "pickle_fallback"},
    "MemorySaver": {"factory"},
    "PostgresSaver": {"conn", "pipe", "serde"},
    "PostgresStore": {"conn", "deserializer", "pipe"},
    "RedisCache": {"redis", "prefix"},  # opens its database itself, with a prefix of its own
    "RedisCache.aset": {"mapping"},  # ``pairs``, as in the base class
    "RedisCache.set": {"mapping"},
    "RetryPolicy": {"retry_on"},  # each has its own default_retry_on
    "Runtime": {"heartbeat", "stream_writer"},  # functions that do nothing
    "SqliteCache.aset": {"mapping"},
    "SqliteCache.set": {"mapping"},
    "SqliteSaver": {"conn"},
    "SqliteStore": {"conn", "deserializer"},
    "StateGraph.add_node": {"trace_policy"},  # README: TracePolicy
    "StateGraph.compile": {"transformers"},  # README
}
"""Parameters that are not the same here: most of them because a saver or store opens its database itself."""
