"""What a Job does next, and that every pod of it is counted exactly once, whatever crashes when."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from octarbiter.api import codec
from octarbiter.api.meta import ObjectMeta
from octarbiter.cluster.controllers import job_indexes, job_plan, job_pods
from octarbiter.cluster.controllers.kinds import Job, JobStatus, Pod

Json = dict[str, Any]
NOW = datetime(2030, 1, 1, tzinfo=UTC)
META = {"name": "work", "namespace": "ns", "uid": "job"}


def job(status: Json | None = None, *, metadata: Json | None = None, restart: str = "Never", **spec: Any) -> Job:
    template = {"spec": {"restartPolicy": restart, "containers": [{"name": "main"}]}}
    whole = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": template, **spec}
    return codec.from_json({"metadata": {**META, **(metadata or {})}, "spec": whole, "status": status or {}}, Job)


def pod(
    name: str,
    phase: str = "Running",
    *,
    index: int | None = None,
    ended: datetime | None = None,
    deleted: bool = False,
    tracked: bool = True,
    restarts: int = 0,
) -> Pod:
    state: Json = {"terminated": {"finishedAt": codec.to_json(ended)}} if ended is not None else {}
    metadata: Json = {
        "name": name,
        "namespace": "ns",
        "uid": name,
        "creationTimestamp": codec.to_json(NOW),
        "annotations": {} if index is None else {job_pods.INDEX: str(index)},
        "finalizers": [job_pods.TRACKING] if tracked else [],
    }
    if deleted:
        metadata["deletionTimestamp"] = codec.to_json(NOW)
    status = {"phase": phase, "containerStatuses": [{"name": "main", "restartCount": restarts, "state": state}]}
    return codec.from_json({"metadata": metadata, "status": status}, Pod)


def types(plan: job_plan.Plan) -> dict[str, str]:
    return {condition.type: condition.reason for condition in plan.status.conditions if condition.status == "True"}


def test_a_new_job_begins_with_as_many_pods_as_may_run_and_are_needed() -> None:
    assert len(job_plan.plan(job(parallelism=5, completions=3), [], NOW).create) == 3
    plan = job_plan.plan(job(parallelism=2, completions=3), [], NOW)

    assert plan.create == (None, None)
    assert plan.status.start_time == NOW
    assert plan.status.active == 2


def test_an_outcome_is_recorded_before_the_pod_is_released_and_counted_after() -> None:
    ended = pod("a", "Succeeded", ended=NOW)

    first = job_plan.plan(job(), [ended], NOW)
    assert first.status.uncounted_terminated_pods == {"succeeded": ["a"]}
    assert first.release == (ended,)
    assert types(first) == {"SuccessCriteriaMet": "CompletionsReached"}
    released = pod("a", "Succeeded", ended=NOW, tracked=False)
    second = job_plan.plan(msgspec.structs.replace(job(), status=first.status), [released], NOW)
    assert (second.status.succeeded, second.status.uncounted_terminated_pods) == (1, {})
    assert types(second)["Complete"] == "CompletionsReached"
    assert second.status.completion_time == NOW


def test_a_job_has_not_ended_while_something_runs() -> None:
    status = {"succeeded": 1, "conditions": [{"type": "SuccessCriteriaMet", "status": "True", "reason": "x"}]}
    running, going = pod("a"), pod("a", deleted=True, tracked=False)

    plan = job_plan.plan(job(status), [running], NOW)
    assert plan.delete == (running,)
    assert "Complete" not in types(plan)
    assert "Complete" not in types(job_plan.plan(job(status), [going], NOW))
    assert "Complete" in types(job_plan.plan(job(status), [], NOW))


def test_too_many_failures_fail_the_job() -> None:
    failed = [pod(name, "Failed", ended=NOW) for name in "abc"]

    assert types(job_plan.plan(job(backoffLimit=3), failed, NOW)) == {}
    assert types(job_plan.plan(job(backoffLimit=2), failed, NOW)) == {"FailureTarget": "BackoffLimitExceeded"}


def test_restarts_in_place_count_against_the_limit() -> None:
    def verdict(restarts: int, policy: str, limit: int = 3) -> dict[str, str]:
        return types(job_plan.plan(job(backoffLimit=limit, restart=policy), [pod("a", restarts=restarts)], NOW))

    assert verdict(2, "OnFailure") == {}
    assert verdict(3, "OnFailure") == {"FailureTarget": "BackoffLimitExceeded"}
    assert verdict(3, "Never") == {}
    assert verdict(1, "OnFailure", limit=0) == {"FailureTarget": "BackoffLimitExceeded"}


def test_a_job_that_takes_too_long_fails() -> None:
    late = job({"startTime": codec.to_json(NOW)}, activeDeadlineSeconds=60)

    assert job_plan.plan(late, [pod("a")], NOW).look_again_at == NOW + timedelta(seconds=60)
    plan = job_plan.plan(late, [pod("a")], NOW + timedelta(seconds=60))
    assert types(plan) == {"FailureTarget": "DeadlineExceeded"}
    assert len(plan.delete) == 1


@pytest.mark.parametrize(("failures", "pause"), [(1, 10), (2, 20), (4, 80), (9, 600)])
def test_the_pause_before_another_try_doubles(failures: int, pause: int) -> None:
    failed = [pod(f"p{n}", "Failed", ended=NOW, tracked=False) for n in range(failures)]
    trying = job({"failed": failures}, backoffLimit=100)

    plan = job_plan.plan(trying, failed, NOW)
    assert plan.create == ()
    assert plan.look_again_at == NOW + timedelta(seconds=pause)
    assert job_plan.plan(trying, failed, NOW + timedelta(seconds=pause)).create == (None,)


def test_a_success_ends_the_series_of_failures() -> None:
    pods = [
        pod("bad", "Failed", ended=NOW, tracked=False),
        pod("good", "Succeeded", ended=NOW + timedelta(seconds=1), tracked=False),
    ]
    status = {"failed": 1, "succeeded": 1}

    assert job_plan.plan(job(status, completions=2), pods, NOW + timedelta(seconds=1)).create == (None,)


def test_those_who_have_come_least_far_go_first_and_do_not_count() -> None:
    ready = codec.to_json(pod("ready"))
    ready["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    pods = [pod("pending", "Pending"), codec.from_json(ready, Pod)]

    plan = job_plan.plan(job(parallelism=1, completions=2), pods, NOW)

    assert [each.metadata.name for each in plan.dismiss] == ["pending"]
    assert plan.delete == ()


def test_a_suspended_job_dismisses_its_pods_and_forgets_when_it_began() -> None:
    held = job({"startTime": codec.to_json(NOW)}, suspend=True)
    plan = job_plan.plan(held, [pod("a")], NOW)

    assert len(plan.dismiss) == 1
    assert plan.status.start_time is None
    assert types(plan) == {"Suspended": "JobSuspended"}
    resumed = msgspec.structs.replace(job(), status=plan.status)
    again = job_plan.plan(resumed, [], NOW + timedelta(seconds=9))
    assert again.status.start_time == NOW + timedelta(seconds=9)
    assert again.create == (None,)
    assert types(again) == {}


def test_without_a_number_of_completions_the_first_success_is_enough() -> None:
    open_ended = job(completions=None, parallelism=2)

    assert len(job_plan.plan(open_ended, [], NOW).create) == 2
    waiting = job_plan.plan(open_ended, [pod("a", "Succeeded", ended=NOW), pod("b")], NOW)
    assert (waiting.create, waiting.delete, waiting.dismiss, types(waiting)) == ((), (), (), {})
    done = job_plan.plan(open_ended, [pod("a", "Succeeded", ended=NOW)], NOW)
    assert types(done) == {"SuccessCriteriaMet": "CompletionsReached"}


def test_an_indexed_job_fills_the_indexes_that_are_missing() -> None:
    indexed = job({"completedIndexes": "0,2"}, completions=6, parallelism=4, completionMode="Indexed")
    pods = [pod("three", index=3), pod("again", index=3), pod("done", index=2), pod("high", index=6)]

    plan = job_plan.plan(indexed, pods, NOW)

    assert plan.create == (1, 4, 5)
    assert sorted(each.metadata.name for each in plan.dismiss) == ["done", "high", "three"]
    assert plan.status.succeeded == 2


def test_a_finished_job_is_deleted_when_its_time_is_up() -> None:
    condition = {"type": "Complete", "status": "True", "lastTransitionTime": codec.to_json(NOW)}
    finished = job({"conditions": [condition]}, ttlSecondsAfterFinished=10)

    assert job_plan.plan(finished, [], NOW).look_again_at == NOW + timedelta(seconds=10)
    assert job_plan.plan(finished, [], NOW + timedelta(seconds=10)).delete_job
    assert not job_plan.plan(job({"conditions": [condition]}), [], NOW + timedelta(days=1)).delete_job


def test_a_pod_knows_its_job_and_its_index() -> None:
    body = job_pods.body(job(completionMode="Indexed"), 7)
    meta = body["metadata"]

    assert meta["generateName"] == "work-7-"
    assert meta["labels"] == {
        "batch.kubernetes.io/job-name": "work",
        "batch.kubernetes.io/controller-uid": "job",
        "batch.kubernetes.io/job-completion-index": "7",
        "job-name": "work",
        "controller-uid": "job",
    }
    assert meta["annotations"] == {"batch.kubernetes.io/job-completion-index": "7"}
    assert meta["ownerReferences"][0]["uid"] == "job"
    assert body["spec"]["hostname"] == "work-7"
    assert [variable["name"] for variable in body["spec"]["containers"][0]["env"]] == ["JOB_COMPLETION_INDEX"]


def test_making_a_pod_changes_nothing_of_the_job() -> None:
    indexed = job(completionMode="Indexed")
    before = codec.to_json(indexed)
    job_pods.body(indexed, 0)

    assert codec.to_json(indexed) == before


@given(st.sets(st.integers(0, 200)))
def test_indexes_survive_being_written(indexes: set[int]) -> None:
    assert job_indexes.parse(job_indexes.write(indexes), 201) == indexes


def test_indexes_are_written_as_people_expect() -> None:
    assert job_indexes.write([7, 5, 4, 3, 0, 1]) == "0,1,3-5,7"
    assert job_indexes.parse("0,1,3-5,7", 5) == {0, 1, 3, 4}


# --- exactly once


class World:
    """A server that does what it is told, and a controller that may die after every single thing it does."""

    def __init__(self, spec: Json) -> None:
        self.job = job(**spec)
        self.pods: dict[str, Pod] = {}
        self.made = 0
        self.now = NOW
        self.ended: dict[str, str] = {}

    def look(self, crash_after: int) -> None:
        plan = job_plan.plan(self.job, list(self.pods.values()), self.now)
        deeds: list[Callable[[], None]] = []
        if plan.status != self.job.status:
            deeds.append(functools.partial(self.record, plan.status))
        deeds += [functools.partial(self.release, it) for it in plan.release]
        deeds += [functools.partial(self.delete, it) for it in plan.delete]
        for it in plan.dismiss:
            deeds += [functools.partial(self.release, it), functools.partial(self.delete, it)]
        deeds += [functools.partial(self.create, index) for index in plan.create]
        for deed in deeds[:crash_after]:
            deed()

    def record(self, status: JobStatus) -> None:
        assert status.failed >= self.job.status.failed
        assert status.succeeded >= self.job.status.succeeded
        self.job = msgspec.structs.replace(self.job, status=status)

    def create(self, index: int | None) -> None:
        self.made += 1
        name = f"pod-{self.made}"
        self.pods[name] = pod(name, index=index)

    def change(self, it: Pod, **changes: Any) -> None:
        meta = it.metadata
        held = self.pods.get(meta.name)
        if held is None:
            return
        meta = msgspec.structs.replace(held.metadata, **changes)
        if meta.deletion_timestamp is not None and not meta.finalizers:
            del self.pods[meta.name]
        else:
            self.pods[meta.name] = msgspec.structs.replace(held, metadata=meta)

    def release(self, it: Pod) -> None:
        self.change(it, finalizers=[])

    def delete(self, it: Pod) -> None:
        held = self.pods.get(it.metadata.name)
        if held is not None and job_pods.is_tracked(held) and job_pods.is_active(held):
            self.ended[held.metadata.name] = "failed"
        self.change(it, deletion_timestamp=self.now)

    def end(self, number: int, phase: str) -> None:
        running = [it for it in self.pods.values() if job_pods.is_active(it) and job_pods.is_tracked(it)]
        if running:
            it = running[number % len(running)]
            self.ended[it.metadata.name] = phase.lower()
            status = msgspec.structs.replace(pod("x", phase, ended=self.now).status)
            self.pods[it.metadata.name] = msgspec.structs.replace(it, status=status)

    def meddle(self, number: int) -> None:
        """Somebody deletes a pod, whatever its state."""
        if self.pods:
            self.delete(list(self.pods.values())[number % len(self.pods)])


SPECS = st.sampled_from(
    [
        {"parallelism": 3, "completions": 5, "backoffLimit": 100},
        {"parallelism": 3, "completions": 5, "backoffLimit": 2},
        {"parallelism": 3, "completions": 4, "backoffLimit": 100, "completionMode": "Indexed"},
    ]
)
STEPS = st.lists(st.tuples(st.sampled_from(["look", "look", "end", "fail", "meddle"]), st.integers(0, 6)), max_size=60)


@settings(max_examples=300, deadline=None)
@given(SPECS, STEPS)
def test_every_pod_is_counted_exactly_once_whatever_crashes_when(spec: Json, steps: list[tuple[str, int]]) -> None:
    world = World(spec)
    for what, number in steps:
        world.now += timedelta(seconds=700)
        match what:
            case "look":
                world.look(crash_after=number)
            case "end":
                world.end(number, "Succeeded")
            case "fail":
                world.end(number, "Failed")
            case _:
                world.meddle(number)
    for _ in range(10):
        world.look(crash_after=1000)

    status = world.job.status
    outcomes = list(world.ended.values())
    if spec.get("completionMode") != "Indexed":
        assert status.succeeded == outcomes.count("succeeded")
    assert status.failed == outcomes.count("failed")
    assert not status.uncounted_terminated_pods
    assert ObjectMeta(name="work", namespace="ns", uid="job") == world.job.metadata
