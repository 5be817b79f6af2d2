"""Which fields does nobody know?

What a schema does not declare is dropped, so that a field that gets a meaning later cannot be there already. What is
marked as kept stays, but below a kept object declared fields are pruned again.
"""

from __future__ import annotations

from typing import Any

from octarbiter.cluster.apiserver.types import Shape, Type

META_FIELDS = ("apiVersion", "kind", "metadata")
OBJECT_META_FIELDS = frozenset(
    (
        *("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid"),
        *("resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
        *("managedFields", "selfLink"),
    )
)


def prune(obj: Any, type: Type) -> list[str]:
    """In place; answers the paths of what was dropped, sorted."""
    dropped: list[str] = []
    _prune(obj, type, "", dropped)
    return sorted(dropped)


def _prune(value: Any, type: Type | None, path: str, dropped: list[str]) -> None:
    if type is not None and type.keeps_unknown:
        _keep(value, type, path, dropped)
    elif isinstance(value, dict):
        for name in list(value):
            here = f"{path}.{name}" if path else name
            if type is not None and type.embedded and name in META_FIELDS:
                _prune_meta(name, value[name], here, dropped)
            elif type is not None and (name in type.properties or type.shape is Shape.MAP):
                _prune(value[name], type.field(name), here, dropped)
            else:
                dropped.append(here)
                del value[name]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, type.element if type is not None else None, f"{path}[{index}]", dropped)


def _keep(value: Any, type: Type | None, path: str, dropped: list[str]) -> None:
    if type is None:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            if type.embedded and name in META_FIELDS:
                _prune_meta(name, item, f"{path}.{name}" if path else name, dropped)
            elif name in type.properties or type.shape is Shape.MAP:
                _prune(item, type.field(name), f"{path}.{name}" if path else name, dropped)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _keep(item, type.element, f"{path}[{index}]", dropped)


def _prune_meta(name: str, value: Any, path: str, dropped: list[str]) -> None:
    """What every object's metadata may hold, no schema can change."""
    if name == "metadata" and isinstance(value, dict):
        for unknown in [field for field in value if field not in OBJECT_META_FIELDS]:
            dropped.append(f"{path}.{unknown}")
            del value[unknown]
