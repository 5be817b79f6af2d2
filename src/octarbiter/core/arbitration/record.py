"""How do results look as statuses? Conditions keep the time of their last change; the rest is said anew."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction

import msgspec

from octarbiter.api import queue as queues
from octarbiter.api import queuejob as jobs
from octarbiter.api import resources
from octarbiter.api.arbitrator import ResourceList
from octarbiter.api.meta import Condition
from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration.state import QueueResult


class Fact(msgspec.Struct, frozen=True):
    """One condition, without its time."""

    type: str
    holds: bool
    reason: str
    message: str


def queue_status(before: queues.QueueStatus, result: QueueResult, generation: int, now: datetime) -> queues.QueueStatus:
    facts = [
        Fact(
            queues.SATISFIED,
            result.is_satisfied,
            "HasAll" if result.is_satisfied else "Waits",
            result.satisfied,
        ),
        Fact(
            queues.RECLAIMING,
            result.is_reclaiming,
            "UnderWay" if result.is_reclaiming else "Settled",
            result.reclaiming,
        ),
    ]
    return queues.QueueStatus(
        observed_generation=generation,
        demand=_list(result.demand),
        deserved=_list(result.deserved),
        allocated=_list(result.allocated),
        used=_list(result.used),
        preempting=_list(resources.some(result.preempting)),
        share=share(result),
        conditions=conditions(before.conditions, facts, generation, now),
    )


def share(result: QueueResult) -> str:
    """`66.7% cpu`, for people; empty: nothing is allocated."""
    if not result.dominant:
        return ""
    above, below = result.share
    return f"{float(Fraction(above * 100, below)):.1f}% {result.dominant}"


def job_status(
    before: jobs.QueueJobStatus,
    unit: Amounts,
    allocated: int,
    position: int,
    facts: Sequence[Fact],
    generation: int,
    now: datetime,
) -> jobs.QueueJobStatus:
    return jobs.QueueJobStatus(
        observed_generation=generation,
        allocated=_list(resources.times(unit, allocated)),
        allocated_no=allocated,
        position=position,
        conditions=conditions(before.conditions, facts, generation, now),
    )


def conditions(before: Sequence[Condition], facts: Sequence[Fact], generation: int, now: datetime) -> list[Condition]:
    had = {condition.type: condition for condition in before}
    found = []
    for fact in facts:
        status = "True" if fact.holds else "False"
        known = had.get(fact.type)
        since = known.last_transition_time if known is not None and known.status == status else now
        found.append(
            Condition(
                type=fact.type,
                status=status,
                reason=fact.reason,
                message=fact.message,
                last_transition_time=since,
                observed_generation=generation,
            )
        )
    return found


def _list(amounts: Amounts) -> ResourceList:
    return ResourceList(resources={**resources.written(amounts)})
