"""Which of the pods that wait at the gate may their queue let in now?

By priority, age and name, as long as what the queue may use is enough, counting what its pods use already. A pod that
does not fit is overtaken by smaller ones, until it has waited for so long that what becomes free is kept for it; one
that would not fit even if nobody else were there waits, but keeps nothing from others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import msgspec

from octarbiter.api.resources import Amounts
from octarbiter.core.quota import keys


class GatedPod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    key: str
    requests: Amounts
    priority: int = 0
    created: datetime


def let_in(
    pods: Iterable[GatedPod],
    *,
    may_use: Mapping[str, int],
    used: Mapping[str, int],
    asked: Collection[str],
    now: datetime,
    reserve_after_s: float,
) -> list[GatedPod]:
    """`may_use`: of the whole queue, as quotas count (with oversubscription). `used`: by its pods that were let in."""
    room = {name: amount - used.get(name, 0) for name, amount in may_use.items()}
    chosen = []
    for pod in sorted(pods, key=lambda pod: (-pod.priority, pod.created, pod.key)):
        counted = {name: amount for name, amount in pod.requests.items() if amount > 0 and is_counted(name, asked)}
        if all(amount <= room.get(name, 0) for name, amount in counted.items()):
            chosen.append(pod)
            for name, amount in counted.items():
                room[name] -= amount
        elif (now - pod.created).total_seconds() >= reserve_after_s and _would_fit(counted, may_use):
            break
    return chosen


def is_counted(name: str, asked: Collection[str]) -> bool:
    """The same as quotas do: what the queue asks for, and extended resources in any case."""
    return name in asked or keys.is_extended(name)


def _would_fit(counted: Mapping[str, int], may_use: Mapping[str, int]) -> bool:
    return all(amount <= may_use.get(name, 0) for name, amount in counted.items())
