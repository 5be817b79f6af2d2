"""Section 4 and failurePolicy: what follows a failed pod."""

from __future__ import annotations

from typing import Any

import pytest
from lifecycle_builders import ended, over, pod, role, waits

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import retries
from octarbiter.core.lifecycle.retries import Next


def rule(action: str, **fields: Any) -> api.FailureRule:
    return api.FailureRule(action=action, **fields)


def governed(*rules: api.FailureRule, **fields: Any) -> api.Role:
    return role(failure_policy=api.FailurePolicy(rules=list(rules)), **fields)


@pytest.mark.parametrize(
    ("retried", "follows"), [(0, Next.CHARGED), (1, Next.CHARGED), (2, Next.FINAL), (3, Next.FINAL)]
)
def test_a_failure_is_retried_as_often_as_max_retry_count_says(retried: int, follows: Next) -> None:
    assert retries.after_failure(role(retries=2), retried, over(1)).next == follows


def test_retry_false_means_no_retry_whatever_the_count() -> None:
    policy = api.RetryPolicy(retry=False, max_retry_count=5)
    tested = api.Role(name="worker", template={}, retry_policy=policy)

    assert retries.after_failure(tested, 0, over(1)).next == Next.FINAL


def test_the_words_count_the_retries() -> None:
    assert retries.after_failure(role(retries=2), 1, over(1)).because == "retry 2 of 2"
    assert retries.after_failure(role(retries=2), 2, over(1)).because == "no retries left"
    assert retries.after_failure(role(), 0, over(1)).because == "not retried"


def test_a_rule_that_says_fail_is_final_though_retries_remain() -> None:
    assert retries.after_failure(governed(rule("Fail", exit_codes=[3]), retries=5), 0, over(3)).next == Next.FINAL


def test_a_rule_that_says_ignore_is_free_though_no_retries_remain() -> None:
    assert retries.after_failure(governed(rule("Ignore", exit_codes=[3])), 0, over(3)).next == Next.FREE


def test_the_first_rule_that_matches_wins() -> None:
    tested = governed(rule("Fail", exit_codes=[9]), rule("Ignore", exit_codes=[3]), rule("Fail", exit_codes=[3]))

    assert retries.after_failure(tested, 0, over(3)).next == Next.FREE


def test_a_failure_that_no_rule_matches_is_retried_as_usual() -> None:
    assert retries.after_failure(governed(rule("Fail", exit_codes=[3]), retries=1), 0, over(4)).next == Next.CHARGED


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (pod("Failed", ended(137), reason="Evicted"), "Evicted"),
        (pod("Failed", ended(143), disrupted="PreemptionByScheduler"), "PreemptionByScheduler"),
        (pod("Failed", ended(137, reason="OOMKilled")), "OOMKilled"),
        (pod("Failed", ended(137), reason="DeadlineExceeded"), "DeadlineExceeded"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rule_may_speak_of_the_reason(shown: Any, reason: str) -> None:
    assert retries.matching_rule(governed(rule("Fail", pod_reasons=[reason])), shown) is not None
    assert retries.matching_rule(governed(rule("Fail", pod_reasons=["Other"])), shown) is None


def test_how_a_program_ends_that_was_taken_is_no_matter_for_rules() -> None:
    """It may answer a SIGTERM with any code."""
    shown = pod("Failed", ended(3), disrupted="PreemptionByScheduler")

    assert (
        retries.matching_rule(governed(rule("Fail", exit_codes=[3]), rule("Fail", pod_reasons=["Error"])), shown)
        is None
    )


def test_the_exit_of_an_init_container_counts_and_exit_0_never() -> None:
    shown = pod("Failed", waits("PodInitializing"), ended(0, name="side"), init=[ended(3, name="fetch")])

    assert retries.matching_rule(governed(rule("Fail", exit_codes=[3])), shown) is not None
    assert retries.matching_rule(governed(rule("Fail", exit_codes=[0])), shown) is None
