"""How many objects of each resource are in each namespace? Kept by those who watch everything anyway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from octarbiter.cluster.controllers.discovery import Name


class Census:
    def __init__(self) -> None:
        self.is_complete = False
        """Whether everything was counted once; before that, nobody should rely on a number."""
        self.on_change: list[Callable[[str], None]] = []
        """Are told the namespace."""
        self._counts: Counter[tuple[Name, str]] = Counter()

    def count(self, resource: Name, namespace: str) -> int:
        return self._counts[(resource, namespace)]

    def change(self, resource: Name, namespace: str, difference: int) -> None:
        if not difference:
            return
        key = (resource, namespace)
        self._counts[key] += difference
        if not self._counts[key]:
            del self._counts[key]
        for tell in self.on_change:
            tell(namespace)
