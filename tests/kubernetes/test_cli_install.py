"""`octo install` on a cluster of its own, one that also enforces who may block whose deletion."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import yaml
from octo_runner import Octo, job, kubeconfig_of_account

from octarbiter.api import kinds, scheme
from octarbiter.cli import installation
from octarbiter.cli.exits import Exit
from octarbiter.testing.kubernetes.controlplane import ControlPlane
from octarbiter.testing.kubernetes.fakenodes import FakeNodes

pytestmark = pytest.mark.xdist_group("install")

ACCOUNT = f"system:serviceaccount:{installation.NAMESPACE}:{installation.NAME}"
OURS = "octopus.openi.pcl.cn"
LEASES = "coordination.k8s.io"

# Every request that the controller sends, and so all that it may.
NEEDED = {
    (OURS, "tasksets"): {"get", "list", "watch", "delete"},
    (OURS, "tasksets/status"): {"patch"},
    (OURS, "tasksets/finalizers"): {"update"},
    ("", "pods"): {"get", "list", "watch", "create", "delete", "deletecollection"},
    ("", "configmaps"): {"get", "list", "watch", "create", "patch", "delete"},
    ("", "configmaps/finalizers"): {"update"},
    ("", "services"): {"get", "list", "watch", "create"},
    ("", "nodes"): {"list", "watch"},
    ("", "events"): {"create", "patch"},
}
FORBIDDEN = [
    *[
        ("", r)
        for r in ("secrets", "pods/exec", "pods/log", "pods/status", "pods/eviction", "pods/ephemeralcontainers")
    ],
    *[("", r) for r in ("namespaces", "serviceaccounts", "serviceaccounts/token", "nodes/status", "services/status")],
    *[("rbac.authorization.k8s.io", r) for r in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")],
    *[("apps", "deployments"), ("apiextensions.k8s.io", "customresourcedefinitions"), (LEASES, "leases")],
]
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "escalate", "bind"]


@pytest.fixture(scope="module")
def plane(programs: None) -> Iterator[ControlPlane]:
    flags = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
    with ControlPlane(apiserver_flags=flags) as made, FakeNodes(made, 4):
        yield made


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> ControlPlane:
    octo = Octo(plane, "default")
    before = octo("get")
    assert "octo install --apply" in before.stderr
    assert before.exit_code == Exit.REFUSED
    said = octo("install", "--apply", "-n", installation.NAMESPACE, "--image", "registry.invalid/octarbiter:1")
    assert said.exit_code == Exit.OK, said.output
    # At once: the command has waited until the new kind is served.
    assert octo("get").exit_code == Exit.OK
    return plane


def may(plane: ControlPlane, group: str, resource: str, verb: str, namespace: str = "anywhere", name: str = "") -> bool:
    kind, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": kind, "subresource": subresource, "verb": verb}
    attributes |= {"namespace": namespace, "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "groups": ["system:serviceaccounts"], "resourceAttributes": attributes},
    }
    answer = plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def test_the_account_may_do_what_the_controller_does_and_nothing_more(installed: ControlPlane) -> None:
    everything = [*NEEDED, *FORBIDDEN]
    allowed = {(*what, verb) for what, verb in product(everything, VERBS) if may(installed, *what, verb)}

    assert allowed == {(*what, verb) for what, verbs in NEEDED.items() for verb in verbs}


def test_the_account_holds_its_own_lease_in_its_own_namespace(installed: ControlPlane) -> None:
    lease = installation.LEASE_RULES[1]["resourceNames"][0]
    home = {
        verb: may(installed, LEASES, "leases", verb, installation.NAMESPACE, "" if verb == "create" else lease)
        for verb in VERBS
    }

    assert {verb for verb, allowed in home.items() if allowed} == {"get", "create", "update"}
    assert not may(installed, LEASES, "leases", "get", installation.NAMESPACE, "kube-scheduler")
    assert not may(installed, LEASES, "leases", "update", "kube-system", lease)


def test_kubectl_says_the_same(installed: ControlPlane) -> None:
    def can_i(*question: str) -> str:
        return installed.kubectl("auth", "can-i", f"--as={ACCOUNT}", *question, check=False).stdout.strip()

    assert can_i("create", "pods", "--all-namespaces") == "yes"
    assert can_i("patch", "tasksets.octopus.openi.pcl.cn", "--subresource=status", "-A") == "yes"
    assert can_i("get", "secrets", "--all-namespaces") == "no"
    assert can_i("*", "*", "--all-namespaces") == "no"


def test_installing_again_changes_nothing_and_an_upgrade_changes_what_it_must(installed: ControlPlane) -> None:
    octo = Octo(installed, "default")
    path = f"/apis/apps/v1/namespaces/{installation.NAMESPACE}/deployments/{installation.NAME}"
    generations = []
    for image in ("registry.invalid/octarbiter:1", "registry.invalid/octarbiter:1", "registry.invalid/octarbiter:2"):
        said = octo("install", "--apply", "-n", installation.NAMESPACE, "--image", image)
        assert said.exit_code == Exit.OK
        generations.append(installed.request("GET", path)["metadata"]["generation"])

    assert generations == [1, 1, 2]
    assert installed.request("GET", scheme.CRDS.path(name=kinds.TASKSET.definition))["metadata"]["generation"] == 1


def test_kubectl_takes_the_printed_manifest_and_restricted_namespaces_admit_the_controller(
    installed: ControlPlane,
) -> None:
    space = {"pod-security.kubernetes.io/enforce": "restricted"}
    installed.request("POST", "/api/v1/namespaces", {"metadata": {"name": "restricted", "labels": space}})
    printed = Octo(installed, "restricted")("install", "-n", "restricted").stdout
    installed.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-", input=printed)
    deployment = list(yaml.safe_load_all(printed))[-1]
    template = deployment["spec"]["template"]
    pod = {"metadata": {"name": "it", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    pod["spec"]["serviceAccountName"] = "default"
    installed.kubectl("wait", "--for=create", "-n", "restricted", "serviceaccount/default")
    made = installed.request("POST", "/api/v1/namespaces/restricted/pods?dryRun=All", pod)

    assert made["spec"]["containers"][0]["command"] == ["octo", "controller"]


@pytest.mark.parametrize(
    ("replicas", "retries", "story"), [(3, 1, {"AttemptFailed", "Retried", "Failed"}), (501, 0, {"Failed"})]
)
def test_the_controller_brings_a_taskset_to_its_end_with_these_rights_alone(
    installed: ControlPlane, tmp_path: Path, replicas: int, retries: int, story: set[str]
) -> None:
    """Retries, control units, Services, pods, lists of replicas, events, lease and the deletion at the end."""
    kubeconfig = kubeconfig_of_account(installed, installation.NAMESPACE, installation.NAME, tmp_path / "kubeconfig")
    octo = Octo(installed, installed.create_namespace())
    body = job(retryPolicy={"retry": True, "maxRetryCount": retries}, ttlSecondsAfterFinished=0)
    container = body["spec"]["roles"][0]["template"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", "exit 3"]
    body["spec"]["roles"][0] |= {"replicas": replicas, "completionPolicy": {"minSucceeded": 1, "maxFailed": replicas}}
    argv = [sys.executable, "-m", "octarbiter.cli.main", "controller", "--kubeconfig", str(kubeconfig)]
    argv += ["--namespace", octo.namespace, "--lease-namespace", installation.NAMESPACE, "--health-address", ""]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(argv, stderr=log) as controller:
        try:
            octo.create(body)
            said = octo("wait", "demo", "--for=deleted", "--timeout", "250s")
        finally:
            controller.terminate()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    events = installed.request("GET", scheme.EVENTS.path(octo.namespace))["items"]

    assert said.exit_code == Exit.OK, lines
    assert [line for line in lines if "forbidden" in json.dumps(line).lower()] == []
    assert story <= {event["reason"] for event in events}
