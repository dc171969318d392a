"""How the value types of the standard library are stored, times excepted."""

from __future__ import annotations

import ipaddress
import pathlib
import re
import struct
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.msgpack import Ext

from persistence.errors import CorruptDataError
from persistence.serde import tags
from persistence.serde.parts import exactly
from persistence.serde.writing import Refusal, Write, Writer, pack

if TYPE_CHECKING:
    from persistence.serde.reading import Read, Reader

_COMPLEX: Final = struct.Struct("<dd")
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 64) - 1
_PATTERN_FLAGS: Final = int(re.ASCII | re.IGNORECASE | re.LOCALE | re.MULTILINE | re.DOTALL | re.UNICODE | re.VERBOSE)
_PATHS: Final[tuple[type[pathlib.PurePath], ...]] = (
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
    pathlib.PosixPath,
    pathlib.WindowsPath,
)
_IPS: Final[tuple[type, ...]] = (
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
)
_UUID_SAFETY: Final = (uuid.SafeUUID.safe, uuid.SafeUUID.unsafe)
_UUID_SIZE = 16
_NUMBER: Final = "A number of a stored fraction"


def text_bytes(text: str) -> bytes:
    """Encode any text, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(data: bytes | memoryview) -> str:
    """Decode what ``text_bytes`` made."""
    return str(data, "utf-8", "surrogatepass")


def _write_text(writer: Writer, value: str, depth: int) -> object:  # noqa: ARG001 - only thorough writers come here
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return Ext(tags.TEXT, text_bytes(value))
    return value


def _write_integer(writer: Writer, value: int, depth: int) -> object:  # noqa: ARG001
    if _INT_MIN <= value <= _INT_MAX:
        return value
    return Ext(tags.INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


def _write_complex(writer: Writer, value: complex, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.COMPLEX, _COMPLEX.pack(value.real, value.imag))


def _write_bytearray(writer: Writer, value: bytearray, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.BYTEARRAY, bytes(value))


def _write_ellipsis(writer: Writer, value: object, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.ELLIPSIS, b"")


def _write_unset(writer: Writer, value: object, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.UNSET, b"")


def _write_uuid(writer: Writer, value: uuid.UUID, depth: int) -> Ext:  # noqa: ARG001
    safety = bytes([_UUID_SAFETY.index(value.is_safe)]) if value.is_safe in _UUID_SAFETY else b""
    return Ext(tags.UUID, value.bytes + safety)


def _write_decimal(writer: Writer, value: Decimal, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.DECIMAL, str(value).encode("ascii"))


def _write_fraction(writer: Writer, value: Fraction, depth: int) -> Ext:
    return pack(tags.FRACTION, writer.items((value.numerator, value.denominator), depth))


def _write_path(writer: Writer, value: pathlib.PurePath, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.PATH, bytes([_PATHS.index(type(value))]) + text_bytes(str(value)))


def _write_ip(writer: Writer, value: object, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.IP, bytes([_IPS.index(type(value))]) + text_bytes(str(value)))


def _write_pattern(writer: Writer, value: re.Pattern[Any], depth: int) -> Ext:
    if value.flags & ~_PATTERN_FLAGS:
        msg = "it is a pattern with flags that are not about matching (re.DEBUG)"
        raise Refusal(msg)
    return pack(tags.PATTERN, writer.items((value.pattern, value.flags), depth))


def _read_text(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return bytes_text(data)


def _read_integer(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return int.from_bytes(data, "little", signed=True)


def _read_complex(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return complex(*_COMPLEX.unpack(data))


def _read_bytearray(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return bytearray(data)


def _read_ellipsis(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return ...


def _read_unset(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return msgspec.UNSET


def _read_uuid(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    if len(data) == _UUID_SIZE:
        return uuid.UUID(bytes=bytes(data))
    *_, safety = data
    return uuid.UUID(bytes=bytes(data[:-1]), is_safe=_UUID_SAFETY[safety])


def _read_decimal(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return Decimal(str(data, "ascii"))


def _read_fraction(reader: Reader, data: memoryview) -> object:
    numerator, denominator = reader.array(data)
    return Fraction(exactly(int, numerator, _NUMBER), exactly(int, denominator, _NUMBER))


def _read_path(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return _PATHS[data[0]](bytes_text(data[1:]))


def _read_ip(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return _IPS[data[0]](bytes_text(data[1:]))


def _read_pattern(reader: Reader, data: memoryview) -> object:
    source, flags = reader.array(data)
    if type(source) is not bytes:
        exactly(str, source, "The source of a stored pattern")
    if exactly(int, flags, "The flags of a stored pattern") & ~_PATTERN_FLAGS:
        msg = "A stored pattern has flags that are never stored."
        raise CorruptDataError(msg)
    return re.compile(source, flags)


WRITES: Final[dict[type, Write]] = {
    str: _write_text,
    int: _write_integer,
    complex: _write_complex,
    bytearray: _write_bytearray,
    type(...): _write_ellipsis,
    msgspec.UnsetType: _write_unset,
    uuid.UUID: _write_uuid,
    Decimal: _write_decimal,
    Fraction: _write_fraction,
    re.Pattern: _write_pattern,
    **dict.fromkeys(_PATHS, _write_path),
    **dict.fromkeys(_IPS, _write_ip),
}
"""How each exact value type is written."""

READS: Final[dict[int, Read]] = {
    tags.TEXT: _read_text,
    tags.INTEGER: _read_integer,
    tags.COMPLEX: _read_complex,
    tags.BYTEARRAY: _read_bytearray,
    tags.ELLIPSIS: _read_ellipsis,
    tags.UNSET: _read_unset,
    tags.UUID: _read_uuid,
    tags.DECIMAL: _read_decimal,
    tags.FRACTION: _read_fraction,
    tags.PATH: _read_path,
    tags.IP: _read_ip,
    tags.PATTERN: _read_pattern,
}
"""How each value code is read."""
