"""How deep may values be nested, and how long may their keys be?

Real servers allow 10,000 levels, which nobody writes; definitions of custom resources, the deepest things there are,
have about forty. With this limit plain recursion, at several frames a level, is safe in whatever walks over
objects. Names of fields, labels and files have at most a few hundred characters; as longer keys are refused, the path
of a value is short, and it does not matter that many things are told with their paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

DEEPEST = 128
SENTENCE = f"exceeded max depth: nested deeper than {DEEPEST} levels"
LONGEST_KEY = 1024
LONG_KEY = f"a key is longer than {LONGEST_KEY} characters"


def has_long_key(keys: Iterable[str]) -> bool:
    return max(map(len, keys), default=0) > LONGEST_KEY


def is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
