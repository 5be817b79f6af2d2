"""How is a patch shown that made something else of the object?

With the real server's eyes. Of a merge or JSON patch it shows what the object became: parts that the patch opened have
their keys sorted, the rest is in the order of its types. Of a strategic patch it shows the patch, as Go prints maps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import wording

_METADATA: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)
_OWNER: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")


def merged(obj: Json, patch: Any) -> str:
    """`patch` is a merge patch."""
    return str(wording.in_order(_opened(obj, patch if isinstance(patch, dict) else {}, "")))


def operated(obj: Json, operations: Iterable[Json]) -> str:
    """`operations` are those of a JSON patch."""
    opened: Json = {}
    for operation in operations:
        branch = opened
        for name in str(operation.get("path") or "").split("/")[1:-1]:
            branch = branch.setdefault(name, {})
    return merged(obj, opened)


def in_go(value: Any) -> str:
    """As `%v` prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{in_go(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(in_go(each) for each in value)}]"
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else wording.shown(value)


def _opened(value: Json, patch: Json, name: str) -> Json:
    return {
        key: _opened(value[key], below, key)
        if isinstance(below := patch.get(key), dict) and isinstance(value[key], dict)
        else _closed(value[key], key)
        for key in sorted(value)
    }


def _closed(value: Any, name: str) -> Any:
    if name == "metadata" and isinstance(value, dict):
        return {key: _closed(each, key) for key, each in _ordered(value, _METADATA)}
    if name == "managedFields" and isinstance(value, list):
        return [dict(_ordered(each, _OWNER)) if isinstance(each, dict) else each for each in value]
    return value


def _ordered(value: Json, order: tuple[str, ...]) -> list[tuple[str, Any]]:
    others = [key for key in value if key not in order]
    return [(key, value[key]) for key in (*order, *others) if key in value]
