"""Nodes, namespaces, quotas, budgets and discovery: what their controllers decide."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from octarbiter.api import codec
from octarbiter.api.core_kinds import QuotaSpec
from octarbiter.cluster.controllers import budgets, discovery, emptying, node_health, usage, writing
from octarbiter.cluster.controllers.emptying import Left
from octarbiter.cluster.controllers.kinds import NAMESPACES, PODS, Budget, Node, Pod, Taint

Json = dict[str, Any]
NOW = datetime(2030, 1, 1, tzinfo=UTC)


# --- nodes


def node(ready: str | None, *taints: Json, unschedulable: bool = False) -> Node:
    conditions = [{"type": "Ready", "status": ready}] if ready is not None else []
    body = {
        "metadata": {"name": "one"},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"conditions": conditions},
    }
    return codec.from_json(body, Node)


def keys(taints: list[Taint]) -> list[tuple[str, str]]:
    return sorted((taint.key.partition("/")[2] or taint.key, taint.effect) for taint in taints)


UNREACHABLE = [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]
NOT_READY = [("not-ready", "NoExecute"), ("not-ready", "NoSchedule")]


@pytest.mark.parametrize(
    ("ready", "expected"),
    [("Unknown", UNREACHABLE), ("False", NOT_READY), ("True", []), (None, [("not-ready", "NoSchedule")])],
)
def test_taints_follow_from_readiness(ready: str | None, expected: list[tuple[str, str]]) -> None:
    assert keys(node_health.taints(node(ready), NOW)) == expected


def test_the_taint_of_a_new_node_goes_when_it_is_ready() -> None:
    new = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

    assert node_health.taints(node("True", new), NOW) == []


def test_taints_of_others_stay_and_ours_keep_their_time() -> None:
    theirs = {"key": "dedicated", "value": "x", "effect": "NoExecute"}
    ours = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2029-01-01T00:00:00Z"}
    taints = node_health.taints(node("Unknown", theirs, ours), NOW)

    assert keys(taints) == [("dedicated", "NoExecute"), *UNREACHABLE]
    assert next(taint.time_added for taint in taints if taint.effect == "NoExecute" and not taint.value) == datetime(
        2029, 1, 1, tzinfo=UTC
    )


def test_a_cordoned_node_is_tainted() -> None:
    assert keys(node_health.taints(node("True", unschedulable=True), NOW)) == [("unschedulable", "NoSchedule")]


def test_a_silent_node_is_unknown_in_all_it_used_to_tell() -> None:
    told = {each["type"]: each["reason"] for each in node_health.unknown_conditions(node("True"), NOW)}

    assert told == {
        "Ready": "NodeStatusUnknown",
        "MemoryPressure": "NodeStatusNeverUpdated",
        "DiskPressure": "NodeStatusNeverUpdated",
        "PIDPressure": "NodeStatusNeverUpdated",
    }
    assert "Ready" not in {each["type"] for each in node_health.unknown_conditions(node("Unknown"), NOW)}


def tolerating(*tolerations: Json) -> Pod:
    return codec.from_json({"spec": {"tolerations": list(tolerations)}}, Pod)


EVICTING = Taint(key="k", effect="NoExecute", time_added=NOW)


@pytest.mark.parametrize(
    ("tolerations", "leaves"),
    [
        ([], NOW + timedelta(seconds=100)),
        ([{"key": "k", "operator": "Exists"}], None),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": 300}], NOW + timedelta(seconds=300)),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": -1}], NOW),
        (
            [{"operator": "Exists", "tolerationSeconds": 9}, {"key": "k", "operator": "Exists"}],
            NOW + timedelta(seconds=9),
        ),
    ],
)
def test_a_pod_leaves_when_what_it_tolerates_is_over(tolerations: list[Json], leaves: datetime | None) -> None:
    assert node_health.leaves_at(tolerating(*tolerations), [EVICTING], NOW + timedelta(seconds=100)) == leaves


def test_nobody_leaves_because_of_a_taint_that_only_keeps_away() -> None:
    assert node_health.leaves_at(tolerating(), [Taint(key="k", effect="NoSchedule")], NOW) is None


# --- namespaces


def test_a_namespace_is_empty_only_if_everybody_was_asked_and_said_so() -> None:
    nothing = Left("pods", "")

    assert emptying.is_empty([nothing], [])
    assert not emptying.is_empty([nothing], ["metrics.k8s.io"])
    assert not emptying.is_empty([nothing, Left("secrets", "", 1)], [])
    assert not emptying.is_empty([nothing, Left("secrets", "", problem="no")], [])


def test_conditions_tell_what_remains_and_what_holds_it() -> None:
    left = [Left("pods", "", 2, {"example.com/hold": 1}), Left("jobs", "batch", 1, {"example.com/hold": 1})]
    told = {each.type: each for each in emptying.conditions([], left, [], NOW)}

    assert told["NamespaceContentRemaining"].message == (
        "Some resources are remaining: jobs.batch has 1 resource instances, pods. has 2 resource instances"
    )
    assert told["NamespaceFinalizersRemaining"].message == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances"
    )
    assert told["NamespaceDeletionContentFailure"].status == "False"
    later = emptying.conditions(list(told.values()), left, [], NOW + timedelta(hours=1))
    assert later == list(told.values())


def test_everything_is_never_deleted_in_all_namespaces() -> None:
    with pytest.raises(ValueError, match="needs a namespace"):
        writing.delete_all(PODS, "")
    assert writing.delete_all(PODS, "ns").path == "/api/v1/namespaces/ns/pods"
    assert NAMESPACES.path("", "x", "finalize") == "/api/v1/namespaces/x/finalize"


# --- discovery


def group(name: str, *versions: tuple[str, str, list[str]]) -> Json:
    return {
        "metadata": {"name": name},
        "versions": [
            {
                "version": version,
                "freshness": freshness,
                "resources": [
                    {"resource": plural, "responseKind": {"kind": plural.title()}, "scope": "Namespaced", "verbs": []}
                    for plural in plurals
                ],
            }
            for version, freshness, plurals in versions
        ],
    }


def merged(before: dict[discovery.Name, discovery.Served], *groups: Json) -> dict[discovery.Name, discovery.Served]:
    return discovery.merged(codec.from_json({"items": list(groups)}, discovery._Groups).items, before)


def test_a_resource_is_taken_in_the_version_its_group_prefers_and_serves_it_in() -> None:
    found = merged({}, group("g", ("v2", "Current", ["a"]), ("v1", "Current", ["a", "b"])))

    assert {name: served.resource.version for name, served in found.items()} == {("g", "a"): "v2", ("g", "b"): "v1"}


def test_what_a_silent_server_had_before_it_still_has() -> None:
    before = merged({}, group("g", ("v1", "Current", ["a"])), group("h", ("v1", "Current", ["b"])))

    assert set(merged(before, group("g", ("v1", "Stale", [])))) == {("g", "a")}


# --- quotas


def using(requests: Json | None = None, limits: Json | None = None, phase: str = "Running", **spec: Any) -> Pod:
    container = {"resources": {"requests": requests or {}, "limits": limits or {}}}
    return codec.from_json({"spec": {"containers": [container], **spec}, "status": {"phase": phase}}, Pod)


def used(hard: Json, *pods: Pod, count: int = 0, **spec: Any) -> dict[str, str]:
    quota = codec.from_json({"hard": hard, **spec}, QuotaSpec)
    return usage.used(quota, [(pod, usage.of_pod(pod)) for pod in pods], lambda _: count, {})


def test_requests_and_limits_are_summed_under_every_name_they_have() -> None:
    names = ["pods", "cpu", "requests.cpu", "limits.cpu", "requests.nvidia.com/gpu"]
    both = using({"cpu": "1", "nvidia.com/gpu": "1"}, {"cpu": "2"}), using({"cpu": "500m"})

    assert used({**dict.fromkeys(names, "10"), "memory": "1Gi"}, *both) == {
        "pods": "2",
        "cpu": "1500m",
        "requests.cpu": "1500m",
        "limits.cpu": "2",
        "requests.nvidia.com/gpu": "1",
        "memory": "0",
    }


def test_a_pod_that_has_ended_uses_nothing() -> None:
    assert used({"pods": "1", "cpu": "1"}, using({"cpu": "1"}, phase="Succeeded")) == {"pods": "0", "cpu": "0"}


def test_objects_are_counted_by_their_resource() -> None:
    assert usage.counted_resource("count/jobs.batch") == ("batch", "jobs")
    assert usage.counted_resource("count/things.example.com") == ("example.com", "things")
    assert usage.counted_resource("secrets") == ("", "secrets")
    assert usage.counted_resource("requests.cpu") is None
    assert used({"count/jobs.batch": "5"}, count=3) == {"count/jobs.batch": "3"}


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        ({"scopes": ["Terminating"]}, "1"),
        ({"scopes": ["NotTerminating"]}, "2"),
        ({"scopes": ["BestEffort"]}, "1"),
        ({"scopes": ["NotBestEffort"]}, "2"),
        ({"scopes": ["NotTerminating", "NotBestEffort"]}, "1"),
        ({"scopes": ["PriorityClass"]}, "1"),
        ({"scopes": ["SomethingNew"]}, "0"),
    ],
)
def test_only_pods_within_all_scopes_count(scopes: Json, expected: str) -> None:
    pods = (
        using({"cpu": "1"}, activeDeadlineSeconds=5),
        using(priorityClassName="high"),
        using(limits={"memory": "1Gi"}),
    )

    assert used({"pods": "9"}, *pods, **scopes) == {"pods": expected}


def test_priority_classes_are_selected_by_name() -> None:
    def selected(operator: str, *values: str) -> str:
        wanted = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
        pods = using(priorityClassName="high"), using(priorityClassName="low"), using()
        return used({"pods": "9"}, *pods, scopeSelector={"matchExpressions": [wanted]})["pods"]

    assert [selected("In", "high"), selected("NotIn", "high"), selected("Exists"), selected("DoesNotExist")] == [
        "1",
        "2",
        "2",
        "1",
    ]


# --- budgets


def budget(disrupted: Json | None = None, **spec: Any) -> Budget:
    whole = {"selector": {"matchLabels": {"app": "x"}}, **spec}
    status = {"disruptedPods": disrupted or {}}
    return codec.from_json({"metadata": {"generation": 3}, "spec": whole, "status": status}, Budget)


def member(name: str, ready: bool = True, deleted: bool = False, phase: str = "Running") -> Pod:
    metadata: Json = {"name": name, "labels": {"app": "x"}}
    if deleted:
        metadata["deletionTimestamp"] = codec.to_json(NOW)
    conditions = [{"type": "Ready", "status": str(ready)}]
    return codec.from_json({"metadata": metadata, "status": {"phase": phase, "conditions": conditions}}, Pod)


def numbers(it: Budget, *pods: Pod) -> tuple[int, int, int, int]:
    found = budgets.status(it, pods, NOW)
    return found.current_healthy, found.desired_healthy, found.disruptions_allowed, found.expected_pods


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (3, 2, 1, 3)),
        ({"minAvailable": 5}, (3, 5, 0, 3)),
        ({"minAvailable": "50%"}, (3, 2, 1, 3)),
        ({"maxUnavailable": 1}, (3, 2, 1, 3)),
        ({"maxUnavailable": "34%"}, (3, 1, 2, 3)),
        ({"maxUnavailable": 9}, (3, 0, 3, 3)),
        ({}, (3, 0, 3, 3)),
    ],
)
def test_a_budget_leaves_as_many_as_it_says(spec: Json, expected: tuple[int, int, int, int]) -> None:
    assert numbers(budget(**spec), member("a"), member("b"), member("c")) == expected


def test_who_is_leaving_or_not_ready_is_not_healthy() -> None:
    pods = member("a"), member("b", ready=False), member("c", deleted=True), member("d", phase="Succeeded")

    assert numbers(budget(minAvailable=1), *pods) == (1, 1, 0, 3)


def test_an_eviction_that_was_allowed_counts_until_it_is_given_up() -> None:
    since = NOW - timedelta(minutes=1)
    it = budget({"a": codec.to_json(since), "gone": codec.to_json(since)}, minAvailable=1)
    found = budgets.status(it, [member("a"), member("b"), member("c")], NOW)

    assert (found.current_healthy, found.disrupted_pods) == (2, {"a": since})
    assert budgets.look_again_at(found) == NOW + timedelta(minutes=1)
    later = budgets.status(it, [member("a"), member("b"), member("c")], NOW + timedelta(minutes=1))
    assert (later.current_healthy, later.disrupted_pods) == (3, {})


def test_without_pods_nothing_is_allowed() -> None:
    assert numbers(budget(maxUnavailable=1)) == (0, 0, 0, 0)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 30))
def test_no_budget_ever_allows_more_than_it_can_afford(ready: int, others: int, least: int) -> None:
    pods = [member(f"r{n}") for n in range(ready)] + [member(f"o{n}", ready=False) for n in range(others)]
    healthy, _, allowed, _ = numbers(budget(minAvailable=least), *pods)

    assert healthy - allowed >= min(least, healthy)
