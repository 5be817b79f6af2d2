"""Is a cron schedule one?"""

from __future__ import annotations

import re
from typing import Final

_FIELDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_WORDS: Final = {
    3: {word: number for number, word in enumerate(_MONTHS, 1)},
    4: {word: number for number, word in enumerate(_DAYS)},
}
_MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_DURATION: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+")


def problem(schedule: str) -> str | None:
    """In the server's words."""
    if schedule.startswith("@"):
        if schedule in _MACROS:
            return None
        if schedule.startswith("@every "):
            duration = schedule.removeprefix("@every ")
            if _DURATION.fullmatch(duration):
                return None
            return f'failed to parse duration {schedule}: time: invalid duration "{duration}"'
        return f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    for index, field in enumerate(fields):
        for piece in field.split(","):
            if wrong := _range(piece, index):
                return wrong
    return None


def _range(piece: str, index: int) -> str | None:
    low, high = _FIELDS[index]
    span, slash, step = piece.partition("/")
    if slash and not (step.isascii() and step.isdigit()):
        return _no_number(step)
    if slash and int(step) == 0:
        return f"step of range should be a positive number: {piece}"
    if span in ("*", "?"):
        return None
    bounds = span.split("-")
    if len(bounds) > 2:
        return f"too many hyphens: {piece}"
    words = _WORDS.get(index, {})
    numbers: list[int] = []
    for bound in bounds:
        if bound.lower() not in words and not (bound.isascii() and bound.isdigit()):
            return _no_number(bound)
        numbers.append(words.get(bound.lower(), -1) if bound.lower() in words else int(bound))
    start, end = numbers[0], high if slash and len(numbers) == 1 else numbers[-1]
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {piece}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {piece}"
    return f"beginning of range ({start}) beyond end of range ({end}): {piece}" if start > end else None


def _no_number(text: str) -> str:
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
