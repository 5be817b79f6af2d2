"""Functions on strings that Kubernetes adds: searching, cutting, joining, formatting."""

from __future__ import annotations

import math
import re
from typing import Any

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.structural.cel import conversions, operators, values
from octarbiter.cluster.apiserver.structural.cel.functions import define
from octarbiter.cluster.apiserver.structural.cel.values import CelError


@define("string.charAt(int) string")
def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


@define("string.indexOf(string) int", "string.indexOf(string, int) int")
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


@define("string.lastIndexOf(string) int")
def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


@define("string.lastIndexOf(string, int) int")
def _last_index_before(text: str, part: str, last: int) -> int:
    if not 0 <= last <= len(text):
        raise CelError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part))


@define("list<string>.join() string", "list<string>.join(string) string")
def _join(items: Any, separator: str = "") -> str:
    found = list(items)
    if not all(isinstance(item, str) for item in found):
        raise CelError("no such overload")
    return separator.join(found)


@define("string.lowerAscii() string")
def _lower(text: str) -> str:
    return "".join(character.lower() if character.isascii() else character for character in text)


@define("string.upperAscii() string")
def _upper(text: str) -> str:
    return "".join(character.upper() if character.isascii() else character for character in text)


@define("string.replace(string, string) string", "string.replace(string, string, int) string")
def _replace(text: str, old: str, new: str, times: int = -1) -> str:
    return text.replace(old, new, times if times >= 0 else -1)


@define("string.split(string) list<string>", "string.split(string, int) list<string>")
def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


@define("string.substring(int) string", "string.substring(int, int) string")
def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


@define("string.trim() string")
def _trim(text: str) -> str:
    return text.strip()


@define("quote(string) string", namespace="strings")
def _quote(text: str) -> str:
    return wording.quoted(text)


CLAUSE = re.compile(r"%(?:\.(\d+))?(.)|%$", re.DOTALL)


@define("string.format(list<dyn>) string")
def _format(text: str, arguments: Any) -> str:
    given = list(arguments)
    taken = 0

    def clause(match: re.Match[str]) -> str:
        nonlocal taken
        letter = match[2]
        if letter is None:
            raise CelError("unexpected end of string")
        if letter == "%":
            return "%"
        if taken >= len(given):
            raise CelError(f"index {taken} out of range")
        taken += 1
        return _clause(letter, given[taken - 1], min(int(match[1] or 6), 100))

    return CLAUSE.sub(clause, text)


CLAUSE_KINDS: dict[str, tuple[str, ...]] = {
    "s": (
        *("string", "bool", "int", "uint", "double", "bytes", "list", "map", "object", "type"),
        *("duration", "timestamp", "null"),
    ),
    "d": ("int", "uint"),
    "f": ("double",),
    "e": ("double",),
    "b": ("int", "uint", "bool"),
    "o": ("int", "uint"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
}
_CLAUSE_WORDS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "o": "octal clause can only be used on integers",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
}


def clause_refusal(letter: str, kind: str) -> str:
    return f"{_CLAUSE_WORDS[letter]}, was given {kind}"


def _clause(letter: str, value: Any, digits: int) -> str:
    if letter not in CLAUSE_KINDS:
        raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    kind = values.kind_of(value)
    if kind not in CLAUSE_KINDS[letter]:
        raise CelError(f"error during formatting: {clause_refusal(letter, kind)}")
    if letter == "s":
        return _plain(value)
    if letter == "d":
        return str(value)
    if letter == "f":
        return f"{value:.{digits}f}"
    return _scientific(value, digits) if letter == "e" else _coded(letter, value, kind)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _scientific(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_RAISED)}"


def _coded(letter: str, value: Any, kind: str) -> str:
    if kind == "bool":
        return "1" if value else "0"
    if kind in ("int", "uint"):
        return format(int(value), letter)
    written: str = (value.encode() if kind == "string" else value).hex()
    return written.upper() if letter == "X" else written


def _plain(value: Any) -> str:
    kind = values.kind_of(value)
    if kind == "null":
        return "null"
    if kind == "list":
        return f"[{', '.join(_inner(item) for item in value)}]"
    if kind == "map":
        return "{" + ", ".join(sorted(f"{_inner(key)}:{_inner(values.find(value, key)[1])}" for key in value)) + "}"
    if kind in ("string", "bool", "int", "uint", "double", "bytes", "duration", "timestamp"):
        return conversions.string(value)
    if kind == "type":
        return str(value.name)
    raise CelError(f"error during formatting: {clause_refusal('s', kind)}")


def _inner(value: Any) -> str:
    """Within lists and maps strings are quoted and doubles have six digits."""
    kind = values.kind_of(value)
    if kind == "string":
        return wording.quoted(value)
    if kind == "bytes":
        return f"b{wording.quoted(conversions.string(value))}"
    if kind == "double":
        return f"{value:.6f}" if math.isfinite(value) else wording.quoted(wording.number(value))
    return _plain(value)


@define("string.find(string) string")
def _find(text: str, pattern: str) -> str:
    match = operators.regex(pattern).search(text)
    return match[0] if match else ""


@define("string.findAll(string) list<string>", "string.findAll(string, int) list<string>")
def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in operators.regex(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]
