"""What do Queue and QueueJob have in common: the names of their group, and lists of resources."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from octarbiter.api import resources
from octarbiter.api.meta import Noun
from octarbiter.api.resources import Amounts

GROUP = "arbitrator.incubator.k8s.io"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"

MODE = f"{GROUP}/mode"
"""Label of a namespace: it is managed, and how."""
QUEUE = f"{GROUP}/queue"
"""Label of a ResourceQuota (the name of its Queue), and the scheduling gate of a pod that waits for its queue."""
ORIGINAL_HARD = f"{GROUP}/original-hard"
"""Annotation of a ResourceQuota: the user's values that ours stand in for, as JSON."""
RANK = "preemptionrank"
"""Label of a pod: of two alike the one with the lower number goes first; absent means 0."""
MANAGER = "octarbiter-arbitrator"
"""Whose fields and Events these are."""


class Mode(StrEnum):
    DENY = "deny"
    GATE = "gate"
    DEFAULT_QUEUE = "default-queue"


Quantities = dict[str, str | int]
"""As users write them, by the name of the resource."""


class ResourceList(Noun, frozen=True):
    resources: Quantities = {}

    @property
    def amounts(self) -> Amounts:
        """Raises Refused for what is no quantity; `validation` has told before."""
        return resources.asked(self.resources)


ToldResources = Annotated[ResourceList, msgspec.Meta(extra={"struct": "ToldResources"})]
"""Of a status: whatever the sums come to, also what nobody could write into a spec."""
