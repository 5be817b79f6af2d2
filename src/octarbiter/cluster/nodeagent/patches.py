"""What must be sent so that the API server's status of a pod becomes ours? Only what differs; nothing, if nothing does.

A strategic merge patch, as the kubelet sends it: conditions merge by type, so those of others are safe even if they
changed meanwhile. The UID in it makes the server refuse where another pod has the name by now.
"""

from __future__ import annotations

from octarbiter.api import codec
from octarbiter.api.meta import Json
from octarbiter.cluster.nodeagent.pods import Pod, PodStatus
from octarbiter.cluster.nodeagent.status import OURS

_OPTIONAL = ("reason", "message")


def needed(pod: Pod, status: Json) -> Json | None:
    """`pod` as the server has it; `status` as `status.of` makes it, complete."""
    wanted = codec.from_json(status, PodStatus)
    have = pod.status
    changed: Json = {}
    for field, name in _FIELDS.items():
        if getattr(wanted, name) != getattr(have, name):
            changed[field] = status.get(field)
    conditions = _conditions(pod, status["conditions"])
    if conditions:
        changed["$setElementOrder/conditions"] = [{"type": condition["type"]} for condition in status["conditions"]]
        changed["conditions"] = conditions
    if not changed:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": changed}


_FIELDS = {
    "phase": "phase",
    "reason": "reason",
    "message": "message",
    "hostIP": "host_ip",
    "hostIPs": "host_ips",
    "podIP": "pod_ip",
    "podIPs": "pod_ips",
    "startTime": "start_time",
    "observedGeneration": "observed_generation",
    "initContainerStatuses": "init_container_statuses",
    "containerStatuses": "container_statuses",
}


def _conditions(pod: Pod, wanted: list[Json]) -> list[Json]:
    before = {condition.type: condition for condition in pod.status.conditions}
    changed = []
    for condition in wanted:
        if condition["type"] not in OURS:
            continue
        had = before.get(condition["type"])
        told = codec.to_json(had) if had is not None else {}
        # A merge keeps what is not mentioned: what no longer holds must be taken away by name.
        dropped = {name: None for name in _OPTIONAL if name in told and name not in condition}
        if told != condition or dropped:
            changed.append(condition | dropped)
    return changed
