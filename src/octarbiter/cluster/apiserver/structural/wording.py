"""How does the server word a problem?

Clients compare causes (`reason`, `field`, `message`), and people paste messages into search engines, so values are
shown exactly as Go shows them: strings quoted, floats in their shortest form, anything else as compact JSON.
"""

from __future__ import annotations

import difflib
import json
import math
from decimal import Decimal
from typing import Any, Final

from octarbiter.cluster.apiserver.validation.problems import Problem

ROOT: Final = "<nil>"
"""The path of the whole object."""


class _Omitted:
    pass


OMITTED: Final = _Omitted()
"""Instead of a value that is too large to be shown."""


class Verbatim(str):
    """A value that is shown as it is written here: the server shows some of its own structures, not the user's."""

    __slots__ = ()


def required(path: str, detail: str = "") -> Problem:
    return Problem("FieldValueRequired", path or ROOT, _with_detail("Required value", detail))


def forbidden(path: str, detail: str) -> Problem:
    return Problem("FieldValueForbidden", path or ROOT, _with_detail("Forbidden", detail))


def invalid(path: str, value: Any, detail: str) -> Problem:
    return Problem("FieldValueInvalid", path or ROOT, _with_value("Invalid value", value, detail))


def type_invalid(path: str, value: Any, detail: str) -> Problem:
    return Problem("FieldValueTypeInvalid", path or ROOT, _with_value("Invalid value", value, detail))


def duplicate(path: str, value: Any) -> Problem:
    return Problem("FieldValueDuplicate", path or ROOT, _with_value("Duplicate value", value, ""))


def not_supported(path: str, value: Any, supported: list[str]) -> Problem:
    detail = f"supported values: {', '.join(quoted(word) for word in supported)}" if supported else ""
    return Problem("FieldValueNotSupported", path or ROOT, _with_value("Unsupported value", value, detail))


def too_long(path: str, most: int) -> Problem:
    return Problem("FieldValueTooLong", path or ROOT, f"Too long: may not be more than {most} {_units(most, 'byte')}")


def too_many(path: str, actual: int, most: int) -> Problem:
    message = f"Too many: {actual}: must have at most {most} {_units(most, 'item')}"
    return Problem("FieldValueTooMany", path or ROOT, message)


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def key(path: str, name: str) -> str:
    return f"{path}[{name}]"


def quoted(text: str) -> str:
    """As Go's %q."""
    return '"' + "".join(_escape(character) for character in text) + '"'


def number(value: float) -> str:
    """As Go's %v: the shortest digits, an exponent from 1e+06 on and below 1e-04."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    decimal = Decimal(repr(value)).normalize()
    exponent = decimal.adjusted()
    if -4 <= exponent < 6:
        return format(decimal, "f")
    return f"{format(decimal.scaleb(-exponent), 'f')}e{exponent:+03d}"


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int | float):
        return number(value)
    return compact(value)


def compact(value: Any) -> str:
    """As Go writes JSON: sorted keys, no blanks, 1 and not 1.0, nothing that a browser could take for HTML."""
    return escaped(json.dumps(_whole_numbers(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False))


def in_order(value: Any) -> Verbatim:
    """As Go writes what it knows the fields of: in their order."""
    return Verbatim(escaped(json.dumps(value, separators=(",", ":"), ensure_ascii=False)))


def difference(before: Any, after: Any) -> str:
    """What was changed, for people: lines that went and lines that came."""
    old, new = (json.dumps(each, indent=1, sort_keys=True, ensure_ascii=False).splitlines() for each in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    return "".join(f"\n{line}" for line in lines) + "\n"


def escaped(text: str) -> str:
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole_numbers(item) for name, item in value.items()}
    return [_whole_numbers(item) for item in value] if isinstance(value, list) else value


def _with_value(title: str, value: Any, detail: str) -> str:
    return _with_detail(title if value is OMITTED else f"{title}: {shown(value)}", detail)


def _with_detail(title: str, detail: str) -> str:
    return f"{title}: {detail}" if detail else title


def _units(count: int, unit: str) -> str:
    return unit if count == 1 else f"{unit}s"


_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _escape(character: str) -> str:
    if character in ('"', "\\"):
        return "\\" + character
    if character in _ESCAPES:
        return _ESCAPES[character]
    # Python calls the same characters printable as Go, but for blanks.
    if character == " " or character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
