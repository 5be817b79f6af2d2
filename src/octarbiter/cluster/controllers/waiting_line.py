"""Which pod is placed next, and which need not be tried at all?

By priority, then first come first served. Pods with equal wishes form a group: where one of them does not fit, none
does, until something changes that could help. So a thousand pods that wait for a full cluster cost one look, not a
thousand.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from octarbiter.cluster.controllers.fitting import Wish

Place = tuple[int, int, str]
"""Negative priority, running number, key of the pod."""


class Group:
    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.refusal = ""
        """Why nobody of them fits for now; empty: they may try."""
        self.told = ""
        """What all of them were told last; empty if there are some who were told nothing."""
        self.size = 0
        self.places: list[Place] = []  # a heap; entries that the line does not confirm have left


class Line:
    def __init__(self) -> None:
        self._groups: dict[bytes, Group] = {}
        self._members: dict[str, tuple[bytes, Place]] = {}
        self._heads: list[tuple[Place, bytes]] = []  # a heap of the groups' first places; some are out of date
        self._blocked: set[bytes] = set()
        self._number = 0

    def __len__(self) -> int:
        return len(self._members)

    def add(self, key: str, wish: Wish, priority: int) -> None:
        """Who changes his wish or priority keeps his number, so also his place among equals."""
        known = self._members.get(key)
        if known is not None:
            signature, place = known
            if signature == wish.signature and place[0] == -priority:
                return
            number = place[1]
            self.remove(key)
        else:
            self._number += 1
            number = self._number
        group = self._groups.setdefault(wish.signature, Group(wish))
        place = (-priority, number, key)
        self._members[key] = (wish.signature, place)
        group.size += 1
        group.told = ""
        heapq.heappush(group.places, place)
        if group.places[0] == place:
            self._offer(group)

    def remove(self, key: str) -> None:
        known = self._members.pop(key, None)
        if known is not None:
            self._tidy(known[0])

    def next(self) -> tuple[str, Wish] | None:
        """The first pod in line whose group is not refused; it stays in line until it is removed."""
        while self._heads:
            place, signature = self._heads[0]
            group = self._groups.get(signature)
            if group is not None and not group.refusal and group.places[0] == place:
                return place[2], group.wish
            heapq.heappop(self._heads)
        return None

    def block(self, wish: Wish, refusal: str) -> list[str]:
        """None of these fits anywhere for now. Returns who does not know it yet."""
        group = self._groups.get(wish.signature)
        if group is None:
            return []
        group.refusal = refusal
        self._blocked.add(wish.signature)
        if group.told == refusal:
            return []
        group.told = refusal
        return [place[2] for place in self._valid(group)]

    def refusal(self, key: str) -> str:
        """Why this pod is not tried for now; empty: it is, or it is not in line."""
        known = self._members.get(key)
        return self._groups[known[0]].refusal if known is not None else ""

    def unblock(self) -> None:
        """Something changed for the better: everybody may try again."""
        for signature in self._blocked:
            group = self._groups[signature]
            group.refusal = ""
            self._offer(group)
        self._blocked.clear()

    def _offer(self, group: Group) -> None:
        if not group.refusal:
            heapq.heappush(self._heads, (group.places[0], group.wish.signature))

    def _valid(self, group: Group) -> Iterator[Place]:
        signature = group.wish.signature
        return (place for place in group.places if self._members.get(place[2]) == (signature, place))

    def _tidy(self, signature: bytes) -> None:
        """After one left: the head of a group is always valid, most of its heap is, and no group is empty."""
        group = self._groups[signature]
        group.size -= 1
        places = group.places
        first = places[0]
        if len(places) > 64 + 2 * group.size:
            places[:] = self._valid(group)
            heapq.heapify(places)
        while places and self._members.get(places[0][2]) != (signature, places[0]):
            heapq.heappop(places)
        if not places:
            del self._groups[signature]
            self._blocked.discard(signature)
        elif places[0] != first:
            self._offer(group)
