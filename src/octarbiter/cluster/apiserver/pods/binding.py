"""A scheduler says where a pod runs."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, objects, status
from octarbiter.cluster.apiserver.pods import conditions
from octarbiter.cluster.apiserver.registry import Call, Registry


async def bind(registry: Registry, call: Call, binding: Json, now: datetime) -> None:
    """`call` names the pod."""
    metadata = binding.get("metadata") or {}
    if metadata.get("name") != call.name:
        raise status.bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    node = target.get("name")
    if target.get("kind") not in (None, "", "Node"):
        kind = objects.encode(target["kind"]).decode()
        raise _unusable(f'target.kind: Unsupported value: {kind}: supported values: "Node", "<empty>"')
    if not node:
        raise _unusable("target.name: Required value")

    def bound(pod: Json) -> Json:
        _check(pod, metadata, call.name)
        pod["spec"]["nodeName"] = node
        pod["status"].pop("nominatedNodeName", None)
        for name in ("annotations", "labels"):
            if metadata.get(name):
                pod["metadata"][name] = {**(pod["metadata"].get(name) or {}), **metadata[name]}
        conditions.set_condition(pod, "PodScheduled", "True", objects.timestamp(now))
        return pod

    await registry.amend(call, bound)


def _check(pod: Json, metadata: Json, name: str) -> None:
    present = pod["metadata"]
    for field, called in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if metadata.get(field) and metadata[field] != present.get(field):
            was = present.get(field, "")
            why = f"Precondition failed: {called} in precondition: {metadata[field]}, {called} in object meta: {was}"
            raise status.lost_precondition(kinds.PODS, present["namespace"], name, why)
    if "deletionTimestamp" in present:
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if where := pod["spec"].get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{where}"')
    if pod["spec"].get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, why: str) -> status.Failure:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return status.Failure(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


def _unusable(what: str) -> status.Failure:
    """The client's mistake; Kubernetes blames itself for it."""
    return status.bad_request(what)
