"""Which value does a JSON text say?

What is read stays what was written: integers are integers, the last of duplicate keys wins and the others are
reported by path. Hostile input (deep nests, huge numbers) is refused with a sentence before it can cost more than a
small multiple of its size. The sentences are Go's.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from octarbiter.cluster.apiserver.decoding.errors import Unreadable
from octarbiter.cluster.apiserver.schemas import nesting

_START = "couldn't get version/kind; json parse error: "
_LARGEST_PLAIN = 1e21
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read(body: bytes, *, is_untyped: bool = False) -> tuple[Any, list[str]]:
    """The value, and the paths of keys that stand twice in one object. `is_untyped`: whole numbers are whole, however
    they were written."""
    text = body.decode("utf-8", "replace")
    repeated = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) != len(pairs)
        if nesting.has_long_key(found):
            raise Unreadable(f"{_START}{nesting.LONG_KEY}")
        return found

    value = _parsed(text, members, _untyped_number if is_untyped else _number)
    if nesting.is_too_deep(value):
        raise Unreadable(f"{_START}{nesting.SENTENCE}")
    if _ESCAPED_SURROGATE.search(text):
        value = _mended(value)
    return value, (_repeated(_parsed(text, _Pairs)) if repeated else [])


def why_not(body: bytes) -> str:
    """Why bytes are no JSON, in Go's words, which knows bytes and no characters; empty if they are."""
    try:
        _parsed(body.decode("latin-1"), dict)
    except Unreadable as problem:
        return str(problem).removeprefix(_START)
    return ""


def _parsed(text: str, members: Any, number: Callable[[str], float] | None = None) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=_no_number, parse_float=number or _number)
    except json.JSONDecodeError as problem:
        raise Unreadable(f"{_START}{_go_words(text, problem)}") from None
    except RecursionError:
        raise Unreadable(f"{_START}{nesting.SENTENCE}") from None
    except ValueError as problem:
        raise Unreadable(f"{_START}{problem}") from None
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"invalid character {_quoted(text.lstrip('-')[:1])} looking for beginning of value")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


def _untyped_number(text: str) -> float:
    return whole(_number(text))


def whole(number: float) -> float:
    """What Go reads without knowing its type and writes again: 2.0 comes back as 2."""
    return int(number) if number.is_integer() and abs(number) < _LARGEST_PLAIN else number


def _go_words(text: str, problem: json.JSONDecodeError) -> str:
    if problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    character = _quoted(text[problem.pos])
    if problem.msg == "Extra data":
        return f"invalid character {character} after top-level value"
    if problem.msg.startswith("Expecting property name"):
        return f"invalid character {character} looking for beginning of object key string"
    if problem.msg == "Expecting ':' delimiter":
        return f"invalid character {character} after object key"
    if problem.msg == "Expecting ',' delimiter":
        return f"invalid character {character} after {_container(text, problem.pos)}"
    if problem.msg.startswith("Invalid control character"):
        return f"invalid character {character} in string literal"
    if problem.msg.startswith("Invalid \\escape"):
        return f"invalid character {_quoted(text[problem.pos + 1])} in string escape code"
    for literal in ("true", "false", "null"):
        if text[problem.pos] == literal[0]:
            return _in_literal(text[problem.pos : problem.pos + len(literal)], literal)
    return f"invalid character {character} looking for beginning of value"


def _in_literal(text: str, literal: str) -> str:
    for found, expected in zip(text, literal, strict=False):
        if found != expected:
            return f"invalid character {_quoted(found)} in literal {literal} (expecting '{expected}')"
    return "unexpected end of JSON input"


def _container(text: str, position: int) -> str:
    """Whether the value that ends before `position` lies in an object or in a list."""
    depth = 0
    for character in reversed(re.sub(r'"(?:[^"\\]|\\.)*"', "", text[:position])):
        depth += {"}": 1, "]": 1, "{": -1, "[": -1}.get(character, 0)
        if depth < 0:
            return "object key:value pair" if character == "{" else "array element"
    return "top-level value"


def _quoted(character: str) -> str:
    if character in ("'", '"'):
        return {"'": r"'\''", '"': "'\"'"}[character]
    # Of a character that is written as several bytes, Go sees the first.
    byte = character.encode("utf-8", "replace")[0] if ord(character) > 0xFF else ord(character)
    shown = repr(chr(byte))
    return shown.replace("\\x", "\\u00") if byte >= 0x80 else shown


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, duplicates included."""


def _repeated(value: Any) -> list[str]:
    found: dict[str, None] = {}
    waiting = [("", value)]
    while waiting:
        path, inner = waiting.pop()
        if isinstance(inner, _Pairs):
            seen: set[str] = set()
            for name, child in reversed(inner):
                waiting.append((f"{path}.{name}" if path else name, child))
            for name, _ in inner:
                if name in seen:
                    found[f"{path}.{name}" if path else name] = None
                seen.add(name)
        elif isinstance(inner, list):
            waiting += [(f"{path}[{index}]", child) for index, child in reversed(list(enumerate(inner)))]
    return list(found)


def _mended(value: Any) -> Any:
    """Halves of surrogate pairs have no form in UTF-8; Go replaces them, too."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("�", value)
    if isinstance(value, dict):
        return {_mended(name): _mended(child) for name, child in value.items()}
    return [_mended(child) for child in value] if isinstance(value, list) else value
