"""What do we know of the objects of one resource, without asking?

Three sources tell: the watch (in the order of revisions), lists (everything, at one revision), and the answers to our
own writes, which arrive at any time, often before the watch tells of them and sometimes long after. A revision orders
them all, so the rules are short:

- `revision` is how far the watch or the last list has told us: what happened up to there is known, and what is not held
  then does not exist. So an answer that is not newer is old news, whatever it says; above all it cannot bring back
  what was deleted since.
- Anything newer than what is held replaces it; anything older is ignored, also a deletion (of a predecessor).
- What is known to be gone otherwise (`remove`, or because another has its name) stays gone: its UID is remembered,
  because no revision comes with a NotFound.

Every change is told once, after it was made, to `on_change(key, old, new)`; a key is `namespace/name`, or the name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

from octarbiter.api.meta import Object, ObjectMeta

T = TypeVar("T", bound=Object)
IndexFunction = Callable[[T], Iterable[str]]
OnChange = Callable[[str, T | None, T | None], None]

LONGEST_MEMORY: Final = 10_000
"""UIDs that are remembered as gone; each is forgotten when the watch tells of the deletion."""

log = logging.getLogger(__name__)


class Cache(Generic[T]):
    def __init__(
        self, indexes: Mapping[str, IndexFunction[T]] | None = None, on_change: OnChange[T] | None = None
    ) -> None:
        """An index function says under which keys an object is found in that index."""
        self.revision = 0
        self._held: dict[str, T] = {}
        self._gone: dict[str, None] = {}  # UIDs, the oldest first
        self._functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._functions}
        self._on_change = on_change

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._held.values()))

    def get(self, key: str) -> T | None:
        return self._held.get(key)

    def by_index(self, name: str, key: str) -> Sequence[T]:
        return list(self._indexes[name].get(key, {}).values())

    def put(self, written: T) -> None:
        """The answer to a write of ours. Only what the informer's selector covers: nobody would tell of its end."""
        if revision_of(written.metadata) > self.revision:
            self._accept(written)

    def remove(self, key: str, uid: str) -> None:
        """The server told us, and not the watch, that this object is gone."""
        self._bury(uid)
        held = self._held.get(key)
        if held is not None and held.metadata.uid == uid:
            self._drop(key, held)

    def changed(self, seen: T) -> None:
        """The watch tells that an object was added or modified."""
        self._accept(seen)
        self.reached(revision_of(seen.metadata))

    def deleted(self, last: ObjectMeta) -> None:
        """The watch tells of a deletion, at the revision in `last`."""
        revision = revision_of(last)
        held = self._held.get(last.key)
        if held is not None and revision_of(held.metadata) <= revision:
            self._drop(last.key, held)
        self._gone.pop(last.uid, None)
        self.reached(revision)

    def reached(self, revision: int) -> None:
        """The watch has told everything up to here."""
        self.revision = max(self.revision, revision)

    def replace(self, listed: Iterable[T], revision: int, also_present: Collection[str] = ()) -> None:
        """A list, complete at its revision. `also_present`: keys of items that could not be read."""
        # A server that went back, as after a restored backup: nothing we hold can be compared with what it says now.
        rewound = revision < self.revision
        if rewound:
            self._gone.clear()
        present = set(also_present)
        for item in listed:
            if item.metadata.uid not in self._gone:  # one that is gone must not keep its predecessor in place
                present.add(item.metadata.key)
                self._accept(item, even_if_older=rewound)
        absent = [
            (key, held)
            for key, held in self._held.items()
            if key not in present and (rewound or revision_of(held.metadata) <= revision)
        ]
        for key, held in absent:
            self._drop(key, held)
        self.revision = revision

    def _accept(self, new: T, even_if_older: bool = False) -> None:
        key = new.metadata.key
        held = self._held.get(key)
        if new.metadata.uid in self._gone:
            return
        if held is not None:
            if revision_of(held.metadata) >= revision_of(new.metadata) and not (even_if_older and held != new):
                return
            if held.metadata.uid != new.metadata.uid:  # created again under the same name: an end and a beginning
                self._bury(held.metadata.uid)
                self._drop(key, held)
                held = None
        self._index(key, held, new)
        self._held[key] = new
        self._tell(key, held, new)

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > LONGEST_MEMORY:
            del self._gone[next(iter(self._gone))]

    def _drop(self, key: str, held: T) -> None:
        self._index(key, held, None)
        del self._held[key]
        self._tell(key, held, None)

    def _index(self, key: str, old: T | None, new: T | None) -> None:
        for name, function in self._functions.items():
            index = self._indexes[name]
            after = () if new is None else tuple(function(new))
            for place in () if old is None else function(old):
                if place not in after and place in index:
                    index[place].pop(key, None)
                    if not index[place]:
                        del index[place]
            if new is not None:
                for place in after:
                    index.setdefault(place, {})[key] = new

    def _tell(self, key: str, old: T | None, new: T | None) -> None:
        if self._on_change is None:
            return
        try:
            self._on_change(key, old, new)
        except Exception:
            log.exception("a handler failed; the change itself is kept", extra={"key": key})


def revision_of(metadata: ObjectMeta) -> int:
    """Revisions are decimal numbers of one counter, greater is later; the API guarantees it."""
    return int(metadata.resource_version or 0)
