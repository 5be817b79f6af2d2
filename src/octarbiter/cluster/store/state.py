"""Which keys exist now, in order?

A dictionary and a sorted list of keys per resource. Adding a key moves the rest of the list, which for a hundred
thousand keys is still cheaper than any cleverer structure in Python would be.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from octarbiter.cluster.store import entries
from octarbiter.cluster.store.entries import Change, Entry

Entries = list[Entry]


class Shelf:
    """The keys of one resource."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.ordered: list[str] = []


class State:
    def __init__(self, existing: Iterable[Entry]) -> None:
        self._shelves: dict[str, Shelf] = {}
        for entry in existing:
            self._shelf(entry.key).entries[entry.key] = entry
        for shelf in self._shelves.values():
            shelf.ordered = sorted(shelf.entries)

    def get(self, key: str) -> Entry | None:
        shelf = self._shelves.get(entries.resource_of(key))
        return shelf.entries.get(key) if shelf else None

    def list(self, prefix: str) -> Entries:
        resource = entries.resource_of(prefix)
        if resource:
            shelf = self._shelves.get(resource)
            return _from(shelf, prefix) if shelf else []
        # Resources end with a slash, so none begins with another, and their order is the order of their keys.
        matching = sorted(name for name in self._shelves if name.startswith(prefix))
        return [entry for name in matching for entry in _from(self._shelves[name], prefix)]

    def apply(self, change: Change) -> None:
        shelf = self._shelf(change.key)
        entry = entries.after(change)
        if entry is None:
            del shelf.entries[change.key]
            del shelf.ordered[bisect_left(shelf.ordered, change.key)]
            return
        if change.key not in shelf.entries:
            insort(shelf.ordered, change.key)
        shelf.entries[change.key] = entry

    def _shelf(self, key: str) -> Shelf:
        resource = entries.resource_of(key)
        shelf = self._shelves.get(resource)
        if shelf is None:
            shelf = self._shelves[resource] = Shelf()
        return shelf


def _from(shelf: Shelf, prefix: str) -> Entries:
    first, end = bisect_left(shelf.ordered, prefix), bisect_left(shelf.ordered, prefix + entries.LAST)
    return [shelf.entries[key] for key in shelf.ordered[first:end]]
