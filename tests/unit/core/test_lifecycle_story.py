"""What becomes Kubernetes Events."""

from __future__ import annotations

from lifecycle_builders import NOW, look, over, pod, replace, role, running, seen, taskset, under_way

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import observe, story


def told(before: api.TaskSet, shown: observe.Seen) -> list[tuple[str, str, bool]]:
    after, _ = look(before, shown)
    return [(line.reason, line.message, line.warning) for line in story.between(before.status, after.status)]


def test_the_start_is_told_once() -> None:
    before = under_way()

    assert told(before, seen(running())) == [("Started", "attempt 0 runs", False)]
    after, _ = look(before, seen(running()))
    assert told(after, seen(running())) == []


def test_a_step_in_which_nothing_happens_is_not_told() -> None:
    assert told(taskset(), seen(unit=False)) == []


def test_the_end_is_told_with_its_reason() -> None:
    after, _ = look(under_way(pods=[running()]), seen(over(1)))

    assert told(after, seen(unit=False, service=False)) == [
        ("Failed", "1 of 1 failed, maxFailed is 1; last: worker-0, exit code 1", True)
    ]


def test_a_failed_attempt_is_a_warning_and_a_successful_one_is_not_told() -> None:
    assert told(under_way(pods=[running()], retries=1), seen(over(1))) == [
        ("AttemptFailed", "attempt 0: 1 of 1 failed, maxFailed is 1; last: worker-0, exit code 1", True)
    ]
    assert told(under_way(pods=[running()]), seen(over(0))) == []


def test_an_attempt_that_ends_and_is_retried_in_one_step_is_told_of() -> None:
    before, _ = look(under_way(pods=[running()], retries=1), seen(running(), unit_deleted=True))
    before = replace(before, status=replace(before.status, verdict="", trigger=None, phase="TaskSetAttemptRunning"))

    lines = told(before, seen(unit=False, service=False))

    assert ("AttemptLost", "attempt 0: control unit c-job-0 was deleted", True) in lines


def test_roles_are_told_of_where_there_are_several() -> None:
    before = under_way(role("ps"), role("worker"), pods=[running(role="ps"), running(role="worker")])

    assert told(before, seen(running(role="ps"), over(0, role="worker"))) == [
        ("RoleSucceeded", "role worker: 1 of 1 succeeded, 1 needed", False)
    ]


def test_losses_and_retries_are_one_line_each() -> None:
    before = under_way(role(replicas=8, retries=1, max_failed=8), pods=[running(i) for i in range(8)])
    shown = [pod("Failed", of=("worker", i), reason="Evicted") for i in range(6)]

    lines = told(before, seen(*shown, over(1, 6), running(7)))

    assert lines == [
        (
            "ReplicaLost",
            "replaced without charge: worker-0 (Evicted), worker-1 (Evicted), worker-2 (Evicted), "
            "worker-3 (Evicted), worker-4 (Evicted) and 1 more",
            True,
        ),
        ("ReplicaRetried", "retried: worker-6", False),
    ]


def test_suspension_and_its_end_are_told() -> None:
    before = under_way(pods=[running()])
    suspended = replace(before, spec=replace(before.spec, suspend=True))

    assert told(suspended, seen(running()))[0][0] == "Suspended"
    after, _ = look(suspended, seen())
    resumed = replace(after, spec=before.spec)
    assert told(resumed, seen())[0][0] == "Resumed"


def test_a_retry_of_the_taskset_is_told() -> None:
    before, _ = look(under_way(pods=[running()], retries=1), seen(over(1)))

    assert told(before, seen(unit=False, service=False)) == [("Retried", "attempt 1 begins (retry 1)", False)]


def test_what_is_waited_for_is_told_when_it_changes() -> None:
    old = api.TaskSetStatus(state="Waiting", state_message="a")
    new = api.TaskSetStatus(state="Waiting", state_message="b")

    assert [line.message for line in story.waiting(old, new)] == ["b"]
    assert story.waiting(new, new) == []
    assert story.waiting(old, replace(new, state="Running")) == []


def test_reasons_are_camel_case() -> None:
    before = under_way(role("ps"), role("worker", retries=1), pods=[running(role="ps"), running(role="worker")])
    shown = seen(pod("Failed", of=("ps", 0), reason="Evicted"), over(1, role="worker", finished=NOW))

    for reason, _, _ in told(before, shown):
        assert reason.isalnum()
        assert reason[0].isupper()
