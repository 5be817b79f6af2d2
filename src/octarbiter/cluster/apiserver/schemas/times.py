"""How does a Kubernetes server read and write a time?

As Go does: RFC 3339, written in UTC with whole seconds, or, for leases and events, with exactly six digits after the
point. The messages are Go's, because clients show them.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta, timezone

SECONDS = "2006-01-02T15:04:05Z07:00"
MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"
_PART = re.compile(r"2006|01|02|15|04|05|\.000000|Z07:00|[-T:]")
_CANONICAL = {
    SECONDS: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"),
    MICROSECONDS: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z"),
}
_ZONE = re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})")
_RANGES = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}


class BadTime(ValueError):
    """The message is Go's."""


def canonical(text: str, layout: str) -> str:
    """As the server writes it; `layout` is SECONDS or MICROSECONDS."""
    if _CANONICAL[layout].fullmatch(text):
        with contextlib.suppress(ValueError):
            datetime.fromisoformat(text[:-1])
            return text
    try:
        moment = parse(text, layout).astimezone(UTC)
    except OverflowError:
        raise BadTime(f'parsing time "{text}": year outside of range [0,9999]') from None
    form = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{form}.{moment.microsecond:06d}Z" if layout == MICROSECONDS else f"{form}Z"


def parse(text: str, layout: str) -> datetime:
    rest = text
    found: dict[str, int] = {}
    zone = UTC
    for part in _PART.findall(layout):
        if part == "Z07:00":
            zone, rest = _zone(text, layout, rest)
        elif part.isdigit():
            digits = rest[: len(part)]
            if len(digits) < len(part) or not (digits.isascii() and digits.isdigit()):
                raise _unreadable(text, layout, rest, part)
            found[part], rest = int(digits), rest[len(part) :]
            low, high, name = _RANGES.get(part, (0, 9999, ""))
            if not low <= found[part] <= high:
                raise BadTime(f'parsing time "{text}": {name} out of range')
            if part == "05" and layout == SECONDS:
                rest = re.sub(r"^[.,][0-9]+", "", rest)  # Go reads a fraction that the layout does not name
        elif part == ".000000":
            fraction = re.match(r"\.([0-9]{6})", rest)
            if fraction is None:
                raise _unreadable(text, layout, rest, part)
            found[part], rest = int(fraction[1]), rest[7:]
        elif rest.startswith(part):
            rest = rest[1:]
        else:
            raise _unreadable(text, layout, rest, part)
    if rest:
        raise BadTime(f'parsing time "{text}": extra text: "{rest}"')
    year, month, day, hour, minute, second = (found[part] for part in ("2006", "01", "02", "15", "04", "05"))
    try:
        return datetime(year, month, day, hour, minute, second, found.get(".000000", 0), tzinfo=zone)
    except (ValueError, OverflowError):
        raise BadTime(f'parsing time "{text}": day out of range') from None


def _zone(text: str, layout: str, rest: str) -> tuple[timezone, str]:
    match = _ZONE.match(rest)
    if match is None:
        raise _unreadable(text, layout, rest, "Z07:00")
    if match[0] == "Z":
        return UTC, rest[1:]
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    if int(match[2]) > 23 or int(match[3]) > 59:
        raise BadTime(f'parsing time "{text}": time zone offset hour out of range')
    return timezone(-offset if match[1] == "-" else offset), rest[match.end() :]


def _unreadable(text: str, layout: str, rest: str, part: str) -> BadTime:
    return BadTime(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{part}"')
