"""What absent means, compared with what a real server makes of the same objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import recorded

from octarbiter.cluster.apiserver import decoding, defaults, schemas
from octarbiter.cluster.apiserver.defaults import completion

Json = dict[str, Any]

BY_OTHERS = {
    "Pod": ("priority", "preemptionPolicy", "tolerations"),
    "Node": ("taints",),
}
"""Fields of the spec that admission fills."""
STATUS = {"Pod": {"phase": "Pending"}, "PersistentVolume": {"phase": "Pending"}}
"""Of new objects, whatever the user wrote."""


def made(case: Json) -> Json:
    """The object as `apply` and `complete` leave it, with the rest of a real server's work done."""
    real = case["output"]
    group, version, kind = recorded.kind_of(real)
    type_ = schemas.type_of(group, version, kind)
    assert type_ is not None
    obj = copy.deepcopy(case["input"]) | {"apiVersion": real["apiVersion"], "kind": kind}
    decoding.prune(obj, type_)
    defaults.apply(group, kind, obj)
    if kind == "Job":
        obj["metadata"]["uid"] = real["metadata"]["labels"].get("controller-uid", "")
    if kind in STATUS:
        obj["status"] = dict(STATUS[kind])
    defaults.complete(group, kind, obj, None)
    for name in BY_OTHERS.get(kind, ()):
        if name in real["spec"]:
            obj["spec"][name] = real["spec"][name]
    return obj


def without_metadata(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name != "metadata"}


def comparable(real: Json) -> Json:
    found = copy.deepcopy(real)
    if real["kind"] == "PersistentVolume":
        del found["status"]["lastPhaseTransitionTime"]
    if real["kind"] == "Namespace":
        del found["spec"]["finalizers"]
    return without_metadata(found)


@pytest.mark.parametrize("case", recorded.of("defaults"), ids=lambda case: case["name"])
def test_objects_become_what_a_real_server_makes_of_them(case: Json) -> None:
    assert without_metadata(made(case)) == comparable(case["output"])
    assert made(case)["metadata"].get("labels") == case["output"]["metadata"].get("labels")


@pytest.mark.parametrize("case", recorded.of("defaults"), ids=lambda case: case["name"])
def test_defaults_applied_twice_are_the_same(case: Json) -> None:
    once = made(case)
    twice = copy.deepcopy(once)
    defaults.apply(*recorded.kind_of(once)[::2], twice)

    assert once == twice


def test_kinds_of_which_nothing_is_known_stay_as_they_are() -> None:
    obj = {"spec": {}}
    defaults.apply("example.com", "Foo", obj)
    defaults.complete("example.com", "Foo", obj, None)

    assert obj == {"spec": {}}


def container(**amounts: Json) -> Json:
    return {"resources": amounts}


@pytest.mark.parametrize(
    ("containers", "quality"),
    [
        ([container()], "BestEffort"),
        ([container(limits={"cpu": "0", "memory": "0"})], "BestEffort"),
        ([container(limits={"example.com/gpu": "1"})], "BestEffort"),
        ([container(requests={"cpu": "1"})], "Burstable"),
        ([container(limits={"cpu": "1", "memory": "1Gi"})], "Guaranteed"),
        (
            [container(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1000m", "memory": "1024Mi"})],
            "Guaranteed",
        ),
        ([container(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1", "memory": "1Gi"})], "Burstable"),
        ([container(limits={"cpu": "1", "memory": "1Gi"}), container()], "Burstable"),
    ],
)
def test_the_quality_of_a_pod_follows_from_its_resources(containers: list[Json], quality: str) -> None:
    assert completion.quality_of({"containers": containers}) == quality


def test_a_status_update_without_quality_keeps_it() -> None:
    pod: Json = {"spec": {"containers": []}, "status": {"phase": "Running"}}
    defaults.complete("", "Pod", pod, {"status": {"qosClass": "Guaranteed"}})

    assert pod["status"]["qosClass"] == "Guaranteed"


def test_a_service_keeps_its_address_when_an_update_does_not_name_it() -> None:
    old: Json = {"metadata": {"uid": "u"}, "spec": {"type": "ClusterIP"}}
    defaults.complete("", "Service", old, None)
    new: Json = {"metadata": {"uid": "u"}, "spec": {"type": "ClusterIP"}}
    defaults.complete("", "Service", new, old)

    assert new["spec"] == old["spec"]
    assert old["spec"]["clusterIPs"] == [old["spec"]["clusterIP"]]
