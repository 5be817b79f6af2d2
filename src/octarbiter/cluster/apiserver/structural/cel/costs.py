"""What does a call cost?

About what the server charges: a step costs one, reading a string a tenth of its length, a pattern both lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from octarbiter.cluster.apiserver.structural.cel.values import Fields, Items


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict | Items | Fields) else 1


def _tenth(length: float) -> int:
    return math.ceil(length / 10)


def _traversal(given: list[Any]) -> int:
    return _tenth(_length(given[0]))


def _shorter(given: list[Any]) -> int:
    return _tenth(min(_length(given[0]), _length(given[1])))


def _both(given: list[Any]) -> int:
    if isinstance(given[0], str | bytes):
        return _tenth(_length(given[0]) + _length(given[1]))
    return 1


def _pattern(given: list[Any]) -> int:
    return _tenth(1 + _length(given[0])) * math.ceil(_length(given[1]) / 4)


def _items(given: list[Any]) -> int:
    return _length(given[0])


def _square(given: list[Any]) -> int:
    return _length(given[0]) * _length(given[-1])


COSTS: dict[str, Callable[[list[Any]], int]] = (
    {
        "_==_": _shorter,
        "_!=_": _shorter,
        "_<_": _shorter,
        "_<=_": _shorter,
        "_>_": _shorter,
        "_>=_": _shorter,
        "_+_": _both,
        "@in": lambda given: _length(given[1]) if isinstance(given[1], list | Items) else 1,
        "contains": lambda given: _tenth(_length(given[0])) * _tenth(_length(given[1])),
        "matches": _pattern,
        "find": _pattern,
        "findAll": _pattern,
        "format": lambda given: _traversal(given) + _items(given[1:]),
        "replace": lambda given: 2 * _traversal(given),
        "split": lambda given: 2 * _traversal(given),
        "distinct": _square,
        "sets.contains": _square,
        "sets.equivalent": _square,
        "sets.intersects": _square,
    }
    | dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf", "sort", "reverse", "join"), _items)
    | (
        dict.fromkeys(
            ("startsWith", "endsWith", "lowerAscii", "upperAscii", "substring", "trim", "url", "bytes", "quantity"),
            _traversal,
        )
    )
)
