"""How many pods of a PodDisruptionBudget may be disturbed? Values in, values out.

The number of pods that should be there is the number that are there: what controls them is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from octarbiter.api import selectors
from octarbiter.api.meta import Condition
from octarbiter.cluster.controllers.kinds import Budget, BudgetStatus, Pod

DISRUPTION_TIMEOUT = timedelta(minutes=2)
"""A pod that was allowed to be evicted and is still there after so long, stays."""


def covers(budget: Budget, pod: Pod) -> bool:
    selector = budget.spec.selector
    return selector is not None and selectors.matches(selector, pod.metadata.labels)


def status(budget: Budget, pods: Iterable[Pod], now: datetime) -> BudgetStatus:
    """`pods` are those that the budget covers."""
    alive = [pod for pod in pods if not pod.is_terminal]
    disrupted = {
        pod.metadata.name: since
        for pod in alive
        if (since := budget.status.disrupted_pods.get(pod.metadata.name)) is not None
        and pod.metadata.deletion_timestamp is None
        and now < since + DISRUPTION_TIMEOUT
    }
    healthy = sum(
        pod.is_ready and pod.metadata.deletion_timestamp is None and pod.metadata.name not in disrupted for pod in alive
    )
    desired = desired_healthy(budget, len(alive))
    allowed = max(0, healthy - desired) if alive else 0
    return BudgetStatus(
        observed_generation=budget.metadata.generation,
        current_healthy=healthy,
        desired_healthy=desired,
        disruptions_allowed=allowed,
        expected_pods=len(alive),
        disrupted_pods=disrupted,
        conditions=_conditions(budget, allowed, now),
    )


def desired_healthy(budget: Budget, expected: int) -> int:
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, expected - _scaled(spec.max_unavailable, expected))
    return _scaled(spec.min_available, expected) if spec.min_available is not None else 0


def _scaled(given: int | str, of: int) -> int:
    """Percentages are rounded up, on both sides, as Kubernetes does. What is no percentage allows nothing."""
    if isinstance(given, int):
        return given
    number = given.removesuffix("%")
    return -(-int(number) * of // 100) if number.isdecimal() and number != given else of


def _conditions(budget: Budget, allowed: int, now: datetime) -> list[Condition]:
    type_ = "DisruptionAllowed"
    new = Condition(
        type=type_,
        status="True" if allowed else "False",
        reason="SufficientPods" if allowed else "InsufficientPods",
        last_transition_time=now.replace(microsecond=0),
        observed_generation=budget.metadata.generation,
    )
    known = budget.status.conditions
    old = next((condition for condition in known if condition.type == type_), None)
    if old is not None and old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return [*(condition for condition in known if condition.type != type_), new]


def look_again_at(current: BudgetStatus) -> datetime | None:
    """When the next eviction that did not happen is given up."""
    return min((since + DISRUPTION_TIMEOUT for since in current.disrupted_pods.values()), default=None)
