"""What is to be said about a resource?

The form of a row: built-in resources have theirs in `kinds`, custom ones get one from their definition.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

CORE: Final = "core"
"""How the store calls the group that has no name."""

STANDARD_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY: Final = ("create",)
CHANGE_VERBS: Final = ("get", "patch", "update")


class Propagation(StrEnum):
    """What becomes of dependents when nobody says otherwise."""

    BACKGROUND = "Background"
    ORPHAN = "Orphan"
    NONE = "None"
    """The resource has no dependents; policies are ignored."""


class Subresource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    """Both empty: the kind is of the resource's own group and version."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    version: str
    plural: str
    singular: str
    kind: str
    list_kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STANDARD_VERBS
    subresources: tuple[Subresource, ...] = ()
    tracks_generation: bool = False
    put_creates: bool = False
    put_needs_version: bool = False
    """A PUT without a resourceVersion is refused instead of winning unconditionally."""
    graceful: bool = False
    """Deleting first says so and waits for somebody to confirm: pods."""
    propagation: Propagation = Propagation.BACKGROUND
    returns_deleted: bool = False
    """The answer to a deletion is the object and not a Status."""
    status_on_create: bool = False
    """A status that comes with a new object is kept: nodes."""
    selectable: tuple[str, ...] = ()
    """Field selectors besides metadata.name and metadata.namespace."""
    stored_as: str = ""
    """Another resource's place in the store, where two resources show the same objects: `core/events`."""
    custom: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As error messages call it: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def go_type(self) -> str:
        """As the real server calls one of them among its own."""
        if self.custom:
            return "unstructured.Unstructured"
        package = self.group.partition(".")[0] if not self.stored_as else ""
        return f"{package or CORE}.{self.kind}"

    @property
    def has_status(self) -> bool:
        return self.subresource("status") is not None

    def subresource(self, name: str) -> Subresource | None:
        return next((each for each in self.subresources if each.name == name), None)

    @property
    def root(self) -> str:
        """Every key of this resource starts with it."""
        return f"/{self.stored_as or f'{self.group or CORE}/{self.plural}'}/"

    def prefix(self, namespace: str) -> str:
        """What the keys of one namespace start with; of all of them when it is empty."""
        return f"{self.root}{namespace}/" if namespace else self.root

    def key(self, namespace: str, name: str) -> str:
        return f"{self.root}{namespace if self.namespaced else '-'}/{name}"
