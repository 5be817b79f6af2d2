"""A new node takes no pods until somebody has seen that it is ready."""

from __future__ import annotations

from typing import Final

from octarbiter.cluster.apiserver import admission
from octarbiter.cluster.apiserver.admission import Attempt

NOT_READY: Final = "node.kubernetes.io/not-ready"


class TaintNewNodes:
    async def admit(self, attempt: Attempt) -> None:
        resource, obj = attempt.served.resource, attempt.obj
        if resource.group or resource.kind != "Node" or attempt.operation != admission.CREATE or obj is None:
            return
        spec = obj.get("spec") or {}
        given = spec.get("taints") or []
        if not any((each.get("key"), each.get("effect")) == (NOT_READY, "NoSchedule") for each in given):
            obj["spec"] = {**spec, "taints": [*given, {"key": NOT_READY, "effect": "NoSchedule"}]}

    async def validate(self, attempt: Attempt) -> None:
        """Everything was said before."""
