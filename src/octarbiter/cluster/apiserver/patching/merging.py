"""What is an object when an applied configuration is laid over it, and what when fields are taken out of it?"""

from __future__ import annotations

from collections import deque
from typing import Any

from octarbiter.cluster.apiserver.patching import field_sets, shapes, values
from octarbiter.cluster.apiserver.patching.field_sets import Fields
from octarbiter.cluster.apiserver.patching.shapes import Form
from octarbiter.cluster.apiserver.types import Type

ABSENT = object()


def merge(live: Any, applied: Any, type: Type) -> Any:
    """Everything of both; where both have a leaf, the applied one. Shares nothing with either."""
    forms = {shapes.form(type, value) for value in (live, applied) if value is not ABSENT and value is not None}
    if Form.MAP in forms and (applied is None or applied is ABSENT or isinstance(applied, dict)):
        old, new = (value if isinstance(value, dict) else {} for value in (live, applied))
        if old or new:
            return {
                name: merge(old.get(name, ABSENT), new.get(name, ABSENT), shapes.below(type, name))
                for name in old | new
            }
    elif Form.LIST in forms:
        ours, theirs = (value if isinstance(value, list) else [] for value in (live, applied))
        if ours or theirs:
            return _merged_lists(ours, theirs, type)
    return values.copied(live if applied is ABSENT else applied)


def _merged_lists(live: list[Any], applied: list[Any], type: Type) -> list[Any]:
    """The applied elements in their order, the others as near as possible to where they were."""
    ours = [shapes.element_of(item, type) for item in live]
    theirs = [shapes.element_of(item, type) for item in applied]
    found: dict[str, Any] = {}
    for element, item in zip(ours, live, strict=True):
        # Which one of several alike would be meant? None: the applied one stands for all of them.
        found[element] = None if element in found else item
    wanted = dict(zip(theirs, applied, strict=True))
    shared = deque(element for element in theirs if element in found)
    result: list[Any] = []
    done: set[str] = set()
    at, to = 0, 0

    def take(element: str) -> None:
        done.add(element)
        result.append(merge(found.get(element, ABSENT), wanted[element], shapes.items(type)))
        if shared and shared[0] == element:
            shared.popleft()

    while at < len(ours) or to < len(theirs):
        if at < len(ours) and to < len(theirs):
            if ours[at] == theirs[to]:
                take(ours[at])
                at, to = at + 1, to + 1
                continue
            if ours[at] in wanted and shared and shared[0] != ours[at]:
                at += 1  # its turn comes where the applied order has it
                continue
        if at < len(ours):
            if ours[at] not in wanted:
                result.append(values.copied(live[at]))
                at += 1
                continue
            if ours[at] in done:
                at += 1
        if to < len(theirs):
            take(theirs[to])
            to += 1
    return result


def remove(value: Any, fields: Fields, type: Type) -> Any:
    """Without the members of `fields`; what becomes empty stays as empty. Shares nothing with `value`.

    (kube-apiserver 1.35 makes it null, and then refuses many a custom object for that; later ones do as we do.)
    """
    match shapes.form(type, value):
        case Form.MAP if isinstance(value, dict):
            return _without_fields(value, fields, type)
        case Form.LIST if isinstance(value, list):
            return _without_items(value, fields, type)
        case _:
            return values.copied(value)


def _without_fields(value: dict[str, Any], fields: Fields, type: Type) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in value.items():
        node = fields.get(field_sets.field(name))
        if node is None:
            result[name] = values.copied(item)
        elif not field_sets.is_member(node):
            result[name] = remove(item, node, shapes.below(type, name))
    return result


def _without_items(value: list[Any], fields: Fields, type: Type) -> list[Any]:
    result: list[Any] = []
    for item in value:
        node = fields.get(shapes.element_of(item, type))
        if node is None:
            result.append(values.copied(item))
        elif not field_sets.is_member(node):
            result.append(remove(item, node, shapes.items(type)))
    return result
