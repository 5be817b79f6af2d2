"""Which JSON value does a YAML text say?

YAML 1.1 as kubectl and the server read it: `on` and `y` are truth values, `010` is eight. Read from the parser's
events, because the usual composer recurses without a limit and takes the process with it; aliases are copied and
counted, because one line can stand for a million.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from octarbiter.cluster.apiserver.decoding import json_text
from octarbiter.cluster.apiserver.decoding.errors import Unreadable
from octarbiter.cluster.apiserver.schemas import nesting

_MOST_VALUES = 1_000_000
"""Of a document with its aliases multiplied out."""
_CHARACTERS = 16
"""Of a text count as one value more: a long word, too, can be repeated many times in few bytes."""
_MOST_DIGITS = 100

_TRUE = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?")
_STRINGS = ("!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:binary")


def read(body: bytes) -> tuple[Any, list[str]]:
    """The value, and the paths of keys that stand twice; of several documents the first, as the server does."""
    try:
        builder = _Builder(yaml.parse(body.decode("utf-8", "replace"), Loader=yaml.CSafeLoader))
        return builder.document(), builder.repeated
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        said = getattr(problem, "problem", None) or str(problem).split("\n")[0]
        # Where a token is wrong, lines are counted from one; where a token is in the wrong place, from none.
        line = 0 if mark is None else mark.line + (not isinstance(problem, yaml.parser.ParserError))
        raise Unreadable(f"yaml: line {line}: {said}" if line else f"yaml: {said}") from None


class _Builder:
    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self.repeated: list[str] = []
        self._events = events
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = 0

    def document(self) -> Any:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                return self._value(next(self._events), "", 0)
        return None

    def _value(self, event: yaml.Event, path: str, depth: int) -> Any:
        if depth > nesting.DEEPEST:
            raise Unreadable(nesting.SENTENCE)
        before = self._values
        self._count(1)
        assert isinstance(event, yaml.NodeEvent)
        if isinstance(event, yaml.AliasEvent):
            return self._copy(event.anchor or "")
        if isinstance(event, yaml.ScalarEvent):
            self._count(len(event.value) // _CHARACTERS)
            found: Any = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            found = self._sequence(path, depth)
        else:
            found = self._mapping(path, depth)
        if event.anchor:
            self._anchors[event.anchor] = (found, self._values - before)
        return found

    def _sequence(self, path: str, depth: int) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, f"{path}[{len(found)}]", depth + 1))
        return found

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
                raise Unreadable("yaml: invalid map key: a key must be a plain value")
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style:
                value = self._value(next(self._events), path, depth + 1)
                for source in value if isinstance(value, list) else [value]:
                    merged = source | merged if isinstance(source, dict) else merged
                continue
            name = _key(self._value(event, path, depth + 1))
            where = f"{path}.{name}" if path else name
            value = self._value(next(self._events), where, depth + 1)
            if name in found:
                self.repeated.append(where)
            found[name] = value
        return merged | found

    def _copy(self, anchor: str) -> Any:
        if anchor not in self._anchors:
            raise Unreadable(f"yaml: unknown anchor '{anchor}' referenced")
        value, size = self._anchors[anchor]
        self._count(size)
        return copy.deepcopy(value)

    def _count(self, more: int) -> None:
        self._values += more
        if self._values > _MOST_VALUES:
            raise Unreadable("yaml: document contains excessive aliasing")


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.style or event.tag in _STRINGS:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text) and len(text) <= _MOST_DIGITS:
        plain = text.replace("_", "")
        return int(plain, 8) if re.fullmatch(r"[-+]?0[0-7]+", plain) else int(plain, 0)
    if _FLOAT.fullmatch(text):
        number = float(text.replace("_", ""))
        if math.isinf(number):
            raise Unreadable(f"yaml: {text[:40]} is too large a number")
        return json_text.whole(number)
    return text


def _key(value: Any) -> str:
    """Keys of JSON are strings; a key such as `8080` or `on` is written as JSON would write it."""
    if isinstance(value, dict | list):
        raise Unreadable("yaml: invalid map key: a key must be a plain value")
    name = value if isinstance(value, str) else json.dumps(value)
    if nesting.has_long_key([name]):
        raise Unreadable(nesting.LONG_KEY)
    return name
