"""Values to stored bytes and back.

A stored value is a short type and its data: ``null`` (no data), or ``bytes`` and ``msgpack``, each four bytes of CRC-32
over type and payload, then the payload. What goes in comes out, of the same type, or ``dumps_typed`` raises. Objects
that are referred to twice come back as two.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import msgspec

from persistence.errors import CorruptDataError, DecryptionError, SerializationError, StoredDataError, UnknownTypeError
from persistence.serde import catalog, containers, times, values
from persistence.serde.reading import Reader
from persistence.serde.registry import Registry
from persistence.serde.writing import PLAIN_DEPTH, SCALARS, Refusal, Writer, encode, plain_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

Typed = tuple[str, bytes]
"""A stored value: its type, and its data."""


@runtime_checkable
class SerializerProtocol(Protocol):
    """What savers and caches of third parties may use in place of ``Serializer``."""

    def dumps_typed(self, obj: Any) -> Typed:
        """Return the stored form of a value."""
        ...

    def loads_typed(self, data: Typed) -> Any:
        """Return the value of a stored form."""
        ...


ENCRYPTED: Final = "+aes"
"""How the type of an encrypted value ends."""

_NULL: Final = "null"
_BYTES: Final = "bytes"
_MSGPACK: Final = "msgpack"
_LONGEST_TELLING: Final = 200
_CHECKSUM: Final = struct.Struct("<I")
_SEED_BYTES: Final = zlib.crc32(_BYTES.encode())
_SEED_MSGPACK: Final = zlib.crc32(_MSGPACK.encode())
_WRITES: Final = containers.WRITES | values.WRITES | times.WRITES
_STABLE_WRITES: Final = {**_WRITES, **containers.SORTED_WRITES}
_READS: Final = containers.READS | values.READS | times.READS | catalog.READS


def place(*parts: str) -> bytes:
    """Encode where a value is stored, so that no two places look alike, whatever the parts contain."""
    return b"".join(len(part).to_bytes(4, "little") + part for part in map(values.text_bytes, parts))


class Serializer:
    """Turns values into bytes that carry a checksum, and rebuilds only what is registered.

    ``strict`` decides what happens to an unregistered class while writing: it is refused, or, unless strict, registered
    in ``registry`` on the spot. Reading never registers and never imports. Values may be nested ``MAX_DEPTH`` levels
    deep, lists and dicts of exact builtins ``PLAIN_DEPTH``. One serializer may be used by several threads.
    """

    encrypts: bool = False
    """Whether ``seal`` hides the data; a saver then binds each value to its place."""

    def __init__(self, *, registry: Registry | None = None, strict: bool = True) -> None:
        """Use a registry of its own, and behind it the shared one of the process."""
        self.registry: Registry = Registry() if registry is None else registry
        self.strict: Final[bool] = strict
        known = catalog.Catalog(self.registry, strict=strict)
        self._writer = Writer(known, _WRITES, thorough=False)
        self._thorough_writer = Writer(known, _WRITES, thorough=True)
        self._stable_writer = Writer(known, _STABLE_WRITES, thorough=True)
        self._reader = Reader(known, _READS)

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be stored and rebuilt."""
        self.registry.register(*types)

    def dumps_typed(self, obj: object) -> Typed:
        """Return the stored form of a value.

        Raises:
            SerializationError: it, or something in it, cannot be stored as it is; names the type and the way to it.
        """
        kind = type(obj)
        if kind is dict or kind is list:
            payload = plain_bytes(obj) or self._walked(obj)
        elif obj is None:
            return _NULL, b""
        elif kind is bytes:
            return _BYTES, _CHECKSUM.pack(zlib.crc32(obj, _SEED_BYTES)) + obj  # type: ignore[arg-type,operator]
        elif kind in SCALARS:
            try:
                payload = encode(obj)
            except (UnicodeEncodeError, OverflowError):
                payload = self._walked(obj)
        else:
            payload = self._walked(obj)
        return _MSGPACK, _CHECKSUM.pack(zlib.crc32(payload, _SEED_MSGPACK)) + payload

    def loads_typed(self, data: Typed) -> object:
        """Return the value of a stored form.

        Raises:
            CorruptDataError: the data is damaged.
            UnknownTypeError: it holds a class that is not registered, or something that a newer version wrote.
            DecryptionError: it is still sealed.
        """
        kind, raw = data
        if kind == _MSGPACK:
            payload = memoryview(raw)[4:]
            if raw[:4] != _CHECKSUM.pack(zlib.crc32(payload, _SEED_MSGPACK)):
                raise _damaged(raw)
            return self._read(payload)
        if kind == _NULL and not raw:
            return None
        if kind == _BYTES:
            held = bytes(memoryview(raw)[4:])
            if raw[:4] != _CHECKSUM.pack(zlib.crc32(held, _SEED_BYTES)):
                raise _damaged(raw)
            return held
        raise _unreadable(kind, raw)

    def stable_form(self, value: object) -> bytes:
        """Return bytes to tell values by: the same in every process for the same value, sets in a fixed order.

        Raises:
            SerializationError: it, or something in it, cannot be stored as it is; names the type and the way to it.
        """
        plain = plain_bytes(value) if type(value) is dict or type(value) is list else None
        return plain or self._walked(value, stable=True)

    def seal(self, typed: Typed, place: bytes) -> Typed:  # noqa: ARG002 - the encrypting serializer needs it
        """Return what to store at a place; here, the value as it is."""
        return typed

    def open(self, typed: Typed, place: bytes) -> Typed:  # noqa: ARG002
        """Return what was sealed at a place; here, the value as it is.

        Raises:
            DecryptionError: it was sealed by a serializer that encrypts.
        """
        if typed[0].endswith(ENCRYPTED):
            raise _unreadable(*typed)
        return typed

    def _walked(self, value: object, *, stable: bool = False) -> bytes:
        try:
            if stable:
                return encode(self._stable_writer.convert(value, 0))
            try:
                return encode(self._writer.convert(value, 0))
            except (UnicodeEncodeError, OverflowError):
                return encode(self._thorough_writer.convert(value, 0))
        except Refusal as refusal:
            msg = f"Cannot store {refusal.where()}: {refusal.reason}."
        except RecursionError:
            msg = f"Cannot store a {type(value).__qualname__}: it is nested too deeply for the stack that is left here."
        except Exception as error:
            msg = f"Cannot store a {type(value).__qualname__}: {type(error).__name__}: {error}."
            raise SerializationError(msg) from error
        raise SerializationError(msg)

    def _read(self, payload: memoryview) -> object:
        try:
            return self._reader.value(payload)
        except StoredDataError:
            raise
        except RecursionError:
            msg = f"A stored value is nested too deeply to be read here; at most {PLAIN_DEPTH} levels are ever written."
            raise CorruptDataError(msg) from None
        except msgspec.MsgspecError as error:
            msg = f"A stored value does not parse: {error}."
            raise CorruptDataError(msg) from error
        except Exception as error:
            msg = f"A stored value cannot be rebuilt: {_told(error)}."
            raise CorruptDataError(msg) from error


def _told(error: Exception) -> str:
    """Return an error in words, leaving out what was stored and became part of it: that may have no words."""
    told = str(error)[:_LONGEST_TELLING] if all(type(arg) is str for arg in error.args) else ""
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


def _damaged(data: bytes) -> CorruptDataError:
    return CorruptDataError(
        f"A stored value of {len(data)} bytes does not match its checksum: it was damaged or cut short."
    )


def _unreadable(kind: str, data: bytes) -> StoredDataError:
    if kind.endswith(ENCRYPTED):
        return DecryptionError("A stored value is encrypted; open it with an EncryptedSerializer that has its key.")
    if kind == _NULL:
        return CorruptDataError(f"A stored null comes with {len(data)} bytes of data.")
    return UnknownTypeError(f"A stored value is of the type {kind!r:.80}, which this version does not know.")
