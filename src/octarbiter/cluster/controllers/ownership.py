"""Who owns whom, and what follows when an owner goes?

`Graph` holds what the watches told of all objects; `decide` says what to do about one of them. An owner that the graph
does not know is asked for live, and only what is certainly absent counts as absent: one owner that lives, or of whom
nothing can be known, protects all it owns.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from octarbiter.api.meta import OwnerReference

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Vertex(Struct, frozen=True):
    """One object."""

    uid: str
    group: str
    plural: str
    kind: str
    namespace: str
    name: str
    version: str
    owners: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    @property
    def is_in_foreground(self) -> bool:
        """It goes when those that block it are gone."""
        return self.deleting and FOREGROUND in self.finalizers

    def is_blocking(self, owner_uid: str) -> bool:
        return any(owner.uid == owner_uid and owner.block_owner_deletion for owner in self.owners)


class Owner(enum.Enum):
    LIVES = enum.auto()
    WAITS = enum.auto()
    """It is being deleted and waits for those it owns."""
    ABSENT = enum.auto()
    UNKNOWN = enum.auto()
    """Nobody serves its kind, so nobody can say."""


class Delete(Struct, frozen=True):
    vertex: Vertex
    policy: str


class SetOwners(Struct, frozen=True):
    vertex: Vertex
    owners: tuple[OwnerReference, ...]


class RemoveFinalizer(Struct, frozen=True):
    vertex: Vertex
    finalizer: str


class LookAt(Struct, frozen=True):
    uid: str


Action = Delete | SetOwners | RemoveFinalizer | LookAt


def decide(vertex: Vertex, owners: Sequence[Owner], dependents: Sequence[Vertex]) -> list[Action]:
    """`owners` are in the order of the vertex's references; they are not asked for when it is being deleted itself."""
    if vertex.deleting:
        return _on_its_way(vertex, dependents)
    if not owners or Owner.UNKNOWN in owners:
        return []
    if Owner.LIVES in owners:
        stay = tuple(o for o, state in zip(vertex.owners, owners, strict=True) if state is Owner.LIVES)
        return [SetOwners(vertex, stay)] if stay != vertex.owners else []
    if Owner.WAITS in owners and dependents:
        if any(dependent.is_in_foreground for dependent in dependents):
            # Those who own each other would wait for each other for ever. After this write it is looked at again.
            unblocked = tuple(msgspec.structs.replace(owner, block_owner_deletion=False) for owner in vertex.owners)
            if unblocked != vertex.owners:
                return [SetOwners(vertex, unblocked)]
        return [Delete(vertex, "Foreground")]
    return [Delete(vertex, _policy(vertex))]


def _on_its_way(vertex: Vertex, dependents: Sequence[Vertex]) -> list[Action]:
    if ORPHAN in vertex.finalizers:
        if dependents:
            return [SetOwners(each, _without(each, vertex.uid)) for each in dependents]
        return [RemoveFinalizer(vertex, ORPHAN)]
    if FOREGROUND in vertex.finalizers:
        blocking = [each for each in dependents if each.is_blocking(vertex.uid)]
        if blocking:
            return [LookAt(each.uid) for each in blocking if not each.deleting]
        return [RemoveFinalizer(vertex, FOREGROUND)]
    return []


def _without(vertex: Vertex, owner_uid: str) -> tuple[OwnerReference, ...]:
    return tuple(owner for owner in vertex.owners if owner.uid != owner_uid)


def _policy(vertex: Vertex) -> str:
    """What somebody asked for by a finalizer before, counts."""
    if ORPHAN in vertex.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in vertex.finalizers else "Background"


class Graph:
    def __init__(self) -> None:
        self._vertices: dict[str, Vertex] = {}
        self._dependents: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._vertices)

    def get(self, uid: str) -> Vertex | None:
        return self._vertices.get(uid)

    def dependents(self, uid: str) -> list[Vertex]:
        return [self._vertices[each] for each in sorted(self._dependents.get(uid, ()))]

    def put(self, vertex: Vertex) -> set[str]:
        """Returns the UIDs of those that must be looked at."""
        before = self._vertices.get(vertex.uid)
        self._vertices[vertex.uid] = vertex
        owners = {owner.uid for owner in vertex.owners}
        known = {owner.uid for owner in before.owners} if before is not None else set()
        for uid in known - owners:
            self._drop_edge(uid, vertex.uid)
        for uid in owners - known:
            self._dependents.setdefault(uid, set()).add(vertex.uid)
        if before is not None and _matters(before) == _matters(vertex):
            return set()
        look = {vertex.uid} if vertex.owners or vertex.deleting else set()
        # Owners that wait for it: perhaps it no longer stands in their way.
        look |= {uid for uid in owners | known if (owner := self._vertices.get(uid)) is not None and owner.deleting}
        return look

    def drop(self, uid: str) -> set[str]:
        """It is gone. Returns the UIDs of those that must be looked at."""
        vertex = self._vertices.pop(uid, None)
        if vertex is None:
            return set()
        for owner in vertex.owners:
            self._drop_edge(owner.uid, uid)
        waiting = {o.uid for o in vertex.owners if (held := self._vertices.get(o.uid)) is not None and held.deleting}
        return set(self._dependents.get(uid, ())) | waiting

    def state(self, reference: OwnerReference, of: Vertex) -> Owner | None:
        """None: the graph does not know, or knows something else than the reference says."""
        owner = self._vertices.get(reference.uid)
        if owner is None or (owner.kind, owner.name) != (reference.kind, reference.name):
            return None
        if owner.group != reference.api_version.rpartition("/")[0] or owner.namespace not in ("", of.namespace):
            return None
        return Owner.WAITS if owner.is_in_foreground else Owner.LIVES

    def _drop_edge(self, owner_uid: str, uid: str) -> None:
        edges = self._dependents.get(owner_uid)
        if edges is not None:
            edges.discard(uid)
            if not edges:
                del self._dependents[owner_uid]


def _matters(vertex: Vertex) -> object:
    return vertex.owners, vertex.finalizers, vertex.deleting
