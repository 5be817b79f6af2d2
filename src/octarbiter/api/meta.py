"""What every Kubernetes object has: names, owners, times, conditions.

Structs hold only the fields we read. They are decoded from what the server sends and must never be sent back
whole (fields we do not know would be lost): writes are patches, or objects we built ourselves.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class Noun(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all api values. `gc=False`: they are trees, never cycles, and there are tens of thousands of them."""


class OwnerReference(Noun, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Noun, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []

    @property
    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Object(Noun, frozen=True):
    """Anything that has a name in the API."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class Condition(Noun, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class StatusCause(Noun, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Noun, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class Status(Noun, frozen=True):
    """The body of every refusal of an API server."""

    kind: str = "Status"
    api_version: str = "v1"
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails = StatusDetails()


Json = dict[str, Any]
