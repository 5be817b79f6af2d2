"""Is a node alive, which taints follow from its state, and when must a pod leave it? Values in, values out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from octarbiter.api.meta import Json
from octarbiter.cluster.controllers import fitting, writing
from octarbiter.cluster.controllers.kinds import Node, Pod, Taint

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TOLD_BY_AGENT = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
TAINTS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
"""Which condition keeps pods away by which taint."""
EVICTING = (NOT_READY, UNREACHABLE)
"""These also make pods leave."""


def unknown_conditions(node: Node, now: datetime) -> list[Json]:
    """What has to be said of a node that gives no sign of life; empty if it is said already."""
    known = {condition.type: condition for condition in node.status.conditions}
    told: list[Json] = []
    for type_ in TOLD_BY_AGENT:
        before = known.get(type_)
        if before is not None and before.status == "Unknown":
            continue
        never = before is None
        told.append(
            {
                "type": type_,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated" if never else "NodeStatusUnknown",
                "message": "Kubelet never posted node status." if never else "Kubelet stopped posting node status.",
                "lastTransitionTime": writing.timestamp(now),
            }
        )
    return told


def taints(node: Node, now: datetime) -> list[Taint]:
    """All taints the node should have: ours as its state demands, those of others as they are."""
    states = {(condition.type, condition.status) for condition in node.status.conditions}
    keys = [key for state, key in TAINTS.items() if state in states]
    wanted = {(key, "NoSchedule") for key in keys} | {(key, "NoExecute") for key in keys if key in EVICTING}
    if not any(type_ == "Ready" for type_, _ in states):
        wanted.add((NOT_READY, "NoSchedule"))  # it has not said anything yet: nobody comes, nobody has to leave
    if node.spec.unschedulable:
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    ours = {(key, "NoSchedule") for key in TAINTS.values()} | {(key, "NoExecute") for key in EVICTING}
    ours.add((UNSCHEDULABLE, "NoSchedule"))
    kept = [taint for taint in node.spec.taints if (taint.key, taint.effect) not in ours - wanted]
    present = {(taint.key, taint.effect) for taint in kept}
    moment = now.replace(microsecond=0)
    return kept + [
        Taint(key=key, effect=effect, time_added=moment) for key, effect in sorted(wanted - present, key=_order)
    ]


def _order(taint: tuple[str, str]) -> tuple[str, str]:
    key, effect = taint
    return effect, key


def leaves_at(pod: Pod, present: Iterable[Taint], now: datetime) -> datetime | None:
    """When the pod must go because of taints; None: it may stay."""
    evicting = [taint for taint in present if taint.effect == "NoExecute"]
    if not evicting:
        return None
    used = []
    for taint in evicting:
        tolerating = [each for each in pod.spec.tolerations if fitting.tolerates_taint(each, taint)]
        if not tolerating:
            return now
        used += tolerating
    allowed = [each.toleration_seconds for each in used if each.toleration_seconds is not None]
    if not allowed:
        return None
    since = max((taint.time_added for taint in evicting if taint.time_added is not None), default=now)
    return since + timedelta(seconds=max(0, min(allowed)))


def first(moments: Sequence[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
