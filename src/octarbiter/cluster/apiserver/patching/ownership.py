"""Which fields does a value have, and which differ between two?"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from octarbiter.cluster.apiserver.patching import field_sets, shapes, values
from octarbiter.cluster.apiserver.patching.field_sets import Fields
from octarbiter.cluster.apiserver.patching.shapes import Form
from octarbiter.cluster.apiserver.types import Shape, Type

_ABSENT = object()


class Change(NamedTuple):
    """Between two values; no field is in two of the sets."""

    removed: Fields
    modified: Fields
    added: Fields

    def touches_nothing(self) -> bool:
        return not (self.removed or self.modified or self.added)

    def without(self, ignored: Fields) -> Change:
        return Change(*(field_sets.without(fields, ignored) for fields in self)) if ignored else self


def of(value: Any, type: Type) -> Fields:
    """What whoever wrote `value` owns. NoKey if an element of a list cannot be told apart."""
    return field_sets.children_of(_owned(value, type) or {})


def compare(before: Any, after: Any, type: Type) -> Change:
    """What a writer who made `after` of `before` did. NoKey if an element of a list cannot be told apart."""
    removed, modified, added = _compared(before, after, type)
    return Change(*(field_sets.children_of(fields or {}) for fields in (removed, modified, added)))


def naming_parents(fields: Fields, type: Type | None) -> Fields:
    """With the declared fields above each member: who owns `.spec.replicas` has a say in whether there is a `.spec`."""
    result: Fields = {}
    for element, node in fields.items():
        if element == field_sets.SELF:
            continue
        if not node:
            result[element] = node
            continue
        declared = type is not None and element.startswith("f:") and element[2:] in type.properties
        lower = naming_parents(field_sets.children_of(node), shapes.at(type, element) if type is not None else None)
        result[element] = field_sets.node_of(lower, declared or field_sets.is_member(node))
    return result


def fitted(fields: Fields, type: Type | None) -> Fields:
    """Where the type has become atomic since the set was written, the owner of parts owns the whole."""
    result: Fields = {}
    for element, node in fields.items():
        here = shapes.at(type, element) if type is not None else None
        if not node or here is None or element == field_sets.SELF:
            result[element] = node
        elif here.shape is not Shape.ANY and shapes.form(here, None) is Form.LEAF:
            result[element] = field_sets.MEMBER
        else:
            result[element] = fitted(node, here)
    return result


def _owned(value: Any, type: Type) -> Fields | None:
    """A node of the set; None if nothing is owned."""
    match shapes.form(type, value):
        case Form.MAP:
            return field_sets.node_of(_owned_fields(value, type), False) if isinstance(value, dict) else None
        case Form.LIST:
            return field_sets.node_of(_owned_items(value, type), False) if isinstance(value, list) else None
        case Form.LEAF:
            return field_sets.MEMBER


def _owned_fields(value: dict[str, Any], type: Type) -> Fields:
    result: Fields = {}
    for name, item in value.items():
        lower = _owned(item, shapes.below(type, name))
        member = item is None or item == {} or name not in type.properties
        node = _with_self(lower) if member else lower
        if node is not None:
            result[field_sets.field(name)] = node
    return result


def _owned_items(value: list[Any], type: Type) -> Fields:
    result: Fields = {}
    for element, alike in _grouped(value, type).items():
        lower = _owned(alike[0], shapes.items(type)) if len(alike) == 1 else None
        result[element] = _with_self(lower)
    return result


def _with_self(node: Fields | None) -> Fields:
    return node if node is not None and field_sets.SELF in node else {field_sets.SELF: {}, **node} if node else {}


def _grouped(value: Any, type: Type) -> dict[str, list[Any]]:
    """Elements by what tells them apart. A stored list may hold two that are alike: they count as one thing."""
    result: dict[str, list[Any]] = {}
    for item in value if isinstance(value, list) else ():
        result.setdefault(shapes.element_of(item, type), []).append(item)
    return result


_Nodes = tuple[Fields | None, Fields | None, Fields | None]
_SAME: _Nodes = (None, None, None)


def _compared(before: Any, after: Any, type: Type) -> _Nodes:
    """Nodes of what was removed, modified and added."""
    if before is after or (before is not _ABSENT and after is not _ABSENT and _same(before, after)):
        return _SAME
    if not isinstance(before, (dict, list)) and not isinstance(after, (dict, list)):
        return _leaf(before, after)
    forms = {shapes.form(type, value) for value in (before, after) if value is not _ABSENT and value is not None}
    kind = dict if Form.MAP in forms else list if Form.LIST in forms else ()
    old, new = (value if isinstance(value, kind) else None for value in (before, after))
    if not old and not new:
        return _leaf(before, after)
    nodes = (_compared_maps if kind is dict else _compared_lists)(old, new, type)
    if len(forms) > 1:
        return _joined(nodes, _leaf(before, after))
    removed, modified, added = nodes
    if before is _ABSENT:
        added = _with_self(added)
    elif after is _ABSENT:
        removed = _with_self(removed)
    return removed, modified, added


def _same(before: Any, after: Any) -> bool:
    """Whether there is nothing to look for below; decided in C, since most of an object is the same after a write."""
    # Python takes true for 1, the encoding does not.
    return bool(before == after) and _encoded(before) == _encoded(after)


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _leaf(before: Any, after: Any) -> _Nodes:
    if before is _ABSENT:
        return None, None, field_sets.MEMBER
    if after is _ABSENT:
        return field_sets.MEMBER, None, None
    return _SAME if values.equal(before, after) else (None, field_sets.MEMBER, None)


def _joined(nodes: _Nodes, leaf: _Nodes) -> _Nodes:
    removed, modified, added = (
        node if own is None else _with_self(node) for node, own in zip(nodes, leaf, strict=True)
    )
    return removed, modified, added


def _compared_maps(before: Any, after: Any, type: Type) -> _Nodes:
    collected: tuple[Fields, Fields, Fields] = ({}, {}, {})
    old, new = before or {}, after or {}
    for name in old | new:
        nodes = _compared(old.get(name, _ABSENT), new.get(name, _ABSENT), shapes.below(type, name))
        _collect(collected, field_sets.field(name), nodes)
    return _nodes(collected)


def _compared_lists(before: Any, after: Any, type: Type) -> _Nodes:
    collected: tuple[Fields, Fields, Fields] = ({}, {}, {})
    old, new = _grouped(before, type), _grouped(after, type)
    for element in old | new:
        ours, theirs = old.get(element, []), new.get(element, [])
        if len(ours) > 1 and len(theirs) > 1:
            nodes = _SAME if values.equal(ours, theirs) else (None, field_sets.MEMBER, None)
        elif len(ours) > 1:
            arrived = _compared(_ABSENT, theirs[0], shapes.items(type)) if theirs else _SAME
            nodes = _joined(arrived, (field_sets.MEMBER, None, None))
        elif len(theirs) > 1:
            left = _compared(ours[0], _ABSENT, shapes.items(type)) if ours else _SAME
            nodes = _joined(left, (None, None, field_sets.MEMBER))
        else:
            nodes = _compared(ours[0] if ours else _ABSENT, theirs[0] if theirs else _ABSENT, shapes.items(type))
        _collect(collected, element, nodes)
    return _nodes(collected)


def _collect(collected: tuple[Fields, Fields, Fields], element: str, nodes: _Nodes) -> None:
    for fields, node in zip(collected, nodes, strict=True):
        if node is not None:
            fields[element] = node


def _nodes(collected: tuple[Fields, Fields, Fields]) -> _Nodes:
    removed, modified, added = (field_sets.node_of(fields, False) for fields in collected)
    return removed, modified, added
