"""What happens to a pod that is created in a namespace, and to a change of a quota that follows a queue?

Whoever is refused learns what to do. Exempt namespaces never come here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from octarbiter.api import arbitrator
from octarbiter.api.arbitrator import Mode
from octarbiter.core.quota import keys, ledger, names

KUBE_SYSTEM_GROUP: Final = f"system:serviceaccounts:{names.KUBE_SYSTEM}"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"


class Value(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Verdict(Value, frozen=True):
    refusal: str = ""
    """Empty: it is let through."""
    gate: bool = False
    """The pod gets our scheduling gate."""


LET_THROUGH: Final = Verdict()


class Place(Value, frozen=True):
    """What is known of a namespace."""

    name: str
    mode: Mode | None = None
    queue: str = ""
    """The key of the leaf queue that holds it; empty: none."""
    has_quota: bool = False
    """A user's, from which a Queue is made."""
    is_ending: bool = False


class NewPod(Value, frozen=True):
    node: str = ""
    """It names its node itself."""
    is_mirror: bool = False
    """Of a static pod: it runs already, and the API only shows it."""
    has_gate: bool = False


class Asker(Value, frozen=True):
    name: str
    groups: tuple[str, ...] = ()


def of_pod(pod: NewPod, place: Place) -> Verdict:
    if place.mode is None or pod.is_mirror or place.is_ending:
        return LET_THROUGH
    if place.mode is Mode.DEFAULT_QUEUE:
        return LET_THROUGH  # its Queue is made as soon as the namespace is seen
    if not place.queue and not place.has_quota:
        return Verdict(
            refusal=(
                f"namespace {place.name} is managed (mode {place.mode}) but has no Queue, so its pods have no share of "
                f"the cluster: create one with `octo queue create NAME -n {place.name} --request cpu=...,memory=...`, "
                f"or a ResourceQuota from which one is made"
            )
        )
    if place.mode is Mode.GATE:
        if pod.node:
            return Verdict(
                refusal=(
                    f"spec.nodeName: must not be set in namespace {place.name} (mode gate): the pod would start before "
                    f"its queue lets it in; use spec.nodeSelector or spec.affinity"
                )
            )
        return Verdict(gate=not pod.has_gate)
    return LET_THROUGH


def of_gate_removal(place: Place, asker: Asker, us: str) -> Verdict:
    """Somebody takes our gate off a pod that has not started."""
    if place.mode is not Mode.GATE or may_always(asker, us):
        return LET_THROUGH
    return Verdict(
        refusal=(
            f"spec.schedulingGates: {arbitrator.QUEUE} is removed by the queue {place.queue or 'of the namespace'} "
            f"when it has room for the pod; to be let in earlier, raise the queue's request or weight, or the pod's "
            f"priority"
        )
    )


def of_quota_change(
    old: ledger.Quota, new: ledger.Quota, touched: Collection[str], place: Place, asker: Asker, us: str
) -> Verdict:
    """`touched`: what else of the object differs, as paths; only for a quota of ours they matter."""
    if may_always(asker, us) or not _is_held(old, place):
        return LET_THROUGH
    queue = old.queue or place.queue
    ours = keys_of(old)
    changed = [f"spec.hard[{key}]" for key in ours if not keys.same(old.hard.get(key), new.hard.get(key))]
    if (old.queue, old.original) != (new.queue, new.original):
        changed.append("its marks in metadata")
    if old.is_made:
        others = {*old.hard, *new.hard} - {*ours}
        changed += sorted(f"spec.hard[{key}]" for key in others if old.hard.get(key) != new.hard.get(key))
        changed += sorted(touched)
    if not changed:
        return LET_THROUGH
    whose = "was made for" if old.is_made else "follows"
    return Verdict(
        refusal=(
            f"{', '.join(changed)}: cannot be changed, because ResourceQuota {old.name} {whose} the queue {queue}: "
            f"change the Queue instead (octo queue set, kubectl edit queue)"
        )
    )


def of_quota_deletion(old: ledger.Quota, place: Place, asker: Asker, us: str, living: Mapping[str, str]) -> Verdict:
    """`living`: keys of all Queues, by UID. A user's own quota may go; then we make one."""
    if may_always(asker, us) or not old.is_made or not _is_held(old, place):
        return LET_THROUGH
    if old.owner and old.owner not in living:
        return LET_THROUGH  # it goes with its Queue
    return Verdict(
        refusal=(
            f"ResourceQuota {old.name} was made for the queue {old.queue or place.queue} and goes with it: delete the "
            f"Queue, or make a ResourceQuota of your own, which then takes its place"
        )
    )


def keys_of(quota: ledger.Quota) -> list[str]:
    """Ours among its keys."""
    if quota.is_made:
        return sorted(quota.hard)
    return sorted(key for key in ledger.remembered(quota) if key != arbitrator.QUEUE)


def may_always(asker: Asker, us: str) -> bool:
    """We ourselves, and the cluster's own controllers: who collects garbage, empties namespaces and counts quotas."""
    return asker.name in (us, CONTROLLER_MANAGER) or KUBE_SYSTEM_GROUP in asker.groups


def _is_held(quota: ledger.Quota, place: Place) -> bool:
    """Without a queue there is nothing to protect, and whoever tidies up must not be stopped."""
    return bool(place.queue) and not place.is_ending and (quota.is_made or quota.original is not None)
