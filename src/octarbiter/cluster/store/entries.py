"""What is kept: the state of a key, and a change of it.

Keys look like `/<group or core>/<plural>/<namespace or ->/<name>`; the first two parts name the *resource*. Values are
bytes that nobody in this package looks into.
"""

from __future__ import annotations

import msgspec

LAST = "\U0010ffff"
"""Sorts behind whatever may follow a prefix."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """The state of a key that exists."""

    key: str
    value: bytes
    revision: int
    created: int
    """The revision of its creation; it was not deleted since."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One line of the log. The value of a deletion is the last state as watchers shall see it."""

    key: str
    value: bytes
    revision: int
    deleted: bool
    before: Entry | None

    @property
    def created(self) -> int:
        return self.before.created if self.before else self.revision


def after(change: Change) -> Entry | None:
    """What the key is when the change has happened."""
    return None if change.deleted else Entry(change.key, change.value, change.revision, change.created)


def resource_of(key: str) -> str:
    """`/core/pods/` of `/core/pods/default/web-0`, also of a prefix; empty for a prefix that spans resources."""
    parts = key.split("/", 3)
    return f"/{parts[1]}/{parts[2]}/" if len(parts) == 4 else ""
