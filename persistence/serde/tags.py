"""The numbers under which stored values say what they are.

MessagePack holds None, booleans, 64-bit integers, floats, text, bytes, lists, and dicts with scalar keys. All else
is an extension: one of the codes below and a payload. The table is closed: an unknown code is an error, and no code
leads to a function or class that the payload chose. **Codes and payloads are the stored form. Never change one; add a
new code and keep reading the old.**

Payloads are written in MessagePack unless they are said to be raw.
"""

from __future__ import annotations

from typing import Final

# Scalars that MessagePack cannot hold.
TEXT: Final = 1
"""str with lone surrogates; raw, UTF-8 with surrogatepass."""
INTEGER: Final = 2
"""int beyond 64 bits; raw, little endian, two's complement."""
COMPLEX: Final = 3
"""complex; raw, two little-endian doubles."""
BYTEARRAY: Final = 4
"""bytearray; raw."""
ELLIPSIS: Final = 5
"""The singleton ``...``; empty."""
UNSET: Final = 6
"""The singleton ``msgspec.UNSET``; empty."""

# Containers.
TUPLE: Final = 10
"""tuple; its items."""
SET: Final = 11
"""set; its elements."""
FROZENSET: Final = 12
"""frozenset; its elements."""
MAPPING: Final = 13
"""dict with a key that MessagePack cannot hold; key, value, key, value ..."""
ORDERED_DICT: Final = 14
"""OrderedDict; key, value, key, value ..."""
DEFAULT_DICT: Final = 15
"""defaultdict; name of its factory or None, then key, value ..."""
COUNTER: Final = 16
"""Counter; key, value, key, value ..."""
DEQUE: Final = 17
"""deque; maxlen or None, then its items."""
RANGE: Final = 18
"""range; start, stop, step."""
SLICE: Final = 19
"""slice; start, stop, step."""

# Time. A zone is None, an offset in microseconds (0 is UTC), [offset, name], or the key of a ZoneInfo.
DATETIME: Final = 20
"""datetime; ISO 8601 without zone, then the zone, then fold, the last two only if needed."""
DATE: Final = 21
"""date; raw, ISO 8601."""
TIME: Final = 22
"""time; as DATETIME."""
TIMEDELTA: Final = 23
"""timedelta; days, seconds, microseconds."""
TIMEZONE: Final = 24
"""timezone; a zone as above."""
ZONE: Final = 25
"""ZoneInfo; raw, its key in UTF-8."""

# Other value types of the standard library.
UUID: Final = 30
"""UUID; raw, 16 bytes, and one more if it knows whether it is safe."""
DECIMAL: Final = 31
"""Decimal; raw, its text."""
FRACTION: Final = 32
"""Fraction; numerator, denominator."""
PATH: Final = 33
"""Path or PurePath; raw, one byte for the class, then the text as in TEXT."""
IP: Final = 34
"""Address, network or interface; raw, one byte for the class, then the text as in TEXT."""
PATTERN: Final = 35
"""re.Pattern; source, flags."""

# Value types of optional packages.
SECRET: Final = 36
"""pydantic's SecretStr or SecretBytes; the secret itself."""
ARRAY: Final = 40
"""numpy array; dtype, shape, order, data."""
ARRAY_SCALAR: Final = 41
"""numpy scalar; dtype, data."""

# Instances of registered classes. The first item is always the stored name.
ENUM: Final = 50
"""Enum member; its name, or None and its value (a combination of flags)."""
DATACLASS: Final = 51
"""Dataclass; fields, then other attributes, then names of unset fields, the last two only if any."""
STRUCT: Final = 52
"""msgspec.Struct; fields, then other attributes if any."""
MODEL: Final = 53
"""pydantic model; fields, names of the fields that were set (True: all), extra, private, others, unset fields."""
NAMED_TUPLE: Final = 54
"""Named tuple; its items."""
EXCEPTION: Final = 55
"""Exception; args, then attributes if any. Traceback, cause and context are not part of the value."""
SUBCLASS: Final = 56
"""Subclass of a builtin; the builtin value, then attributes if any."""
