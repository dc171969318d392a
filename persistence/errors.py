"""Everything that persistence can raise.

PersistenceError
├── SerializationError        a value cannot be stored as it is; names channel and type
├── StoredDataError           what a row holds cannot be read back
│   ├── CorruptDataError      its checksum or structure is wrong
│   ├── UnknownTypeError      it names a type that nobody registered
│   └── DecryptionError       it is not encrypted, or not with this key, or moved from its place
├── BackendError              the database refused or could not be reached
│   ├── TransientBackendError it may succeed if tried again
│   ├── CheckpointConflictError another writer moved the thread on; this unit was not saved
│   │   └── LeaseLostError  a later run took the thread, or it was deleted
│   └── BackendOpenError      it could not be opened: path, permissions, not a database
│       └── SchemaVersionError  it was written by a newer version
├── InvalidNamespaceError     where an item is to be kept is no tuple of labels
├── PersistenceClosedError    the saver or store is not open, or was closed
├── SaverLoopError            it is open on another event loop or thread
├── EmptyChannelError         a channel without a value was asked for it
└── UnsupportedOperationError the saver does not offer this optional method
"""


class PersistenceError(Exception):
    """Root of every error that the persistence package raises."""


class SerializationError(PersistenceError, TypeError):
    """A value cannot be stored without changing it.

    Also a TypeError, which is what other runtimes raise here.
    """

    task_id: str | None = None
    """The task that wrote it, where that is known."""


class StoredDataError(PersistenceError):
    """A stored value cannot be read back."""

    checkpoint_id: str | None = None
    """The checkpoint that needs it, where that is known."""


class CorruptDataError(StoredDataError):
    """Stored bytes fail their checksum or do not parse."""


class UnknownTypeError(StoredDataError):
    """Stored bytes name a type that is not registered; nothing was imported."""


class DecryptionError(StoredDataError):
    """Stored bytes are plain, were made with another key, or belong to another place."""


class BackendError(PersistenceError):
    """The storage backend failed."""


class TransientBackendError(BackendError):
    """The backend failed in a way that may pass: locked, busy, connection lost."""


class CheckpointConflictError(BackendError):
    """Another writer stored a newer checkpoint than the one this unit follows; nothing of the unit was saved."""


class LeaseLostError(CheckpointConflictError):
    """The run whose unit this is does not hold its thread any more; nothing of the unit was saved."""

    thread_ids: frozenset[str] = frozenset()
    """Every thread of the batch that this is so of."""


class BackendOpenError(BackendError):
    """The backend could not be opened; nothing was written."""


class SchemaVersionError(BackendOpenError):
    """The database was written by a newer version of this library; nothing was written."""


class InvalidNamespaceError(PersistenceError, ValueError):
    """A namespace of a store, or a part of one, is not a tuple of labels."""


class PersistenceClosedError(PersistenceError):
    """The saver is not open; open it with ``async with saver`` (or ``with saver``)."""


class SaverLoopError(PersistenceError, RuntimeError):
    """The saver is open on another event loop, or waiting here would deadlock."""


class EmptyChannelError(PersistenceError):
    """A channel that holds no value was asked for it; ``create_checkpoint`` leaves such channels out."""


class UnsupportedOperationError(PersistenceError, NotImplementedError):
    """The saver does not implement this optional operation."""
