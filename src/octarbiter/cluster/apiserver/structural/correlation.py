"""Which old value does a new value come from?

Rules about changes compare the two, and what did not change is not held against an update: a schema may become
stricter without freezing the objects that exist. Fields are told apart by name, items of keyed lists by their keys;
items of other lists have no past.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from octarbiter.cluster.apiserver.types import ListType, Type

_ABSENT = object()


class Pair:
    """A new value and the old one it comes from. Comparisons are remembered: every level asks its children again."""

    __slots__ = ("_children", "_equal", "_old_items", "new", "old", "type")

    def __init__(self, new: Any, old: Any, type: Type) -> None:
        self.new = new
        self.old = old
        self.type = type
        self._equal: bool | None = None
        self._children: dict[str | int, Pair] = {}
        self._old_items: dict[Hashable, Any] | None = None

    def key(self, name: str) -> Pair | None:
        if name in self._children:
            return self._children[name]
        below = self.type.field(name)
        if below is None or not isinstance(self.new, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.new or name not in self.old:
            return None
        return self._remember(name, Pair(self.new[name], self.old[name], below))

    def index(self, index: int) -> Pair | None:
        if index in self._children:
            return self._children[index]
        if self.type.element is None or not isinstance(self.new, list) or not isinstance(self.old, list):
            return None
        if self._old_items is None:
            self._old_items = by_key(self.old, self.type)
        before = self._old_items.get(item_key(self.new[index], self.type))
        return None if before is None else self._remember(index, Pair(self.new[index], before, self.type.element))

    def _remember(self, key: str | int, pair: Pair) -> Pair:
        self._children[key] = pair
        return pair

    @property
    def unchanged(self) -> bool:
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict):
            children = [self.key(name) for name in new] if len(new) == len(old) else [None]
            return all(child is not None and child.unchanged for child in children)
        if isinstance(new, list) and isinstance(old, list):
            if self.type.list_type is not ListType.MAP:
                return same(new, old)
            items = [self.index(index) for index in range(len(new))] if len(new) == len(old) else [None]
            return all(child is not None and child.unchanged for child in items)
        return same(new, old)


def by_key(items: Any, type: Type) -> dict[Hashable, Any]:
    """The items of a keyed list; of several with the same key the first."""
    found: dict[Hashable, Any] = {}
    if type.list_type is ListType.MAP and isinstance(items, list):
        for item in items:
            if (key := item_key(item, type)) is not None:
                found.setdefault(key, item)
    return found


def item_key(item: Any, type: Type) -> Hashable | None:
    """None: it has no key, or one that cannot tell anything apart."""
    if not isinstance(item, dict):
        return None
    values = [item.get(name, _ABSENT) for name in type.list_keys]
    if not all(isinstance(value, str | bool | int | float) for value in values):
        return None
    # True == 1 in Python; not in JSON.
    return tuple((value.__class__, value) for value in values)


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values, where 1, 1.0 and true are three things."""
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[name]) for name, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(same(left, right) for left, right in zip(a, b, strict=True))
    return bool(a == b)
