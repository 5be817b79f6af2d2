"""Two kinds of "absent", as Go has them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def absent(obj: Json, name: str, value: Any) -> None:
    """For fields in which zero says something: only what is not there is filled."""
    if obj.get(name) is None:
        obj[name] = value


def empty(obj: Json, name: str, value: Any) -> None:
    """For fields in which zero says nothing: it is filled, too."""
    if not obj.get(name):
        obj[name] = value


def part(obj: Json, name: str) -> Json:
    """The object below `name`, made if it is not there."""
    found = obj.get(name)
    if not isinstance(found, dict):
        found = obj[name] = {}
    return found


def items(obj: Json | None, *path: str) -> list[Json]:
    """The objects of the list at `path`; none if there is no list."""
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
