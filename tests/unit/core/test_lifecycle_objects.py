"""Section 5: names, and the objects made of a TaskSet."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from lifecycle_builders import role, taskset

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import names, objects

STATUS = api.TaskSetStatus(attempt=2, control_unit_uid="unit-uid")
ENV = [
    {"name": "TASKSET_NAMESPACE", "value": "ns"},
    {"name": "TASKSET_NAME", "value": "job"},
    {"name": "TASKROLE_NAME", "value": "worker"},
    {"name": "TASKROLE_REPLICA_INDEX", "value": "3"},
    {"name": "TASKROLE_REPLICAS", "value": "5"},
    {"name": "TASKSET_ATTEMPT", "value": "2"},
]


def made(template: dict[str, Any], name: str = "job", **fields: Any) -> Any:
    tested = role(replicas=5, template=template)
    return objects.pod(taskset(tested, status=STATUS, name=name, **fields), tested, index=3, attempt=1)


def containers(*more: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "busybox"}, *more], **spec}}


# --- names


def test_the_name_of_a_pod_says_taskset_role_attempts_and_index() -> None:
    assert names.pod("job", "worker", 2, 1, 3) == "job-worker-2-1-3"


@pytest.mark.parametrize("name", ["job", "a-1-2", "9"])
@pytest.mark.parametrize("role_name", ["worker", "w-0-0-0", "7"])
def test_the_attempts_are_read_back_from_the_name(name: str, role_name: str) -> None:
    assert names.attempts_of_pod(names.pod(name, role_name, 12, 345, 6789)) == (12, 345)


@pytest.mark.parametrize("name", ["", "job", "job-worker-0-0-x", "a-0-0"])
def test_a_name_of_another_form_tells_no_attempts(name: str) -> None:
    assert names.attempts_of_pod(name) is None


@pytest.mark.parametrize(("name", "service"), [("job", "job"), ("9lives", "t-9lives"), ("a9", "a9")])
def test_a_service_name_does_not_begin_with_a_digit(name: str, service: str) -> None:
    assert names.service(name) == service


# --- pods


def test_our_environment_comes_first_in_every_container_and_init_container() -> None:
    own = [{"name": "RANK", "value": "$(TASKROLE_REPLICA_INDEX)"}]
    template = containers({"name": "side"}, initContainers=[{"name": "fetch", "env": own}])
    template["spec"]["containers"][0]["env"] = own

    spec = made(template)["spec"]

    assert spec["containers"][0]["env"] == [*ENV, *own]
    assert spec["containers"][1]["env"] == ENV
    assert spec["initContainers"][0]["env"] == [*ENV, *own]


def test_the_labels_are_ours_beside_those_of_the_template() -> None:
    template = {**containers(), "metadata": {"labels": {"team": "a", "TaskSet": "mine"}, "annotations": {"note": "x"}}}

    metadata = made(template)["metadata"]

    assert metadata["name"] == "job-worker-2-1-3"
    assert metadata["namespace"] == "ns"
    assert metadata["labels"] == {
        "team": "a",
        "TaskSet": "job",
        "PodTaskRole": "worker",
        "PodTaskIndex": "3",
        names.UID_LABEL: "ts-uid",
        names.ATTEMPT_LABEL: "2",
    }
    assert metadata["annotations"] == {"note": "x"}


def test_the_control_unit_of_the_attempt_owns_the_pod() -> None:
    (owner,) = made(containers())["metadata"]["ownerReferences"]

    assert owner == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "c-job-2",
        "uid": "unit-uid",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_the_template_is_passed_through_and_left_as_it_is() -> None:
    template = containers(
        {"name": "side", "resources": {"limits": {"nvidia.com/gpu": 1}}},
        schedulerName="kube-batch",
        tolerations=[{"key": "x"}],
        volumes=[{"name": "v", "emptyDir": {}}],
        nodeSelector={"zone": "a"},
    )
    before = copy.deepcopy(template)

    spec = made(template)["spec"]

    assert template == before
    added = {"hostname", "subdomain", "restartPolicy", "containers"}
    assert {key: spec[key] for key in spec if key not in added} == {
        key: value for key, value in before["spec"].items() if key != "containers"
    }
    for ours, theirs in zip(spec["containers"], before["spec"]["containers"], strict=True):
        assert {key: value for key, value in ours.items() if key not in ("env", "terminationMessagePolicy")} == theirs


def test_absent_restart_policy_means_never_and_a_stated_one_stays() -> None:
    assert made(containers())["spec"]["restartPolicy"] == "Never"
    assert made(containers(restartPolicy="OnFailure"))["spec"]["restartPolicy"] == "OnFailure"


def test_the_end_of_the_log_is_the_message_unless_the_template_says_otherwise() -> None:
    template = containers({"name": "side", "terminationMessagePolicy": "File"}, initContainers=[{"name": "fetch"}])

    spec = made(template)["spec"]

    assert [c["terminationMessagePolicy"] for c in spec["containers"]] == ["FallbackToLogsOnError", "File"]
    assert spec["initContainers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_priority_class_is_set_where_the_template_has_none() -> None:
    assert "priorityClassName" not in made(containers())["spec"]
    assert made(containers(), priority_class_name="high")["spec"]["priorityClassName"] == "high"
    own = made(containers(priorityClassName="low"), priority_class_name="high")
    assert own["spec"]["priorityClassName"] == "low"


def test_peers_find_each_other_by_role_index_and_taskset() -> None:
    spec = made(containers())["spec"]

    assert (spec["hostname"], spec["subdomain"]) == ("worker-3", "job")


def test_the_subdomain_is_the_name_of_the_service_also_where_the_name_begins_with_a_digit() -> None:
    tested = taskset(role(), status=STATUS, name="9lives")

    assert made(containers(), name="9lives")["spec"]["subdomain"] == "t-9lives"
    assert objects.service(tested)["metadata"]["name"] == "t-9lives"


def test_a_container_that_is_none_is_left_to_the_server_to_refuse() -> None:
    spec = made({"spec": {"containers": ["nonsense", {"name": "main", "env": "x"}]}})["spec"]

    assert spec["containers"][0] == "nonsense"
    assert spec["containers"][1]["env"] == "x"


# --- the control unit and the Service


def test_the_taskset_owns_the_control_unit() -> None:
    unit = objects.control_unit(taskset(role(), status=STATUS), attempt=2)

    assert unit["metadata"]["name"] == "c-job-2"
    assert unit["metadata"]["labels"][names.UID_LABEL] == "ts-uid"
    (owner,) = unit["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("TaskSet", "job", "ts-uid")
    assert owner["controller"]
    assert owner["blockOwnerDeletion"]


def test_the_service_is_headless_and_publishes_pods_that_are_not_ready() -> None:
    service = objects.service(taskset(role(), status=STATUS))

    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    labels = made(containers())["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["metadata"]["ownerReferences"][0]["uid"] == "unit-uid"
