"""What pods on fake nodes do: what a kubelet would report of such a pod, and how they are told to end."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from octarbiter.testing.kubernetes import connection, fakepods
from octarbiter.testing.kubernetes.bed import Testbed

pytestmark = pytest.mark.xdist_group("bed")

Pod = dict[str, Any]


class Pods:
    """The pods of one test."""

    def __init__(self, bed: Testbed, namespace: str) -> None:
        self._bed = bed
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    def create(
        self, *command: str, annotations: dict[str, str] | None = None, env: dict[str, str] | None = None, **spec: Any
    ) -> str:
        container: dict[str, Any] = {"name": "main", "image": "busybox"}
        if command:
            container["command"] = list(command)
        container["env"] = [{"name": name, "value": value} for name, value in (env or {}).items()]
        meta: dict[str, Any] = {"annotations": annotations or {}}
        meta |= {"name": spec.pop("name")} if "name" in spec else {"generateName": "pod-"}
        if finalizers := spec.pop("finalizers", None):
            meta["finalizers"] = finalizers
        pod = {"metadata": meta, "spec": {"restartPolicy": "Never", "containers": [container]} | spec}
        made: Pod = self._bed.control_plane.request("POST", self._path, pod)
        return str(made["metadata"]["name"])

    def get(self, name: str) -> Pod | None:
        try:
            found: Pod = self._bed.control_plane.request("GET", f"{self._path}/{name}")
        except connection.ApiError as refusal:
            if refusal.status != 404:
                raise
            return None
        return found

    def delete(self, name: str) -> None:
        self._bed.control_plane.request("DELETE", f"{self._path}/{name}")

    def annotate(self, name: str, **annotations: str | None) -> None:
        patch = {"metadata": {"annotations": {f"fake.octarbiter/{key}": value for key, value in annotations.items()}}}
        self._bed.control_plane.request("PATCH", f"{self._path}/{name}", patch, connection.MERGE_PATCH)

    def patch(self, name: str, patch: dict[str, Any]) -> None:
        self._bed.control_plane.request("PATCH", f"{self._path}/{name}", patch, connection.MERGE_PATCH)

    def when(self, name: str, holds: Callable[[Pod], bool]) -> Pod:
        found: Pod = self._wait(lambda: (pod := self.get(name)) and holds(pod) and pod, f"{name} is not so in time")
        return found

    def when_phase(self, name: str, *phases: str) -> Pod:
        return self.when(name, lambda pod: pod["status"]["phase"] in phases)

    def when_gone(self, name: str) -> None:
        self._wait(lambda: self.get(name) is None, f"{name} is still there")

    def _wait(self, probe: Callable[[], Any], complaint: str) -> Any:
        deadline = time.monotonic() + 60
        while not (found := probe()):
            assert time.monotonic() < deadline, complaint
            time.sleep(0.05)
        return found


@pytest.fixture
def pods(bed: Testbed, namespace: str) -> Pods:
    return Pods(bed, namespace)


def test_a_running_pod_looks_as_a_kubelet_would_show_it(pods: Pods) -> None:
    status = pods.when_phase(pods.create(), "Running")["status"]

    assert status["hostIP"].startswith("10.128.")
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["startTime"]
    conditions = {found["type"]: found["status"] for found in status["conditions"]}
    assert conditions == dict.fromkeys(
        ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled"], "True"
    )
    container = status["containerStatuses"][0]
    assert container["containerID"].startswith("fake://")
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
    assert list(container["state"]) == ["running"]


@pytest.mark.parametrize(
    ("command", "annotations", "exit_code"),
    [
        (["sleep", "0.2"], {}, 0),
        (["sh", "-c", "sleep 0.1; exit 3"], {}, 3),
        (["sh", "-c", "sleep 0.1 && sleep 0.1; if false; then exit 4; fi; exit 5"], {}, 5),
        (["sh", "-c", "exit 6"], {}, 6),
        (["sh", "-c", "exit"], {}, 0),
        ([], {"duration": "200ms"}, 0),
        ([], {"duration": "200ms", "exit-code": "137"}, 137),
        (["sh", "-c", "sleep 1000; exit 1"], {"duration": "0s", "exit-code": "0"}, 0),
        (["sh", "-c", "sleep 0.${TENTHS}; exit $(CODE)"], {}, 7),
        ([], {"duration": "$(TENTHS)00ms", "exit-code": "$(CODE)"}, 7),
    ],
)
def test_a_pod_ends_with_the_exit_code_it_was_given(
    pods: Pods, command: list[str], annotations: dict[str, str], exit_code: int
) -> None:
    wanted = {f"fake.octarbiter/{key}": value for key, value in annotations.items()}
    # The second variable is made of the first, as the kubelet allows.
    name = pods.create(*command, annotations=wanted, env={"SEVEN": "7", "CODE": "$(SEVEN)", "TENTHS": "1"})
    status = pods.when_phase(name, "Succeeded", "Failed")["status"]

    assert status["phase"] == ("Failed" if exit_code else "Succeeded")
    container = status["containerStatuses"][0]
    ended = container["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (exit_code, "Error" if exit_code else "Completed")
    assert ended["containerID"] == container["containerID"]
    assert ended["startedAt"] <= ended["finishedAt"]
    assert not container["ready"]
    reasons = {found["type"]: found.get("reason") for found in status["conditions"] if found["status"] == "False"}
    assert reasons["Ready"] == reasons["ContainersReady"] == ("PodFailed" if exit_code else "PodCompleted")


def test_a_list_of_exit_codes_or_durations_gives_each_attempt_and_index_its_own(pods: Pods) -> None:
    told = {fakepods.EXIT_CODE: "9;$(ONE),2,3/4", fakepods.DURATION: "0s/0s,forever;0s"}
    codes = {(0, 0, 0): 9, (0, 1, 1): None, (1, 0, 0): 1, (1, 1, 0): 2, (2, 7, 0): 3, (1, 5, 1): 4, (1, 0, 12): 4}
    for numbers in codes:
        pods.create(name="-".join(("a-b", *map(str, numbers))), annotations=told, env={"ONE": "1"})

    for numbers, code in codes.items():
        name = "-".join(("a-b", *map(str, numbers)))
        status = pods.when_phase(name, "Failed" if code else "Running")["status"]
        state = status["containerStatuses"][0]["state"]
        assert (name, state.get("terminated", {}).get("exitCode")) == (name, code)


def test_a_pod_that_nobody_told_to_end_runs_on_and_changes_do_not_prolong_a_life(pods: Pods) -> None:
    forever = [pods.create(), pods.create("sleep", "infinity"), pods.create("sleep", "1", annotations=_told("forever"))]
    mortal = pods.create("sleep", "2")
    while (found := pods.get(mortal)) and found["status"]["phase"] in ("Pending", "Running"):
        pods.annotate(mortal, touched=str(time.monotonic()))

    assert {(pods.get(name) or {})["status"]["phase"] for name in forever} == {"Running"}


def test_a_termination_message_is_passed_on(pods: Pods) -> None:
    words = 'line one\nline "two": {}'
    name = pods.create("sh", "-c", "exit 1", annotations={fakepods.MESSAGE: words})
    status = pods.when_phase(name, "Failed")["status"]

    assert status["containerStatuses"][0]["state"]["terminated"]["message"] == words


def test_all_containers_end_alike_and_init_containers_have_completed(pods: Pods) -> None:
    containers = [{"name": "main", "image": "a", "command": ["sh", "-c", "sleep 0.1; exit 2"]}]
    containers.append({"name": "other", "image": "b"})
    init = [{"name": "setup", "image": "c"}, {"name": "sidecar", "image": "d", "restartPolicy": "Always"}]
    status = pods.when_phase(pods.create(containers=containers, initContainers=init), "Failed")["status"]

    codes = {found["name"]: found["state"]["terminated"]["exitCode"] for found in status["containerStatuses"]}
    assert codes == {"main": 2, "other": 2}
    codes = {found["name"]: found["state"]["terminated"]["exitCode"] for found in status["initContainerStatuses"]}
    assert codes == {"setup": 0, "sidecar": 0}


def test_a_pod_that_restarts_on_failure_does_not_fail(pods: Pods) -> None:
    name = pods.create("sh", "-c", "exit 9", restartPolicy="OnFailure")
    pod = pods.when(name, lambda pod: pod["status"].get("containerStatuses", [{}])[0].get("restartCount") == 1)

    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 9


def test_a_deleted_pod_is_gone(pods: Pods) -> None:
    name = pods.create()
    pods.when_phase(name, "Running")
    pods.delete(name)

    pods.when_gone(name)


def test_a_pod_that_lingers_runs_on_after_its_deletion(pods: Pods) -> None:
    name = pods.create(annotations={fakepods.LINGERS: "10m"})
    pods.when_phase(name, "Running")
    pods.delete(name)
    # The end of a pod that was started later is the proof that the deleted one had its time.
    pods.when_phase(pods.create("sleep", "1"), "Succeeded")

    pod = pods.get(name)
    assert pod is not None
    assert pod["status"]["phase"] == "Running"
    pods.annotate(name, lingers=None)
    pods.when_gone(name)


def test_a_finalizer_keeps_a_deleted_pod_which_shows_its_end(pods: Pods) -> None:
    name = pods.create(finalizers=["example.com/kept"])
    pods.when_phase(name, "Running")
    pods.delete(name)
    pod = pods.when(name, lambda pod: pod["metadata"].get("deletionGracePeriodSeconds") == 0)

    assert pod["status"]["phase"] == "Failed"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    pods.patch(name, {"metadata": {"finalizers": None}})
    pods.when_gone(name)


def test_a_stuck_pod_runs_but_its_deletion_is_never_confirmed_until_it_comes_loose(pods: Pods) -> None:
    stuck = pods.create("sleep", "1", annotations={fakepods.STUCK: "true"})
    pods.when_phase(stuck, "Running")
    pods.delete(stuck)
    # The end of a pod that was started later is the proof that the stuck one had its time.
    pods.when_phase(pods.create("sleep", "1.5"), "Succeeded")

    pod = pods.get(stuck)
    assert pod is not None
    assert pod["metadata"]["deletionTimestamp"]
    assert pod["status"]["phase"] == "Running"
    pods.annotate(stuck, stuck=None)
    pods.when_gone(stuck)


def test_from_a_lost_node_nothing_is_heard_until_it_is_back(bed: Testbed, pods: Pods) -> None:
    name = bed.fake_nodes.names[0]
    ending, deleted = pods.create("sleep", "2", nodeName=name), pods.create(nodeName=name)
    pods.when_phase(ending, "Running")
    pods.when_phase(deleted, "Running")
    bed.fake_nodes.lose_node(name)
    pods.delete(deleted)
    pods.when_phase(pods.create("sleep", "2.5", nodeName=bed.fake_nodes.names[1]), "Succeeded")
    node = bed.control_plane.request("GET", f"/api/v1/nodes/{name}")

    assert {"type": "Ready", "status": "Unknown"}.items() <= node["status"]["conditions"][0].items()
    assert [(pods.get(pod) or {})["status"]["phase"] for pod in (ending, deleted)] == ["Running", "Running"]
    bed.fake_nodes.restore_node(name)
    pods.when_phase(ending, "Succeeded")
    pods.when_gone(deleted)


def test_an_evicted_pod_is_gone(bed: Testbed, namespace: str, pods: Pods) -> None:
    name = pods.create()
    pods.when_phase(name, "Running")
    bed.fake_nodes.evict(namespace, name)

    pods.when_gone(name)


def test_added_nodes_carry_what_they_were_given_and_can_be_removed(bed: Testbed, pods: Pods) -> None:
    removed, name = bed.fake_nodes.add(2, {"example.com/widget": "3"})
    bed.fake_nodes.remove_node(removed)
    wants = {"requests": {"example.com/widget": "3"}, "limits": {"example.com/widget": "3"}}
    pod = pods.create(containers=[{"name": "main", "image": "a", "resources": wants}])

    assert pods.when_phase(pod, "Running")["spec"]["nodeName"] == name
    with pytest.raises(connection.ApiError, match="not found"):
        bed.control_plane.request("GET", f"/api/v1/nodes/{removed}")
    assert not {removed, name} & set(bed.fake_nodes.add(1))


def _told(duration: str) -> dict[str, str]:
    return {fakepods.DURATION: duration}
