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
from octarbiter.cli.deployments import Part
from octarbiter.cli.exits import Exit
from octarbiter.testing.kubernetes.controlplane import ControlPlane
from octarbiter.testing.kubernetes.fakenodes import FakeNodes

pytestmark = pytest.mark.xdist_group("install")

OURS = "octopus.openi.pcl.cn"
QUEUES = "arbitrator.incubator.k8s.io"
LEASES = "coordination.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
CERTIFICATES = "octarbiter-webhook-tls"

# Every request that the controller sends, and so all that it may.
CONTROLLER = {
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
# The same of the arbitrator.
ARBITRATOR = {
    (QUEUES, "queues"): {"list", "watch", "create"},
    (QUEUES, "queues/status"): {"update"},
    (QUEUES, "queues/finalizers"): {"update"},
    (QUEUES, "queuejobs"): {"list", "watch", "create"},
    (QUEUES, "queuejobs/status"): {"update"},
    (QUEUES, "tasksets"): {"list", "watch", "create"},
    (QUEUES, "tasksets/status"): {"update"},
    (OURS, "tasksets"): {"list", "watch", "patch"},
    (OURS, "tasksets/finalizers"): {"update"},
    ("batch", "jobs"): {"list", "watch", "patch"},
    ("", "nodes"): {"list", "watch"},
    ("", "namespaces"): {"list", "watch"},
    ("", "pods"): {"list", "watch", "patch"},
    ("", "pods/eviction"): {"create"},
    ("", "resourcequotas"): {"list", "watch", "create", "patch", "delete"},
    ("", "events"): {"create", "patch"},
    ("scheduling.k8s.io", "priorityclasses"): {"list", "watch"},
    (ADMISSION, "mutatingwebhookconfigurations"): {"get", "create", "patch"},
    (ADMISSION, "validatingwebhookconfigurations"): {"get", "create", "patch"},
}
OTHERS = [
    *[("", r) for r in ("secrets", "pods/exec", "pods/log", "pods/status", "pods/binding", "pods/ephemeralcontainers")],
    *[("", r) for r in ("serviceaccounts", "serviceaccounts/token", "nodes/status", "services/status")],
    *[("", "resourcequotas/status"), ("batch", "jobs/status"), ("policy", "poddisruptionbudgets")],
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


def may(
    plane: ControlPlane, part: Part, group: str, resource: str, verb: str, namespace: str = "anywhere", name: str = ""
) -> bool:
    kind, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": kind, "subresource": subresource, "verb": verb}
    attributes |= {"namespace": namespace, "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account(part), "groups": ["system:serviceaccounts"], "resourceAttributes": attributes},
    }
    answer = plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def account(part: Part) -> str:
    return f"system:serviceaccount:{installation.NAMESPACE}:{part.name}"


def verbs_for(plane: ControlPlane, part: Part, group: str, resource: str, namespace: str, name: str) -> set[str]:
    """What it may do with one object, also create it."""
    return {
        verb for verb in VERBS if may(plane, part, group, resource, verb, namespace, "" if verb == "create" else name)
    }


@pytest.mark.parametrize(
    ("part", "needed"),
    [
        pytest.param(installation.CONTROLLER, CONTROLLER, id="controller"),
        pytest.param(installation.ARBITRATOR, ARBITRATOR, id="arbitrator"),
    ],
)
def test_each_account_may_do_what_its_process_does_and_nothing_more(
    installed: ControlPlane, part: Part, needed: dict[tuple[str, str], set[str]]
) -> None:
    everything = dict.fromkeys([*CONTROLLER, *ARBITRATOR, *OTHERS])
    allowed = {(*what, verb) for what, verb in product(everything, VERBS) if may(installed, part, *what, verb)}

    assert allowed == {(*what, verb) for what, verbs in needed.items() for verb in verbs}


@pytest.mark.parametrize("part", [installation.CONTROLLER, installation.ARBITRATOR], ids=lambda part: part.component)
def test_each_account_holds_its_own_lease_in_its_own_namespace(installed: ControlPlane, part: Part) -> None:
    home = verbs_for(installed, part, LEASES, "leases", installation.NAMESPACE, part.name)

    assert home == {"get", "create", "update"}
    assert not may(installed, part, LEASES, "leases", "get", installation.NAMESPACE, "kube-scheduler")
    assert not may(installed, part, LEASES, "leases", "update", "kube-system", part.name)


def test_only_the_arbitrator_has_certificates_and_only_its_own(installed: ControlPlane) -> None:
    def verbs(part: Part, namespace: str, name: str) -> set[str]:
        return verbs_for(installed, part, "", "secrets", namespace, name)

    home, arbitrator = installation.NAMESPACE, installation.ARBITRATOR

    assert verbs(arbitrator, home, CERTIFICATES) == {"get", "list", "watch", "create", "patch"}
    assert verbs(arbitrator, home, "another") & {"get", "patch", "update", "delete"} == set()
    assert verbs(arbitrator, "kube-system", CERTIFICATES) == set()
    assert verbs(installation.CONTROLLER, home, CERTIFICATES) == set()


def test_kubectl_says_the_same(installed: ControlPlane) -> None:
    def can_i(*question: str) -> str:
        as_controller = f"--as={account(installation.CONTROLLER)}"
        return installed.kubectl("auth", "can-i", as_controller, *question, check=False).stdout.strip()

    assert can_i("create", "pods", "--all-namespaces") == "yes"
    assert can_i("patch", "tasksets.octopus.openi.pcl.cn", "--subresource=status", "-A") == "yes"
    assert can_i("get", "secrets", "--all-namespaces") == "no"
    assert can_i("*", "*", "--all-namespaces") == "no"


def test_installing_again_changes_nothing_and_an_upgrade_changes_what_it_must(installed: ControlPlane) -> None:
    octo = Octo(installed, "default")
    deployments = f"/apis/apps/v1/namespaces/{installation.NAMESPACE}/deployments"
    generations = []
    for image in ("registry.invalid/octarbiter:1", "registry.invalid/octarbiter:1", "registry.invalid/octarbiter:2"):
        said = octo("install", "--apply", "-n", installation.NAMESPACE, "--image", image)
        assert said.exit_code == Exit.OK
        found = installed.request("GET", deployments)["items"]
        generations.append({each["metadata"]["name"]: each["metadata"]["generation"] for each in found})

    both = (installation.CONTROLLER.name, installation.ARBITRATOR.name)
    assert generations == [dict.fromkeys(both, number) for number in (1, 1, 2)]
    assert installed.request("GET", scheme.CRDS.path(name=kinds.TASKSET.definition))["metadata"]["generation"] == 1


def test_kubectl_takes_the_printed_manifest_and_restricted_namespaces_admit_the_pods(installed: ControlPlane) -> None:
    space = {"pod-security.kubernetes.io/enforce": "restricted"}
    installed.request("POST", "/api/v1/namespaces", {"metadata": {"name": "restricted", "labels": space}})
    printed = Octo(installed, "restricted")("install", "-n", "restricted").stdout
    installed.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-", input=printed)
    installed.kubectl("wait", "--for=create", "-n", "restricted", "serviceaccount/default")
    commands = []
    for deployment in (body for body in yaml.safe_load_all(printed) if body["kind"] == "Deployment"):
        template = deployment["spec"]["template"]
        pod = {"metadata": {"name": "it", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
        pod["spec"]["serviceAccountName"] = "default"
        made = installed.request("POST", "/api/v1/namespaces/restricted/pods?dryRun=All", pod)
        commands.append(made["spec"]["containers"][0]["command"])

    assert commands == [["octo", "controller"], ["octo", "arbitrator"]]


@pytest.mark.parametrize(
    ("replicas", "retries", "story"), [(3, 1, {"AttemptFailed", "Retried", "Failed"}), (501, 0, {"Failed"})]
)
def test_the_controller_brings_a_taskset_to_its_end_with_these_rights_alone(
    installed: ControlPlane, tmp_path: Path, replicas: int, retries: int, story: set[str]
) -> None:
    """Retries, control units, Services, pods, lists of replicas, events, lease and the deletion at the end."""
    kubeconfig = kubeconfig_of_account(
        installed, installation.NAMESPACE, installation.CONTROLLER.name, tmp_path / "kubeconfig"
    )
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
