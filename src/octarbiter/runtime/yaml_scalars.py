"""What does kubectl take an unquoted word of YAML for?

Rules of YAML 1.1 as kubectl's parser has them: y and on are true, 010 is eight, 1_000 a thousand, 1e3 a number; but
22:22 and 2024-01-01 are strings. A float without a fraction becomes a whole number, as it does on kubectl's way
through JSON.
"""

from __future__ import annotations

import math
import re
from typing import Any

TAG = "tag:yaml.org,2002:"

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_INT = re.compile(r"([-+]?)(0[bB][01]+|0[oO][0-7]+|0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INT_DIGITS = 70
"""More than 64 bits have in any base; longer ones are floats, and are not converted digit by digit."""
_EXACT = 1e21
"""From here on JSON writes a float with an exponent."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "int": int,
    "float": (int, float),
    "null": type(None),
}


def value_of(text: str, tag: str | None, is_plain: bool) -> Any:
    """Raises ValueError with a sentence."""
    if tag is None:
        return plain(text) if is_plain else text
    if tag in ("!", f"{TAG}str"):
        return text
    name = tag.removeprefix(TAG)
    if name not in _TYPES:
        raise ValueError(f"the tag {shown_tag(tag)} is not supported")
    value = plain(text)
    if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and name != "bool"):
        raise ValueError(f"{text[:60]!r} is no {name}, as its tag says")
    return value


def shown_tag(tag: str | None) -> str:
    """As people write it."""
    return (tag or "").replace(TAG, "!!")


def plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _NO_JSON.fullmatch(text):
        raise ValueError(f"{text} cannot be written in JSON; quote it if it is a word")
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if len(digits) <= _INT_DIGITS and (whole := _INT.fullmatch(digits)) and _fits(value := _int(*whole.groups())):
        return value
    if _FLOAT.fullmatch(digits):
        return _number(float(digits), text)
    return text


def _int(sign: str, digits: str) -> int:
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    value = int(digits, 8) if is_octal else int(digits, 0)
    return -value if sign == "-" else value


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**64


def _number(value: float, text: str) -> int | float:
    if math.isinf(value):
        raise ValueError(f"{text[:60]} is larger than any number JSON readers know; quote it if it is a word")
    return int(value) if value.is_integer() and abs(value) < _EXACT else value
