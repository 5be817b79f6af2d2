from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cluster.apiserver import deletion, kinds, objects, status
from octarbiter.cluster.apiserver.deletion import Options, Outcome

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MAPS = next(row for row in kinds.BUILT_IN if row.plural == "configmaps")
JOBS = next(row for row in kinds.BUILT_IN if row.plural == "jobs")
EVENTS = next(row for row in kinds.BUILT_IN if row.plural == "events")


def obj(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", **metadata}}


def pod(phase: str = "Running", node: str = "n", **metadata: Any) -> dict[str, Any]:
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 30}
    return {**obj(generation=1, **metadata), "spec": spec, "status": {"phase": phase}}


def test_what_nobody_holds_is_removed() -> None:
    assert deletion.decide(MAPS, obj(), Options(), NOW)[0] is Outcome.REMOVE


def test_what_a_finalizer_holds_is_marked_once() -> None:
    outcome, marked = deletion.decide(MAPS, obj(finalizers=["x/y"], generation=3), Options(), NOW)
    again, same = deletion.decide(MAPS, marked, Options(), NOW + timedelta(minutes=1))

    assert (outcome, again) == (Outcome.MARK, Outcome.MARK)
    assert marked["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00Z"
    assert marked["metadata"]["generation"] == 4
    assert same == marked


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        (Options(propagation="Foreground"), ["foregroundDeletion"]),
        (Options(propagation="Orphan"), ["orphan"]),
        (Options(orphan=True), ["orphan"]),
    ],
)
def test_policies_are_finalizers_for_the_collector(options: Options, finalizers: list[str]) -> None:
    outcome, marked = deletion.decide(MAPS, obj(), options, NOW)

    assert (outcome, marked["metadata"]["finalizers"]) == (Outcome.MARK, finalizers)


def test_a_policy_replaces_an_earlier_one_and_kinds_have_their_own() -> None:
    held = obj(finalizers=["orphan"])

    assert deletion.decide(MAPS, held, Options(propagation="Background"), NOW)[0] is Outcome.REMOVE
    assert deletion.decide(MAPS, held, Options(), NOW)[1]["metadata"]["finalizers"] == ["orphan"]
    assert deletion.decide(JOBS, obj(), Options(), NOW)[1]["metadata"]["finalizers"] == ["orphan"]
    assert deletion.decide(EVENTS, obj(), Options(propagation="Foreground"), NOW)[0] is Outcome.REMOVE


def test_a_pod_that_runs_gets_time_and_the_time_only_shrinks() -> None:
    first, dying = deletion.decide(kinds.PODS, pod(), Options(), NOW)
    later = NOW + timedelta(seconds=2)
    longer, _ = deletion.decide(kinds.PODS, dying, Options(grace_s=60), later)
    shorter, shortened = deletion.decide(kinds.PODS, dying, Options(grace_s=10), later)

    assert (first, longer, shorter) == (Outcome.MARK, Outcome.PENDING, Outcome.MARK)
    assert dying["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:30Z"
    assert dying["metadata"]["generation"] == 2
    assert shortened["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:10Z"
    assert shortened["metadata"]["deletionGracePeriodSeconds"] == 10
    assert shortened["metadata"]["generation"] == 2
    assert deletion.decide(kinds.PODS, dying, Options(grace_s=0), later)[0] is Outcome.MARK_AND_REMOVE


@pytest.mark.parametrize("unneeded", [pod(node=""), pod("Failed"), pod("Succeeded")])
def test_a_pod_that_does_not_run_goes_at_once(unneeded: dict[str, Any]) -> None:
    assert deletion.decide(kinds.PODS, unneeded, Options(grace_s=30), NOW)[0] is Outcome.MARK_AND_REMOVE


def test_a_pod_with_a_finalizer_stays_when_its_time_is_up() -> None:
    outcome, marked = deletion.decide(kinds.PODS, pod(finalizers=["x/y"]), Options(grace_s=0), NOW)

    assert outcome is Outcome.MARK
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0


def test_a_namespace_is_emptied_before_it_goes() -> None:
    namespace = {**obj(), "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    first, going = deletion.decide(kinds.NAMESPACES, namespace, Options(), NOW)
    second, _ = deletion.decide(kinds.NAMESPACES, going, Options(), NOW)
    empty = {**going, "spec": {}}

    assert (first, going["status"]["phase"], second) == (Outcome.MARK, "Terminating", Outcome.PENDING)
    assert deletion.decide(kinds.NAMESPACES, empty, Options(), NOW)[0] is Outcome.REMOVE
    assert deletion.completes_deletion(kinds.NAMESPACES, empty, going)
    assert not deletion.completes_deletion(kinds.NAMESPACES, going, going)


@pytest.mark.parametrize("options", [Options(uid="other"), Options(resource_version="6")])
def test_another_object_than_was_meant_is_left_alone(options: Options) -> None:
    with pytest.raises(status.Failure) as refused:
        deletion.decide(MAPS, obj(), options, NOW)

    assert refused.value.reason == "Conflict"


@given(
    st.sampled_from(["Running", "Pending", "Succeeded"]),
    st.sampled_from(["", "n"]),
    st.lists(st.sampled_from(["x/y", "orphan", "foregroundDeletion"]), unique=True),
    st.lists(st.tuples(st.one_of(st.none(), st.integers(-5, 60)), st.integers(0, 40)), min_size=1, max_size=6),
)
def test_whatever_is_asked_in_which_order_a_pod_never_gets_more_time_and_never_comes_back(
    phase: str, node: str, finalizers: list[str], requests: list[tuple[int | None, int]]
) -> None:
    present, now = pod(phase, node, **({"finalizers": finalizers} if finalizers else {})), NOW
    before = objects.copied(present)
    due: datetime | None = None
    for grace, passed in requests:
        now += timedelta(seconds=passed)
        outcome, after = deletion.decide(kinds.PODS, present, Options(grace_s=grace), now)
        assert before == present
        if outcome in (Outcome.REMOVE, Outcome.MARK_AND_REMOVE):
            assert not after["metadata"].get("finalizers")
            return
        stamp = objects.read_time(after["metadata"]["deletionTimestamp"])
        assert stamp is not None
        assert due is None or stamp <= max(due, now)
        due, present, before = stamp, after, objects.copied(after)
