"""How dates, times and zones are stored."""

from __future__ import annotations

import zoneinfo
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.msgpack import Ext

from persistence.errors import CorruptDataError
from persistence.serde import tags
from persistence.serde.writing import Refusal, Write, Writer, pack

if TYPE_CHECKING:
    from persistence.serde.reading import Read, Reader

_LONGEST_KEY: Final = 255
"""Characters; longer ones are no file names, and would only fill the memory of names looked for."""
_MICROSECOND: Final = timedelta(microseconds=1)

Zone = int | str | list[Any] | None
"""A zone as stored; see tags."""


def _zone_tree(zone: tzinfo | None) -> Zone:
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]  # what pickle and copy use
        micros: int = offset // _MICROSECOND
        return [micros, *name] if name else micros
    if type(zone) is zoneinfo.ZoneInfo:
        return _zone_key(zone)
    msg = f"its tzinfo is a {type(zone).__module__}.{type(zone).__qualname__}; use datetime.timezone or zoneinfo"
    raise Refusal(msg)


def _zone_key(zone: zoneinfo.ZoneInfo) -> str:
    if zone.key is None or not _is_known(zone.key):  # None: made by ZoneInfo.from_file
        msg = f"its time zone {zone!r} is not one of this machine's zoneinfo database and cannot be found again"
        raise Refusal(msg)
    return zone.key


def _zone_of(tree: Zone) -> tzinfo | None:
    if tree is None:
        return None
    if type(tree) is int:
        return timezone(tree * _MICROSECOND)
    if type(tree) is list:
        micros, name = tree
        return timezone(micros * _MICROSECOND, name)
    return _zone_named(tree)


def _zone_named(key: object) -> zoneinfo.ZoneInfo:
    # Asking ZoneInfo for a key it does not have makes it import a module named after the key.
    if type(key) is not str or len(key) > _LONGEST_KEY or not _is_known(key):
        msg = f"A stored time names the zone {key!r:.80}, which this machine does not know; install the tzdata package."
        raise CorruptDataError(msg)
    return zoneinfo.ZoneInfo(key)


@lru_cache(maxsize=1024)
def _is_known(key: str) -> bool:
    parts = key.split("/")
    if not all(parts) or "." in parts or ".." in parts or "\0" in key:
        return False
    roots = [root for path in zoneinfo.TZPATH if (root := Path(path)).is_dir()]
    if roots:
        return any(root.joinpath(*parts).is_file() for root in roots)
    return key in zoneinfo.available_timezones()  # no database but that of the tzdata package


def _clock_tree(text: str, value: datetime | time) -> list[object]:
    if value.fold:
        return [text, _zone_tree(value.tzinfo), value.fold]
    if value.tzinfo is not None:
        return [text, _zone_tree(value.tzinfo)]
    return [text]


def _write_datetime(writer: Writer, value: datetime, depth: int) -> Ext:  # noqa: ARG001
    naive = value if value.tzinfo is None else value.replace(tzinfo=None)
    return pack(tags.DATETIME, _clock_tree(naive.isoformat(), value))


def _write_time(writer: Writer, value: time, depth: int) -> Ext:  # noqa: ARG001
    naive = value if value.tzinfo is None else value.replace(tzinfo=None)
    return pack(tags.TIME, _clock_tree(naive.isoformat(), value))


def _write_date(writer: Writer, value: date, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.DATE, value.isoformat().encode("ascii"))


def _write_timedelta(writer: Writer, value: timedelta, depth: int) -> Ext:  # noqa: ARG001
    return pack(tags.TIMEDELTA, [value.days, value.seconds, value.microseconds])


def _write_timezone(writer: Writer, value: timezone, depth: int) -> Ext:  # noqa: ARG001
    return pack(tags.TIMEZONE, _zone_tree(value))


def _write_zone(writer: Writer, value: zoneinfo.ZoneInfo, depth: int) -> Ext:  # noqa: ARG001
    return Ext(tags.ZONE, _zone_key(value).encode())


def _read_clock(items: list[Any], kind: type[datetime | time]) -> object:
    text, *rest = items
    value = kind.fromisoformat(text)
    if not rest:
        return value
    zone, *fold = rest
    return value.replace(tzinfo=_zone_of(zone), fold=fold[0] if fold else 0)


def _read_datetime(reader: Reader, data: memoryview) -> object:
    return _read_clock(reader.array(data), datetime)


def _read_time(reader: Reader, data: memoryview) -> object:
    return _read_clock(reader.array(data), time)


def _read_date(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return date.fromisoformat(str(data, "ascii"))


def _read_timedelta(reader: Reader, data: memoryview) -> object:
    days, seconds, microseconds = reader.array(data)
    return timedelta(days, seconds, microseconds)


def _read_timezone(reader: Reader, data: memoryview) -> object:
    tree: Any = reader.value(data)
    return _zone_of(tree)


def _read_zone(reader: Reader, data: memoryview) -> object:  # noqa: ARG001
    return _zone_named(str(data, "utf-8"))


WRITES: Final[dict[type, Write]] = {
    datetime: _write_datetime,
    time: _write_time,
    date: _write_date,
    timedelta: _write_timedelta,
    timezone: _write_timezone,
    zoneinfo.ZoneInfo: _write_zone,
}
"""How each exact type is written."""

READS: Final[dict[int, Read]] = {
    tags.DATETIME: _read_datetime,
    tags.TIME: _read_time,
    tags.DATE: _read_date,
    tags.TIMEDELTA: _read_timedelta,
    tags.TIMEZONE: _read_timezone,
    tags.ZONE: _read_zone,
}
"""How each code is read."""
