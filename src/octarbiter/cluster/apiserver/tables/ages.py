"""How long ago was that, in the few characters of a table cell?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

UNKNOWN = "<unknown>"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def human(seconds: float) -> str:
    """Two or three figures that matter, as kubectl users know them: 90s, 3m20s, 5h, 2d4h, 400d, 3y12d."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_name}{rest}{small_name}" if rest else f"{seconds // large}{large_name}"


def since(timestamp: Any, now: datetime) -> str:
    """`timestamp` as JSON has it; absent means nobody knows."""
    then = moment(timestamp)
    return UNKNOWN if then is None else human((now - then).total_seconds())


def moment(timestamp: Any) -> datetime | None:
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return then if then.tzinfo else then.replace(tzinfo=UTC)
