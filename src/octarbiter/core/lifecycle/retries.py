"""What follows a failed pod: is it final, retried, retried for free?"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from octarbiter.api import taskset as api
from octarbiter.api.pod import Pod
from octarbiter.core.lifecycle import observe


class Next(StrEnum):
    FINAL = "final"
    CHARGED = "charged"
    FREE = "free"


class Answer(msgspec.Struct, frozen=True):
    next: Next
    because: str


def after_failure(role: api.Role, retried: int, pod: Pod) -> Answer:
    rule = matching_rule(role, pod)
    if rule is not None:
        if rule.action == api.FailureAction.FAIL:
            return Answer(Next.FINAL, "a failurePolicy rule says Fail")
        return Answer(Next.FREE, "a failurePolicy rule says Ignore: retried without charge")
    budget = role.retry_policy.budget
    if retried < budget:
        return Answer(Next.CHARGED, f"retry {retried + 1} of {budget}")
    return Answer(Next.FINAL, "no retries left" if budget else "not retried")


def matching_rule(role: api.Role, pod: Pod) -> api.FailureRule | None:
    """Of a pod that was taken only the reason counts: how its program ended is the work of who took it."""
    taken = observe.taken_reason(pod)
    ends = [
        status.state.terminated
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        if status.state.terminated is not None and not taken
    ]
    codes = {end.exit_code for end in ends if end.exit_code != 0}
    reasons = {pod.status.reason, taken} | {end.reason for end in ends if end.exit_code != 0}
    reasons.discard("")
    return next(
        (
            rule
            for rule in role.failure_policy.rules
            if codes.intersection(rule.exit_codes) or reasons.intersection(rule.pod_reasons)
        ),
        None,
    )
