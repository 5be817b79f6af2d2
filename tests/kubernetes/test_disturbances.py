"""What befalls running TaskSets, done to them for real on fake nodes: pods taken away, nodes lost, creations refused,
deletions. After each, one pod per replica, right counters and the right end."""

import base64
import contextlib
import http.server
import json
import re
import ssl
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventual import eventually
from taskset_bench import Bench, Json, counts, replicas_of, retries, role

from octarbiter.api import scheme
from octarbiter.core.lifecycle import names
from octarbiter.testing.kubernetes import certificates, fakepods
from octarbiter.testing.kubernetes.connection import MERGE_PATCH, ApiError

pytestmark = pytest.mark.xdist_group("bed")

NOBODY = {"schedulerName": "nobody"}
"""Pods stay unscheduled until the test binds them."""


# --- somebody deletes a pod


def test_an_unscheduled_pod_that_somebody_deletes_is_replaced_uncharged(tasksets: Bench) -> None:
    tasksets.submit(role(pod=NOBODY, retryPolicy=retries(1, delay=600)))
    first = tasksets.when_pod(phase="Pending")
    tasksets.when(lambda status: replicas_of(status)[0]["phase"].endswith("Preparing"), "an unscheduled replica")
    tasksets.delete_pod(first)
    second = tasksets.when_pod(phase="Pending", not_uid=first["metadata"]["uid"])
    tasksets.bind(second, tasksets.bed.fake_nodes.names[0])
    tasksets.end()

    replica = replicas_of(tasksets.when_ended("Succeeded"))[0]
    assert (counts(replica), replica["podReason"]) == ((0, 1), "Deleted")
    assert tasksets.made() == ["job-worker-0-0-0", "job-worker-0-1-0"]


def test_an_assigned_pod_that_somebody_deletes_is_replaced_when_its_node_has_let_go(tasksets: Bench) -> None:
    # A silent pod is not started by its node, nor is its end confirmed.
    tasksets.submit(role(annotations={fakepods.SILENT: "true"}))
    tasksets.when(lambda status: replicas_of(status)[0]["phase"].endswith("Assigned"), "an assigned replica")
    first = tasksets.when_pod(phase="Pending")
    tasksets.delete_pod(first)
    tasksets.when_told("waits until pod job-worker-0-0-0 has stopped")
    assert len(tasksets.pods()) == 1
    speak: dict[str, str | None] = {fakepods.SILENT: None, fakepods.SILENCED: None}
    tasksets.annotate(first, speak)
    tasksets.annotate(tasksets.when_pod(phase="Pending", not_uid=first["metadata"]["uid"]), speak)
    tasksets.end()

    assert counts(replicas_of(tasksets.when_ended("Succeeded"))[0]) == (0, 1)


@pytest.mark.parametrize("grace_s", [None, 0])
def test_a_running_pod_that_somebody_deletes_is_replaced_uncharged(tasksets: Bench, grace_s: int | None) -> None:
    tasksets.submit(role(replicas=2))
    before = tasksets.when_running("worker", 2)
    tasksets.delete_pod(tasksets.when_pod(index=1), grace_s)
    tasksets.when_pod(index=1, not_uid=before[1])
    after = tasksets.when_running("worker", 2)
    tasksets.end(index=0)
    tasksets.end(index=1)

    assert (after[0] == before[0], after[1] == before[1]) == (True, False)
    replicas = replicas_of(tasksets.when_ended("Succeeded"))
    assert [counts(replicas[index]) for index in (0, 1)] == [(0, 0), (0, 1)]
    assert len(tasksets.made()) == 3


def test_finished_pods_that_somebody_deletes_keep_their_outcome(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=3, retryPolicy=retries(1, delay=5)))
    tasksets.when_running("worker", 3)
    tasksets.end(index=0)
    tasksets.end(index=1, exit_code=3)
    tasksets.when(
        lambda status: (
            replicas_of(status)[1]["phase"].endswith("RetryPending")
            and replicas_of(status)[0]["phase"].endswith("ReplicaCompleted")
        ),
        "one replica done and one to be retried",
    )
    tasksets.delete_pod(tasksets.when_pod(index=0, phase="Succeeded"))
    tasksets.delete_pod(tasksets.when_pod(index=1, phase="Failed"))
    tasksets.end(index=1)
    tasksets.end(index=2)

    replicas = replicas_of(tasksets.when_ended("Succeeded"))
    assert [counts(replicas[index]) for index in range(3)] == [(0, 0), (1, 0), (0, 0)]
    assert len(tasksets.made()) == 4


# --- pods are taken


def test_an_evicted_pod_is_replaced_uncharged_and_the_reason_told(tasksets: Bench) -> None:
    tasksets.submit(role())
    before = tasksets.when_running("worker", 1)
    tasksets.bed.fake_nodes.evict(tasksets.namespace, "job-worker-0-0-0")
    tasksets.when_pod(not_uid=before[0])
    tasksets.end()

    status = tasksets.when_ended("Succeeded")
    replica = replicas_of(status)[0]
    assert (counts(replica), replica["podReason"]) == ((0, 1), "EvictionByEvictionAPI")
    assert "preemptCount" not in status


def test_a_pod_preempted_by_the_scheduler_is_counted_and_runs_again_when_there_is_room(tasksets: Bench) -> None:
    tasksets.needs_kubernetes("its scheduler does not preempt")
    slot = f"example.com/{tasksets.namespace}"
    (node,) = tasksets.bed.fake_nodes.add(1, {slot: "1"})
    wants = {"resources": {"limits": {slot: "1"}}}
    with tasksets.priority_class(1000) as important:
        tasksets.submit(role(container=wants))
        tasksets.when_running("worker", 1)
        pod = {
            "metadata": {"name": "important"},
            "spec": {"priorityClassName": important, "containers": [{"name": "main", "image": "busybox", **wants}]},
        }
        rival = tasksets.request("POST", scheme.PODS.path(tasksets.namespace), pod)
        replica = replicas_of(tasksets.when_told(f"Insufficient {slot}"))[0]
        assert (counts(replica), replica["podReason"]) == ((0, 1), "PreemptionByScheduler")
        tasksets.delete_pod(rival)
        tasksets.end()
        status = tasksets.when_ended("Succeeded")
    tasksets.bed.fake_nodes.remove_node(node)

    assert status["preemptCount"] == 1
    assert counts(replicas_of(status)[0]) == (0, 1)


# --- nodes


def test_pods_of_a_lost_node_are_waited_for_or_replaced_by_force_after_their_timeout(tasksets: Bench) -> None:
    tasksets.needs_kubernetes("one agent plays all nodes, so none can be lost alone")
    nodes = tasksets.bed.fake_nodes
    (lost,) = nodes.add(1)
    there = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [lost]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": there}]}
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    on_it: Json = {
        "affinity": {"nodeAffinity": preferred},
        "tolerations": [{**unreachable, "tolerationSeconds": 1}],
        "terminationGracePeriodSeconds": 1,
    }
    elsewhere = {"nodeSelector": {"kubernetes.io/hostname": nodes.names[0]}, "terminationGracePeriodSeconds": 1}
    tasksets.submit(
        role("patient", pod=on_it),
        role("bold", pod=on_it, deletionTimeoutSeconds=2),
        # Its pod is as stuck as the others', but its node is well, and knows best.
        role("stuck", pod=elsewhere, deletionTimeoutSeconds=2, annotations={fakepods.STUCK: "true"}),
    )
    first = {name: tasksets.when_pod(name) for name in ("patient", "bold", "stuck")}
    assert [first[name]["spec"]["nodeName"] for name in ("patient", "bold")] == [lost, lost]
    tasksets.delete_pod(first["stuck"])
    nodes.lose_node(lost)
    bold = tasksets.when_pod("bold", not_uid=first["bold"]["metadata"]["uid"])

    status = tasksets.when_told(f"pod job-patient-0-0-0 has stopped on node {lost}, which is not Ready")
    assert replicas_of(status, "bold")[0]["podReason"] == "DeletionByTaintManager"
    assert bold["spec"]["nodeName"] != lost
    assert [len(tasksets.pods(name)) for name in ("patient", "stuck")] == [1, 1]
    nodes.restore_node(lost)
    tasksets.annotate(first["stuck"], {fakepods.STUCK: None, fakepods.SILENCED: None})
    for name in first:
        tasksets.when_pod(name, not_uid=first[name]["metadata"]["uid"])
        tasksets.end(name)
    status = tasksets.when_ended("Succeeded")
    nodes.remove_node(lost)
    # A node that has just come back may lose a pod once more.
    retried, lost_pods = zip(*(counts(replicas_of(status, name)[0]) for name in first), strict=True)
    assert (set(retried), min(lost_pods)) == ({0}, 1)


def test_a_pod_of_unknown_phase_is_waited_for(tasksets: Bench) -> None:
    tasksets.needs_kubernetes("the agent knows the phase of every pod, and corrects it")
    tasksets.submit(role())
    tasksets.when_running("worker", 1)
    pod = tasksets.when_pod()
    tasksets.set_status(pod, phase="Unknown")
    tasksets.when_told("does not answer for pod job-worker-0-0-0")
    tasksets.set_status(pod, phase="Running")
    tasksets.end()

    assert counts(replicas_of(tasksets.when_ended("Succeeded"))[0]) == (0, 0)
    assert tasksets.made() == ["job-worker-0-0-0"]


# --- the API server refuses


def test_pods_over_quota_wait_while_the_others_run_until_it_is_raised(tasksets: Bench) -> None:
    path = f"/api/v1/namespaces/{tasksets.namespace}/resourcequotas"
    tasksets.request("POST", path, {"metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}}})
    eventually(lambda: tasksets.request("GET", f"{path}/two")["status"].get("hard"), "the quota to count")
    tasksets.submit(role(replicas=4))
    tasksets.when_told("quota: 2 of 4 pods refused: exceeded quota: two, requested: pods=1")
    eventually(lambda: _running(tasksets) == 2, "two that run")
    tasksets.request("PATCH", f"{path}/two", {"spec": {"hard": {"pods": "4"}}}, MERGE_PATCH)
    tasksets.when_running("worker", 4)
    for index in range(4):
        tasksets.end(index=index)

    assert all(counts(each) == (0, 0) for each in replicas_of(tasksets.when_ended("Succeeded")).values())
    assert len(tasksets.made()) == 4


def test_pods_denied_by_an_admission_policy_are_tried_again(tasksets: Bench) -> None:
    tasksets.needs_kubernetes("it has no ValidatingAdmissionPolicy")
    with _admission_policy(tasksets, "object.metadata.labels['PodTaskIndex'] != '1'", "not this one"):
        tasksets.submit(role(replicas=3))
        tasksets.when_told("denied: 1 of 3 pods refused: ", "not this one")
        eventually(lambda: _running(tasksets) == 2, "two that run")
    for index in range(3):
        tasksets.end(index=index)

    assert all(counts(each) == (0, 0) for each in replicas_of(tasksets.when_ended("Succeeded")).values())


def test_pods_denied_by_a_webhook_are_tried_again(tasksets: Bench) -> None:
    with _webhook(tasksets, "worker-2 must wait") as denying:
        tasksets.submit(role(replicas=3))
        tasksets.when_told("denied: 1 of 3 pods refused: ", "worker-2 must wait")
        eventually(lambda: _running(tasksets) == 2, "two that run")
        eventually(lambda: denying.count > 1, "another try")
        denying.allow.set()
        for index in range(3):
            tasksets.end(index=index)

        assert all(counts(each) == (0, 0) for each in replicas_of(tasksets.when_ended("Succeeded")).values())


def test_an_invalid_pod_template_fails_the_taskset_once_in_the_servers_words(tasksets: Bench) -> None:
    before = _refused_creations(tasksets)
    mounts = [{"name": "nowhere", "mountPath": "/x"}]
    tasksets.submit(role(replicas=3, container={"volumeMounts": mounts}), role("fine"), retryPolicy=retries(3))
    status = tasksets.when_ended("Failed")

    assert 'spec.containers[0].volumeMounts[0].name: Not found: "nowhere"' in status["stateMessage"]
    assert (status["totalRetriedCount"], status["trigger"]["role"]) == (0, "worker")
    # Each replica was tried at most once.
    assert 1 <= _refused_creations(tasksets) - before <= 3
    eventually(lambda: tasksets.left() == [], "everything to be gone")


def test_an_object_that_does_not_say_which_taskset_it_is_of_is_overlooked(tasksets: Bench) -> None:
    stray = {"metadata": {"name": "stray", "labels": {names.UID_LABEL: "of-nobody"}}}
    tasksets.request("POST", scheme.CONFIGMAPS.path(tasksets.namespace), stray)
    tasksets.submit(role(duration="0s"))

    # Control units are seen after the stray one; that the controller stumbled over nothing is checked for every test.
    tasksets.when_ended("Succeeded")
    assert tasksets.request("GET", scheme.CONFIGMAPS.path(tasksets.namespace, "stray"))


# --- deletions


@pytest.mark.parametrize("propagation", ["Background", "Orphan"])
def test_a_lost_control_unit_costs_the_attempt_but_no_retry(tasksets: Bench, propagation: str) -> None:
    tasksets.submit(role(replicas=3))
    before = tasksets.when_running("worker", 3)
    path = scheme.CONFIGMAPS.path(tasksets.namespace, "c-job-0")
    unit = tasksets.request("GET", path)["metadata"]["uid"]
    assert tasksets.status()["controlUnitUID"] == unit
    tasksets.request("DELETE", f"{path}?propagationPolicy={propagation}")
    eventually(lambda: len(tasksets.made()) == 6, "the pods of another attempt")
    after = tasksets.when_running("worker", 3)
    # Not one pod of the lost attempt is left.
    assert {pod["metadata"]["uid"] for pod in tasksets.pods()} == set(after.values())
    assert not set(after.values()) & set(before.values())
    for index in range(3):
        tasksets.end(index=index)

    status = tasksets.when_ended("Succeeded")
    assert status["totalRetriedCount"] == 0
    assert [record["state"] for record in status["history"]] == ["Lost", "Succeeded"]
    assert sorted(tasksets.made()[3:]) == [f"job-worker-1-0-{index}" for index in range(3)]
    assert tasksets.pods() == []
    # A Service that somebody has orphaned stays: it is nobody's.
    stays = [] if propagation == "Background" else ["Service job"]
    eventually(lambda: tasksets.left() == stays, lambda: f"the rest to be gone; there are {tasksets.left()}")


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
def test_of_a_taskset_deleted_while_it_runs_nothing_is_left_and_nothing_new_is_made(
    tasksets: Bench, propagation: str
) -> None:
    tasksets.submit(role(replicas=8), role("ps", 2))
    tasksets.when_running("worker", 8)
    tasksets.when_running("ps", 2)
    tasksets.delete(propagation=propagation)
    if propagation == "Foreground":
        assert tasksets.find() is not None
    tasksets.when_gone()
    eventually(lambda: tasksets.left() == [], lambda: f"all to be gone; there are {tasksets.left()}")

    assert len(tasksets.made()) == 10


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
def test_a_taskset_deleted_while_its_pods_are_being_made_leaves_none_of_them(tasksets: Bench, propagation: str) -> None:
    tasksets.submit(role(replicas=100))
    eventually(tasksets.pods, "a first pod")
    tasksets.delete(propagation=propagation)
    tasksets.when_gone()
    eventually(lambda: tasksets.left() == [], lambda: f"all to be gone; there are {tasksets.left()}")


def test_a_taskset_made_again_under_the_same_name_runs_from_scratch(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=2, annotations={fakepods.STUCK: "true"}), retryPolicy=retries(1))
    tasksets.when_running("worker", 2)
    old = tasksets.pods()
    tasksets.delete()
    tasksets.when_gone()
    uid = tasksets.submit(role(replicas=2))
    tasksets.when_told("exists already")
    for pod in old:
        tasksets.annotate(pod, {fakepods.STUCK: None, fakepods.SILENCED: None})
    tasksets.when_running("worker", 2)
    assert {pod["metadata"]["labels"]["octopus.openi.pcl.cn/taskset-uid"] for pod in tasksets.pods()} == {uid}
    for index in range(2):
        tasksets.end(index=index)

    status = tasksets.when_ended("Succeeded")
    assert [counts(each) for each in replicas_of(status).values()] == [(0, 0), (0, 0)]
    tasksets.check_that_all_is_gone()


# --- the means


def _running(tasksets: Bench) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in tasksets.pods())


def _probe(tasksets: Bench, labels: Json) -> None:
    """Would such a pod be taken?"""
    pod = {
        "metadata": {"name": "probe", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
    tasksets.request("POST", f"{scheme.PODS.path(tasksets.namespace)}?dryRun=All", pod)


def _is_denied(tasksets: Bench, labels: Json) -> bool:
    try:
        _probe(tasksets, labels)
    except ApiError:
        return True
    return False


@contextlib.contextmanager
def _admission_policy(tasksets: Bench, expression: str, message: str) -> Iterator[None]:
    root, name = "/apis/admissionregistration.k8s.io/v1", tasksets.namespace
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    here = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": here},
            "validations": [{"expression": expression, "message": message}],
        },
    }
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    tasksets.request("POST", f"{root}/validatingadmissionpolicies", policy)
    tasksets.request("POST", f"{root}/validatingadmissionpolicybindings", binding)
    eventually(lambda: _is_denied(tasksets, {"PodTaskIndex": "1"}), "the policy to be in force")
    try:
        yield
    finally:
        tasksets.request("DELETE", f"{root}/validatingadmissionpolicybindings/{name}")
        tasksets.request("DELETE", f"{root}/validatingadmissionpolicies/{name}")


class _Denying(http.server.ThreadingHTTPServer):
    """An admission webhook against replicas of index 2, until it may `allow` them."""

    def __init__(self, message: str) -> None:
        super().__init__(("127.0.0.1", 0), _Review)
        self.message = message
        self.count = 0
        self.allow = threading.Event()


class _Review(http.server.BaseHTTPRequestHandler):
    server: _Denying

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        denied = request["object"]["metadata"]["labels"].get("PodTaskIndex") == "2" and not self.server.allow.is_set()
        self.server.count += denied
        response: Json = {"uid": request["uid"], "allowed": not denied}
        if denied:
            response["status"] = {"message": self.server.message}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        answer = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def _webhook(tasksets: Bench, message: str) -> Iterator[_Denying]:
    name = tasksets.namespace
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        authority = certificates.Authority(Path(directory))
        context.load_cert_chain(*authority.issue_server("webhook", ["127.0.0.1"]))
    server = _Denying(message)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bundle = base64.b64encode(authority.pem).decode()
    hook = {
        "name": f"pods.{name}.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": bundle},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    tasksets.request("POST", path, {"metadata": {"name": name}, "webhooks": [hook]})
    try:
        eventually(lambda: _is_denied(tasksets, {"PodTaskIndex": "2"}), "the webhook to be asked")
        server.count = 0
        yield server
    finally:
        tasksets.request("DELETE", f"{path}/{name}")
        server.shutdown()
        server.server_close()


def _refused_creations(tasksets: Bench) -> int:
    """Of pods, for being invalid, since the API server was started: as it counts them itself."""
    figures = tasksets.request("GET", "/metrics")
    pattern = re.compile(r'apiserver_request_total\{code="422",.*resource="pods",.*verb="POST",.*\} (\d+)')
    return sum(int(count) for count in pattern.findall(figures))
