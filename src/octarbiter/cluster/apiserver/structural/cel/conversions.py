"""From one kind of value to another, and what times consist of."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from octarbiter.cluster.apiserver.structural import formats, wording
from octarbiter.cluster.apiserver.structural.cel import values
from octarbiter.cluster.apiserver.structural.cel.functions import define
from octarbiter.cluster.apiserver.structural.cel.operators import natural, whole
from octarbiter.cluster.apiserver.structural.cel.values import CelError, Duration, Timestamp, TypeValue, Uint


@define("dyn(A) dyn")
def _dyn(value: Any) -> Any:
    return value


@define("type(A) type")
def _type(value: Any) -> TypeValue:
    return TypeValue(values.kind_of(value))


@define("int(int) int", "int(uint) int")
def _int(value: int) -> int:
    return whole(int(value))


@define("int(double) int")
def _int_of_double(value: float) -> int:
    if not math.isfinite(value):
        raise CelError("integer overflow")
    return whole(int(value))


@define("int(string) int")
def _int_of_string(text: str) -> int:
    if not re.fullmatch(r"[-+]?\d+", text, re.ASCII) or len(text) > 20:
        raise CelError("type conversion error from 'string' to 'int'")
    return whole(int(text))


@define("int(timestamp) int")
def _int_of_timestamp(value: Timestamp) -> int:
    return value.nanos // 10**9


@define("uint(int) uint", "uint(uint) uint", "uint(double) uint")
def _uint(value: float) -> Uint:
    if not math.isfinite(value):
        raise CelError("unsigned integer overflow")
    return natural(int(value))


@define("uint(string) uint")
def _uint_of_string(text: str) -> Uint:
    if not re.fullmatch(r"\d+", text, re.ASCII) or len(text) > 20:
        raise CelError("type conversion error from 'string' to 'uint'")
    return natural(int(text))


@define("double(int) double", "double(uint) double", "double(double) double")
def _double(value: float) -> float:
    return float(value)


@define("double(string) double")
def _double_of_string(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CelError("type conversion error from 'string' to 'double'") from None


@define("bool(bool) bool")
def _bool(value: bool) -> bool:
    return value


@define("bool(string) bool")
def _bool_of_string(text: str) -> bool:
    if text not in ("true", "false", "True", "False", "TRUE", "FALSE", "t", "f", "T", "F", "1", "0"):
        raise CelError("type conversion error from 'string' to 'bool'")
    return text in ("true", "True", "TRUE", "t", "T", "1")


_WRITTEN = ("string", "int", "uint", "double", "bool", "bytes", "duration", "timestamp")


@define(*(f"string({kind}) string" for kind in _WRITTEN))
def string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return wording.number(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Duration):
        seconds, rest = divmod(abs(value.nanos), 10**9)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if value.nanos < 0 else ''}{seconds}{fraction}s"
    return _rfc3339(value)


def _rfc3339(value: Timestamp) -> str:
    rest = value.nanos % 10**9
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{_moment(value).replace(microsecond=0):%Y-%m-%dT%H:%M:%S}{fraction}Z"


@define("bytes(string) bytes")
def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@define("bytes(bytes) bytes")
def _bytes_again(value: bytes) -> bytes:
    return value


@define("duration(string) duration")
def _duration(text: str) -> Duration:
    nanos = formats.go_duration_nanos(text)
    if nanos is None:
        raise CelError(f'time: invalid duration "{text}"')
    return Duration(whole(nanos))


@define("duration(duration) duration")
def _duration_again(value: Duration) -> Duration:
    return value


@define("timestamp(string) timestamp")
def _timestamp(text: str) -> Timestamp:
    found = values.parse_timestamp(text) if re.match(r"\d{4}-\d\d-\d\d[Tt]", text) else None
    if found is None:
        raise CelError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    return found


@define("timestamp(timestamp) timestamp")
def _timestamp_again(value: Timestamp) -> Timestamp:
    return value


@define("timestamp(int) timestamp")
def _timestamp_of_int(seconds: int) -> Timestamp:
    return Timestamp(whole(seconds * 10**9))


def _moment(value: Timestamp, zone: str = "UTC") -> datetime:
    try:
        return value.moment.astimezone(_zone(zone))
    except OverflowError:
        raise CelError("timestamp overflow") from None


def _zone(name: str) -> Any:
    if match := re.fullmatch(r"([+-]?)(\d{2}):(\d{2})", name, re.ASCII):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


_PARTS = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}


def _define_parts() -> None:
    for name, part in _PARTS.items():

        @define(f"timestamp.{name}() int", f"timestamp.{name}(string) int")
        def run(value: Timestamp, zone: str = "UTC", part: Any = part) -> Any:
            return part(_moment(value, zone))

    units = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9}
    for name, unit in units.items():

        @define(f"duration.{name}() int")
        def run_duration(value: Duration, unit: int = unit) -> int:
            return int(value.nanos / unit) if value.nanos < 0 else value.nanos // unit

    @define("duration.getMilliseconds() int")
    def milliseconds(value: Duration) -> int:
        return value.nanos // 10**6 % 1000


_define_parts()
