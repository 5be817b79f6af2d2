"""How deep may values be nested?

Real servers allow 10,000 levels, which nobody writes; definitions of custom resources, the deepest things there are,
have about forty. With this limit plain recursion, at several frames a level, is safe in whatever walks over
objects.
"""

from __future__ import annotations

from typing import Any

DEEPEST = 128
SENTENCE = f"exceeded max depth: nested deeper than {DEEPEST} levels"


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
