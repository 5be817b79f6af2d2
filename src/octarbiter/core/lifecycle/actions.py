"""What `decide` can ask the world to do. Values, not deeds: the shell carries them out, in this order, after the
decision's status is recorded where the decision says so."""

from __future__ import annotations

import msgspec


class CreateControlUnit(msgspec.Struct, frozen=True):
    attempt: int


class CreateService(msgspec.Struct, frozen=True):
    pass


class CreatePod(msgspec.Struct, frozen=True):
    role: str
    index: int
    attempt: int
    """The replica's attempt; the TaskSet's is in the status."""


class DeletePod(msgspec.Struct, frozen=True):
    name: str
    uid: str
    force: bool = False


class DeletePods(msgspec.Struct, frozen=True):
    """All pods of one attempt in one request: many pods go far faster so than one by one."""

    attempt: int


class DeleteControlUnit(msgspec.Struct, frozen=True):
    """What it owned follows, by the garbage collector. Not in the foreground, which costs that one three times as many
    requests: that all is gone we see ourselves."""

    name: str
    uid: str


class DeleteTaskSet(msgspec.Struct, frozen=True):
    pass


Action = CreateControlUnit | CreateService | CreatePod | DeletePod | DeletePods | DeleteControlUnit | DeleteTaskSet


class Told(msgspec.Struct, frozen=True):
    """A line of the TaskSet's story, to become a Kubernetes Event."""

    reason: str
    message: str
    warning: bool = False
