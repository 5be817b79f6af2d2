"""What is refused, compared with what a real server says about the same objects."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import recorded

from octarbiter.cluster.apiserver import decoding, defaults, schemas, validation

Json = dict[str, Any]

KINDS = {
    "configmaps": "ConfigMap",
    "controllerrevisions": "ControllerRevision",
    "cronjobs": "CronJob",
    "endpoints": "Endpoints",
    "endpointslices": "EndpointSlice",
    "horizontalpodautoscalers": "HorizontalPodAutoscaler",
    "ingresses": "Ingress",
    "limitranges": "LimitRange",
    "networkpolicies": "NetworkPolicy",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "podtemplates": "PodTemplate",
    "priorityclasses": "PriorityClass",
    "replicationcontrollers": "ReplicationController",
    "resourcequotas": "ResourceQuota",
    "rolebindings": "RoleBinding",
    "runtimeclasses": "RuntimeClass",
    "serviceaccounts": "ServiceAccount",
    "storageclasses": "StorageClass",
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "daemonsets": "DaemonSet",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
}
UID = "0b6c3b2e-0000-4000-8000-000000000000"


def kind_at(path: str) -> tuple[str, str, str]:
    """Group, version and kind of a collection's URL."""
    parts = path.strip("/").split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    plural = parts[-1]
    return group, version, KINDS.get(plural, plural.removesuffix("s").capitalize())


def settled(path: str, obj: Json, old: Json | None) -> Json:
    """As the server has it when it asks whether it is acceptable."""
    group, version, kind = kind_at(path)
    type_ = schemas.type_of(group, version, kind)
    assert type_ is not None, (group, version, kind)
    found = copy.deepcopy(obj)
    if old is not None:
        found["metadata"] = {**old["metadata"], **found.get("metadata", {})}
        if kind != "Node":
            found["status"] = old.get("status")
    decoding.prune(found, type_)
    metadata = found["metadata"]
    metadata["uid"] = UID
    if "/namespaces/" in path:
        metadata["namespace"] = "default"
    if metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + "abcde"
    defaults.apply(group, kind, found)
    defaults.complete(group, kind, found, old)
    return found


def causes(problems: list[validation.Problem]) -> list[Json]:
    return [{"reason": each.reason, "field": each.field, "message": each.message} for each in problems]


def comparable(found: list[Json]) -> list[tuple[str, str, str]]:
    """Without what differs in every run, and without objects as the server's internal types print them."""
    lines = []
    for cause in found:
        message = cause["message"].split("\n")[0]
        message = re.sub(r"value: (\{.*\}|\[\{.*\}\])(: |$)", r"value: {}\2", message)
        message = re.sub(r'"Bad_\w{5}"', '"Bad_"', message)
        lines.append((cause["reason"], cause["field"], message))
    return sorted(set(lines))


@pytest.mark.parametrize("case", recorded.of("refusals"), ids=lambda case: case["name"])
def test_objects_are_refused_as_a_real_server_refuses_them(case: Json) -> None:
    group, _, kind = kind_at(case["path"])
    old = settled(case["path"], case["old"], None) if "old" in case else None
    obj = settled(case["path"], case["input"], old)

    assert comparable(causes(validation.validate(group, kind, obj, old))) == comparable(case["causes"])


@pytest.mark.parametrize("case", recorded.of("defaults"), ids=lambda case: case["name"])
def test_what_a_real_server_makes_is_accepted(case: Json) -> None:
    obj = case["output"]
    group, _, kind = recorded.kind_of(obj)
    if kind == "Job":
        obj["metadata"]["uid"] = obj["metadata"]["labels"].get("controller-uid")

    assert validation.validate(group, kind, obj, None) == []
    assert validation.validate(group, kind, obj, obj) == []


def config_map(**data: str) -> Json:
    return {"metadata": {"name": "x"}, "data": data}


def test_contents_of_more_than_a_mebibyte_are_refused() -> None:
    found = validation.validate("", "ConfigMap", config_map(a="x" * (1024 * 1024 + 1)), None)

    assert causes(found) == [
        {"reason": "FieldValueTooLong", "field": "[]", "message": "Too long: may not be more than 1048576 bytes"}
    ]
    assert validation.validate("", "ConfigMap", config_map(a="x" * 1024 * 1024), None) == []


def test_annotations_of_more_than_256_kibibytes_are_refused() -> None:
    obj = config_map()
    obj["metadata"]["annotations"] = {"a": "x" * 256 * 1024}

    assert [problem.reason for problem in validation.validate("", "ConfigMap", obj, None)] == ["FieldValueTooLong"]


def test_all_problems_are_found_at_once() -> None:
    pod = {"metadata": {"name": "X"}, "spec": {"containers": [{"name": "Y", "image": ""}], "dnsPolicy": "Z"}}

    fields = {problem.field for problem in validation.validate("", "Pod", pod, None)}

    assert {"metadata.name", "spec.containers[0].name", "spec.containers[0].image", "spec.dnsPolicy"} <= fields


def test_a_suspended_job_may_still_be_placed_elsewhere_and_a_running_one_not() -> None:
    def job(suspended: bool, **selector: str) -> Json:
        template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
        obj = {"metadata": {"name": "j"}, "spec": {"suspend": suspended, "template": template}}
        template["spec"]["nodeSelector"] = selector
        return settled("/apis/batch/v1/namespaces/default/jobs", obj, None)

    def refused(old: Json, new: Json) -> list[str]:
        return [problem.field for problem in validation.validate("batch", "Job", new, old)]

    assert refused(job(True), job(True, zone="a")) == []
    assert refused(job(False), job(False, zone="a")) == ["spec.template"]


def test_kinds_without_rules_of_their_own_still_need_a_name() -> None:
    assert [problem.field for problem in validation.validate("storage.k8s.io", "CSINode", {}, None)] == [
        "metadata.name"
    ]


def test_questions_need_no_name() -> None:
    assert validation.validate("authorization.k8s.io", "SelfSubjectAccessReview", {"spec": {}}, None) == []
