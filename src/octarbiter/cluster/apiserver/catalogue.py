"""Which resources does the server have at this moment?

The built-in ones always, the custom ones as long as their definitions are there. A definition that was written a moment
ago is served with the next request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from octarbiter.api import taskset
from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, status
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.apiserver.types import Type


class Reading(msgspec.Struct, frozen=True):
    """What is to be said about an object that came over the wire."""

    problem: str | None = None
    """It cannot be understood at all."""
    strict_errors: Sequence[str] = ()
    """What it says in vain: unknown and doubled fields."""


class Model(Protocol):
    """What is to be known about the objects of one resource."""

    @property
    def type(self) -> Type | None:
        """None where nothing is known about the shape."""

    def read(self, obj: Json, duplicates: Sequence[str]) -> Reading:
        """Checks the object and brings it into the form in which it is kept."""

    def default(self, obj: Json) -> None:
        """What absent means."""

    def refresh(self, obj: Json) -> None:
        """Brings an object that was written under other rules into the form of the present ones."""

    def complete(self, obj: Json, old: Json | None) -> None:
        """What the server itself works out, after everybody else has written."""

    def problems(self, obj: Json, old: Json | None, subresource: str = "") -> Sequence[status.Problem]:
        """Why the object cannot be kept; `subresource`: through which door an update came."""


class Scaling(msgspec.Struct, frozen=True):
    """Where the numbers of a scale subresource stand in the object, as paths of field names."""

    replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class Served(msgspec.Struct, frozen=True):
    resource: Resource
    model: Model
    columns: Sequence[Json] | None = None
    """Of a custom resource's table."""
    scaling: Scaling | None = None
    closed: bool = False
    """Nothing new comes in: its definition is going."""
    settled_since: int = 0
    """What was written at this revision or later is as the model wants it; what is older is refreshed when read."""
    deprecation: str = ""
    """Said to everybody who uses it."""


class Group(msgspec.Struct, frozen=True):
    name: str
    versions: tuple[str, ...]
    """The preferred one first."""


class Catalogue:
    def __init__(self, built_in: Iterable[Served]) -> None:
        self._built_in: Final = {_key(served.resource): served for served in built_in}
        self._custom: dict[tuple[str, str, str], Served] = {}
        self._definitions: dict[str, list[Served]] = {}
        self._built_in_groups: Final = {served.resource.group for served in self._built_in.values()}
        self.edition = 1
        """Changes with every change of what is served."""

    def find(self, group: str, version: str, plural: str) -> Served | None:
        key = (group, version, plural)
        return self._built_in.get(key) or self._custom.get(key)

    def of(self, resource: Resource) -> Served:
        found = self.find(resource.group, resource.version, resource.plural)
        assert found is not None
        return found

    def by_kind(self, api_version: str, kind: str) -> Served | None:
        """For references from one object to another."""
        return next((each for each in self.all() if _is(each.resource, api_version, kind)), None)

    def all(self) -> list[Served]:
        return [*self._built_in.values(), *self._custom.values()]

    def definitions(self) -> Mapping[str, Sequence[Served]]:
        """Name of a definition -> its versions."""
        return self._definitions

    def define(self, name: str, versions: Sequence[Served]) -> None:
        """What a definition brings; nothing when it is gone or not yet accepted."""
        for served in self._definitions.pop(name, ()):
            del self._custom[_key(served.resource)]
        if versions:
            self._definitions[name] = list(versions)
            self._custom.update((_key(served.resource), served) for served in versions)
        self.edition += 1

    def is_built_in(self, group: str) -> bool:
        return group in self._built_in_groups

    def groups(self) -> list[Group]:
        """Without the core one, in the order in which clients shall look a name up."""
        found: dict[str, list[str]] = {}
        for served in self.all():
            if served.resource.group:
                versions = found.setdefault(served.resource.group, [])
                if served.resource.version not in versions:
                    versions.append(served.resource.version)
        groups = [Group(name, tuple(sorted(versions, key=version_rank))) for name, versions in found.items()]
        return sorted(groups, key=self._turn)

    def _turn(self, group: Group) -> tuple[bool, bool, str]:
        """Built-in groups as they come, then custom ones by name, but first the one whose TaskSet is the usual one."""
        if self.is_built_in(group.name):
            return False, False, ""
        return True, group.name != taskset.GROUP, group.name

    def in_version(self, group: str, version: str) -> list[Served]:
        found = [each for each in self.all() if (each.resource.group, each.resource.version) == (group, version)]
        return sorted(found, key=lambda each: each.resource.plural)


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Stable before beta before alpha, the higher number first; what is no version comes last."""
    for rank, mark in enumerate(("", "beta", "alpha")):
        major, _, minor = version.removeprefix("v").partition(mark) if mark else (version.removeprefix("v"), "", "0")
        if version.startswith("v") and major.isdigit() and minor.isdigit():
            return rank, -int(major), -int(minor), ""
    return 3, 0, 0, version


def _key(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def _is(resource: Resource, api_version: str, kind: str) -> bool:
    return resource.kind == kind and resource.api_version == api_version and resource.verbs != kinds.CREATE_ONLY
