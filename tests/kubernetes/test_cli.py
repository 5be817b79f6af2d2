"""`octo` as its users meet it, on a real API server. What a controller would write, the tests write."""

import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from octo_runner import Octo, job, kubeconfig_of_account, with_crds

from octarbiter.api import scheme
from octarbiter.cli import text
from octarbiter.cli.exits import Exit
from octarbiter.testing.kubernetes.bed import Testbed

pytestmark = pytest.mark.xdist_group("bed")

CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"answer": "y"}}
PODGROUP = {
    "apiVersion": "scheduling.incubator.k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "pg-1"},
    "spec": {"minMember": 4},
}


@pytest.fixture(scope="module")
def installed(bed: Testbed) -> Testbed:
    return with_crds(bed)


@pytest.fixture
def octo(installed: Testbed, namespace: str) -> Octo:
    return Octo(installed.control_plane, namespace)


def written(directory: Path, *bodies: Any) -> str:
    file = directory / "job.yaml"
    file.write_text(text.objects(bodies, "yaml"))  # not PyYAML's: it writes "y" so that it is read as true
    return str(file)


# --- submit


def test_submit_creates_what_a_file_holds_and_get_lists_it(octo: Octo, tmp_path: Path) -> None:
    said = octo("submit", "-f", written(tmp_path, CONFIGMAP, job()))
    listed = octo("get")

    assert said.stdout == "configmap/settings created\ntaskset.octopus.openi.pcl.cn/demo created\n"
    assert octo.get("demo")["spec"]["roles"][0]["replicas"] == 2
    assert octo.plane.request("GET", scheme.CONFIGMAPS.path(octo.namespace, "settings"))["data"] == {"answer": "y"}
    assert listed.stdout.splitlines()[0].split() == ["NAME", "STATE", "PHASE", "RETRIES", "AGE"]
    assert listed.stdout.splitlines()[1].split()[:4] == ["demo", "<none>", "<none>", "0"]


def test_submit_reads_standard_input_and_prints_the_form_asked_for(octo: Octo) -> None:
    name = octo("submit", "-f", "-", "-o", "name", input=yaml.safe_dump(job("a")))
    whole = octo("submit", "-f", "-", "-o", "json", input=yaml.safe_dump(job("b")))
    several = octo("submit", "-f", "-", "-o", "yaml", input=yaml.safe_dump_all([job("c"), job("d")]))

    assert name.stdout == "taskset.octopus.openi.pcl.cn/a\n"
    assert json.loads(whole.stdout)["metadata"]["uid"] == octo.get("b")["metadata"]["uid"]
    assert [body["metadata"]["name"] for body in yaml.safe_load_all(several.stdout)] == ["c", "d"]
    assert "managedFields" not in several.stdout


def test_one_invalid_object_keeps_all_of_them_from_being_sent(octo: Octo, tmp_path: Path) -> None:
    bad = job("bad", roles=[])
    said = octo("submit", "-f", written(tmp_path, CONFIGMAP, job(), bad))

    assert "TaskSet bad" in said.stderr
    assert "spec.roles: must not be empty" in said.stderr
    assert said.exit_code == Exit.INVALID
    assert octo.names() == []
    assert not octo.exists(scheme.CONFIGMAPS.path(octo.namespace, "settings"))


def test_a_kind_that_the_cluster_does_not_serve_is_named_before_anything_is_sent(octo: Octo, tmp_path: Path) -> None:
    odd = {**CONFIGMAP, "apiVersion": "../../api/v1"}
    said = octo("submit", "-f", written(tmp_path, job(), PODGROUP, odd))

    assert "PodGroup pg-1" in said.stderr
    assert "PodGroup of scheduling.incubator.k8s.io/v1alpha1" in said.stderr
    assert "ConfigMap of ../../api/v1" in said.stderr
    assert said.exit_code == Exit.REFUSED
    assert octo.names() == []


def test_a_kind_that_comes_with_its_own_crd_is_sent_in_the_scope_it_has(octo: Octo, tmp_path: Path) -> None:
    names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "podgroups.scheduling.incubator.k8s.io"},
        "spec": {
            "group": "scheduling.incubator.k8s.io",
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    }
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    # The group may only be used with an approval, as the manual's own project had it.
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}  # type: ignore[index]
    octo.plane.request("POST", crds, definition)
    try:
        octo.plane.kubectl("wait", "--for=condition=Established", "crd/podgroups.scheduling.incubator.k8s.io")
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{octo.namespace}-more"}}
        said = octo("submit", "-f", written(tmp_path, PODGROUP, space, job()))

        assert said.stdout.splitlines() == [
            "podgroup.scheduling.incubator.k8s.io/pg-1 created",
            f"namespace/{octo.namespace}-more created",
            "taskset.octopus.openi.pcl.cn/demo created",
        ]
        assert octo("delete", "-f", written(tmp_path, PODGROUP, space, job()), "--no-wait").exit_code == Exit.OK
    finally:
        octo.plane.request("DELETE", f"{crds}/podgroups.scheduling.incubator.k8s.io")


@pytest.mark.parametrize("dry", [True, False])
def test_what_only_the_server_finds_is_told_field_by_field(octo: Octo, tmp_path: Path, dry: bool) -> None:
    bad_name = {**CONFIGMAP, "metadata": {"name": "UPPER"}}
    unknown = {**CONFIGMAP, "dta": {}}
    options = ["--dry-run=server"] if dry else []
    first = octo("submit", *options, "-f", written(tmp_path, bad_name))
    second = octo("submit", *options, "-f", written(tmp_path, unknown))

    assert "  metadata.name: Invalid value:" in first.stderr
    assert 'unknown field "dta"' in second.stderr
    assert (first.exit_code, second.exit_code) == (Exit.INVALID, Exit.INVALID)


def test_a_server_dry_run_keeps_nothing(octo: Octo, tmp_path: Path) -> None:
    said = octo("submit", "--dry-run=server", "-f", written(tmp_path, job()))

    assert said.stdout == "taskset.octopus.openi.pcl.cn/demo created (server dry run)\n"
    assert octo.names() == []


def test_a_submission_that_breaks_off_says_what_is_there_and_what_is_not(octo: Octo, tmp_path: Path) -> None:
    octo.create(job("b"))
    said = octo("submit", "-f", written(tmp_path, job("a"), job("b"), job("c")))

    assert '"b" already exists' in said.stderr
    assert "Created before it, and still there: taskset.octopus.openi.pcl.cn/a" in said.stderr
    assert "Not sent: TaskSet c" in said.stderr
    assert said.exit_code == Exit.REFUSED
    assert octo.names() == ["a", "b"]


def test_a_namespace_that_does_not_exist_is_not_found(octo: Octo, tmp_path: Path) -> None:
    said = octo("submit", "-n", "nowhere", "-f", written(tmp_path, job()))

    assert 'namespaces "nowhere" not found' in said.stderr
    assert said.exit_code == Exit.NOT_FOUND


def test_a_name_can_be_left_to_the_server(octo: Octo, tmp_path: Path) -> None:
    body = {**job(), "metadata": {"generateName": "run-"}}
    said = octo("submit", "-o", "name", "-f", written(tmp_path, body))

    assert [said.stdout.strip()] == [f"taskset.octopus.openi.pcl.cn/{name}" for name in octo.names()]


def test_submit_and_wait_stays_to_the_end_of_all_and_tells_the_worst(octo: Octo, tmp_path: Path) -> None:
    with octo.running("submit", "--wait", "-f", written(tmp_path, job("good"), job("bad"))) as submitting:
        assert submitting.stderr is not None
        assert "has not been looked at by a controller yet" in submitting.stderr.readline()
        octo.set_status("bad", state="Failed", phase="TaskSetCompleted", stateMessage="exit code 3")
        octo.set_status("good", state="Running")
        octo.set_status("good", state="Succeeded", phase="TaskSetCompleted")
        said, told = submitting.communicate(timeout=60)

    assert "taskset/good succeeded\n" in said
    assert "Error: taskset/bad failed: exit code 3\n" in told
    assert submitting.returncode == Exit.FAILED


# --- get and describe


def test_get_shows_more_when_asked_to(octo: Octo) -> None:
    body = job(queue="fast")
    body["metadata"]["labels"] = {"team": "vision"}
    octo.create(body)
    octo.create(job("other"))
    status = [{"name": "worker", "state": "Running", "succeeded": 1}]
    octo.set_status("demo", state="Running", phase="TaskSetAttemptRunning", stateMessage="waits", roleStatus=status)
    wide = octo("get", "ts", "demo", "-o", "wide").stdout.splitlines()
    everywhere = octo("get", "-A", "-l", "team=vision", "--no-headers").stdout.splitlines()

    assert wide[0].split() == ["NAME", "STATE", "PHASE", "RETRIES", "AGE", "QUEUE", "ROLES", "MESSAGE"]
    assert wide[1].split()[5:] == ["fast", "worker:1/2", "waits"]
    assert [line.split()[:3] for line in everywhere] == [[octo.namespace, "demo", "Running"]]
    assert octo("get", "-o", "name").stdout.split() == [f"taskset.octopus.openi.pcl.cn/{n}" for n in ("demo", "other")]
    assert [item["metadata"]["name"] for item in json.loads(octo("get", "-o", "json").stdout)["items"]] == [
        "demo",
        "other",
    ]
    assert yaml.safe_load(octo("get", "demo", "-o", "yaml").stdout)["spec"]["queue"] == "fast"


def test_get_says_what_is_not_there_after_what_is(octo: Octo) -> None:
    octo.create(job())
    said = octo("get", "nope", "demo", "gone")

    assert "demo" in said.stdout
    assert '"nope" not found' in said.stderr
    assert '"gone" not found' in said.stderr
    assert said.exit_code == Exit.NOT_FOUND


def test_an_empty_list_is_no_error(octo: Octo) -> None:
    said = octo("get")

    assert (said.stdout, said.stderr) == ("", f"No TaskSets found in namespace {octo.namespace}.\n")
    assert said.exit_code == Exit.OK


def test_get_watch_prints_each_change_until_ctrl_c(octo: Octo) -> None:
    octo.create(job())
    with octo.running("get", "--watch") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split() == ["NAME", "STATE", "PHASE", "RETRIES", "AGE"]
        assert watching.stdout.readline().split()[:2] == ["demo", "<none>"]
        octo.set_status("demo", state="Running", phase="TaskSetAttemptRunning")
        assert watching.stdout.readline().split()[:3] == ["demo", "Running", "TaskSetAttemptRunning"]
        octo.create(job("other"))
        assert watching.stdout.readline().split()[:2] == ["other", "<none>"]
        watching.send_signal(signal.SIGINT)
        _, told = watching.communicate(timeout=60)

    assert (watching.returncode, told) == (Exit.INTERRUPTED, "")


def test_get_watch_prints_whole_objects_when_asked_for(octo: Octo) -> None:
    octo.create(job())
    with octo.running("get", "demo", "--watch", "-o", "yaml") as watching:
        assert watching.stdout is not None
        lines = []
        while (line := watching.stdout.readline()) and "restartPolicy" not in line and "replicas:" not in line:
            lines.append(line)

    assert "  name: demo\n" in lines


def test_describe_tells_what_a_hanging_taskset_waits_for(octo: Octo) -> None:
    made = octo.create(job())
    labels = {
        "octopus.openi.pcl.cn/taskset-uid": made["metadata"]["uid"],
        "PodTaskRole": "worker",
        "PodTaskIndex": "0",
    }
    greedy = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "99"}}}
    pod = {"metadata": {"name": "demo-worker-0-0-0", "labels": labels}, "spec": {"containers": [greedy]}}
    octo.plane.request("POST", scheme.PODS.path(octo.namespace), pod)
    octo.plane.kubectl("wait", "-n", octo.namespace, "--for=condition=PodScheduled=False", "pod/demo-worker-0-0-0")
    event = {
        "metadata": {"generateName": "demo."},
        "type": "Warning",
        "reason": "Waiting",
        "message": "no GPU far and wide",
        "involvedObject": {
            "kind": "TaskSet",
            "name": "demo",
            "namespace": octo.namespace,
            "uid": made["metadata"]["uid"],
        },
    }
    octo.plane.request("POST", scheme.EVENTS.path(octo.namespace), event)
    replica = {"index": 0, "name": "worker-0", "phase": "TaskRoleReplicaAttemptPreparing", "phaseMessage": "no node"}
    roles = [{"name": "worker", "state": "Waiting", "active": 1, "replicaStatus": [replica]}]
    octo.set_status("demo", state="Waiting", stateMessage="worker-0: no node", roleStatus=roles)
    said = octo("describe", "taskset", "demo")

    assert "Waits for:   worker-0: no node\n" in said.stdout
    assert "Insufficient nvidia.com/gpu" in said.stdout
    assert "no GPU far and wide" in said.stdout
    assert said.exit_code == Exit.OK
    assert octo("describe", "demo").stdout.startswith("TaskSet:     demo\n")


def test_describe_reads_the_replicas_of_a_large_taskset_from_their_lists(octo: Octo) -> None:
    body = job()
    body["spec"]["roles"][0]["replicas"] = 600
    octo.create(body)
    octo.set_status("demo", state="Running", roleStatus=[{"name": "worker", "ledger": "600x0p"}])
    for part in (0, 1):
        lines = [
            json.dumps({"index": index, "name": f"worker-{index}", "podIP": f"10.1.{part}.{index % 300}"})
            for index in range(part * 300, part * 300 + 300)
        ]
        page = {"metadata": {"name": f"r-demo-0-{part}"}, "data": {"replicas.jsonl": "\n".join(lines) + "\n"}}
        octo.plane.request("POST", scheme.CONFIGMAPS.path(octo.namespace), page)
    few = octo("describe", "demo").stdout
    everyone = octo("describe", "demo", "--all-replicas").stdout

    assert "and 580 more (--all-replicas)" in few
    assert all(f" 10.1.{part}.{index} " in everyone for part in (0, 1) for index in range(300))


def test_describe_falls_back_to_the_status_where_there_are_no_lists(octo: Octo) -> None:
    body = job()
    body["spec"]["roles"][0]["replicas"] = 600
    octo.create(body)
    octo.set_status("demo", state="Running", roleStatus=[{"name": "worker", "ledger": "599x0S;1x3r2l1F"}])
    said = octo("describe", "demo").stdout

    assert "worker-599   Failed      3         2         1 " in said


# --- wait


@pytest.mark.parametrize(
    ("goal", "status", "code"),
    [
        ("succeeded", {"state": "Succeeded"}, Exit.OK),
        ("succeeded", {"state": "Failed"}, Exit.FAILED),
        ("failed", {"state": "Failed"}, Exit.OK),
        ("completed", {"state": "Failed"}, Exit.OK),
        ("running", {"state": "Running"}, Exit.OK),
        ("condition=Suspended", {"conditions": [{"type": "Suspended", "status": "True"}]}, Exit.OK),
    ],
)
def test_wait_returns_when_the_goal_is_reached_or_missed(
    octo: Octo, goal: str, status: dict[str, Any], code: Exit
) -> None:
    octo.create(job())
    with octo.running("wait", "demo", "--for", goal, "--timeout", "60s") as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline()  # it has looked once and goes on waiting
        octo.set_status("demo", **status)
        waiting.communicate(timeout=90)

    assert waiting.returncode == code


def test_wait_ends_when_the_taskset_is_deleted_meanwhile(octo: Octo) -> None:
    octo.create(job())
    codes = []
    for goal in ("succeeded", "deleted"):
        with octo.running("wait", "demo", "--for", goal) as waiting:
            assert waiting.stderr is not None
            assert waiting.stderr.readline()
            octo.plane.request("DELETE", octo.path("demo"))
            octo.create(job())  # another one of the same name is not the one that was waited for
            waiting.communicate(timeout=60)
        codes.append(waiting.returncode)

    assert codes == [Exit.NOT_FOUND, Exit.OK]


def test_wait_gives_up_in_time_and_says_where_it_stands(octo: Octo) -> None:
    octo.create(job())
    octo.set_status("demo", state="Waiting", stateMessage="no GPUs")
    once, a_while = octo("wait", "demo", "--timeout", "0"), octo("wait", "demo", "--timeout", "1s")

    assert "taskset/demo is Waiting: no GPUs" in once.stderr
    assert "gave up after 1s" in a_while.stderr
    assert (once.exit_code, a_while.exit_code) == (Exit.TIMEOUT, Exit.TIMEOUT)


def test_wait_outlasts_an_api_server_that_is_away_for_a_while(octo: Octo) -> None:
    octo.create(job())
    with octo.running("wait", "demo") as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline()
        octo.plane.stop_apiserver()
        try:
            assert "the watch broke, trying again" in waiting.stderr.readline()
        finally:
            octo.plane.start_apiserver()
        with suppress(OSError):
            octo.plane.request("GET", "/version")  # the bed's own connection may have died unnoticed
        octo.set_status("demo", state="Succeeded")
        said, _ = waiting.communicate(timeout=60)

    assert (said, waiting.returncode) == ("taskset/demo succeeded\n", Exit.OK)


def test_waiting_for_several_fails_with_the_first_that_cannot(octo: Octo) -> None:
    for name in ("a", "b"):
        octo.create(job(name))
    octo.set_status("b", state="Failed")
    said = octo("wait", "a", "b", "--timeout", "60s")

    assert said.stderr == "Error: taskset/b failed\n"
    assert said.exit_code == Exit.FAILED


def test_what_does_not_exist_cannot_be_waited_for_except_its_absence(octo: Octo) -> None:
    assert octo("wait", "demo").exit_code == Exit.NOT_FOUND
    assert octo("wait", "demo", "--for=deleted").exit_code == Exit.OK


# --- delete


def test_delete_returns_when_it_is_gone(octo: Octo) -> None:
    for name in ("a", "b"):
        octo.create(job(name))
    said = octo("delete", "a", "taskset/b")

    assert said.stdout.split("\n")[:2] == [f"taskset.octopus.openi.pcl.cn/{name} deleted" for name in ("a", "b")]
    assert octo.names() == []


def test_delete_takes_files_and_other_kinds(octo: Octo, tmp_path: Path) -> None:
    file = written(tmp_path, CONFIGMAP, job())
    octo("submit", "-f", file)
    said = octo("delete", "-f", file)

    assert said.stdout == "configmap/settings deleted\ntaskset.octopus.openi.pcl.cn/demo deleted\n"
    assert octo.names() == []


@pytest.mark.parametrize(("cascade", "left"), [("background", False), ("foreground", False), ("orphan", True)])
def test_delete_takes_along_what_it_owns_unless_told_otherwise(octo: Octo, cascade: str, left: bool) -> None:
    made = octo.create(job())
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "name": "demo",
        "uid": made["metadata"]["uid"],
        "blockOwnerDeletion": True,
        "controller": True,
    }
    owned = {"metadata": {"name": "c-demo-0", "ownerReferences": [owner]}}
    octo.plane.request("POST", scheme.CONFIGMAPS.path(octo.namespace), owned)
    said = octo("delete", "demo", f"--cascade={cascade}")
    if not left:
        octo.plane.kubectl("wait", "-n", octo.namespace, "--for=delete", "configmap/c-demo-0", "--timeout=60s")

    assert said.exit_code == Exit.OK
    assert octo.exists(scheme.CONFIGMAPS.path(octo.namespace, "c-demo-0")) == left


def test_delete_waits_for_finalizers_only_as_long_as_it_may(octo: Octo) -> None:
    body = job()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    octo.create(body)
    in_vain, at_once = octo("delete", "demo", "--timeout", "1s"), octo("delete", "demo", "--no-wait")
    listed = octo("get").stdout
    octo.plane.request("PATCH", octo.path("demo"), {"metadata": {"finalizers": None}}, "application/merge-patch+json")

    assert "deleted, but not gone yet: taskset.octopus.openi.pcl.cn/demo" in in_vain.stderr
    assert (in_vain.exit_code, at_once.exit_code) == (Exit.TIMEOUT, Exit.OK)
    assert "Terminating" in listed


def test_deleting_what_is_not_there_is_an_error_unless_it_does_not_matter(octo: Octo) -> None:
    assert octo("delete", "demo").exit_code == Exit.NOT_FOUND
    assert octo("delete", "demo", "--ignore-not-found").exit_code == Exit.OK


def test_one_that_is_missing_does_not_save_the_others(octo: Octo) -> None:
    octo.create(job())
    said = octo("delete", "nope", "demo")

    assert '"nope" not found' in said.stderr
    assert said.exit_code == Exit.NOT_FOUND
    assert octo.names() == []


def test_delete_by_file_keeps_to_the_namespace_of_the_command_line(octo: Octo, tmp_path: Path) -> None:
    octo.create(job())
    body = job()
    body["metadata"]["namespace"] = octo.namespace
    said = octo("delete", "-n", "default", "-f", written(tmp_path, body))

    assert f"metadata.namespace: is {octo.namespace}, but --namespace says default" in said.stderr
    assert said.exit_code == Exit.INVALID
    assert octo.names() == ["demo"]


# --- who may what


def test_who_may_not_is_told_so_also_where_the_command_would_wait(octo: Octo, tmp_path: Path) -> None:
    plane, space = octo.plane, octo.namespace
    octo.create(job())
    plane.kubectl(
        "create", "role", "reader", "-n", space, "--verb=get,list", "--resource=tasksets.octopus.openi.pcl.cn"
    )
    for account in ("reader", "nobody"):
        plane.kubectl("create", "serviceaccount", account, "-n", space)
    plane.kubectl("create", "rolebinding", "reader", "-n", space, "--role=reader", f"--serviceaccount={space}:reader")
    reader, nobody = (
        Octo(plane, space, kubeconfig_of_account(plane, space, account, tmp_path / account))
        for account in ("reader", "nobody")
    )

    assert reader("get").exit_code == Exit.OK
    for said in (nobody("get"), reader("wait", "demo"), reader("get", "-w"), reader("describe", "demo")):
        assert "forbidden" in said.stderr
        assert said.exit_code == Exit.REFUSED


# --- logs


def test_logs_of_a_removed_pod_say_what_became_of_it(octo: Octo) -> None:
    octo.create(job())
    end = {"exitCode": 3, "exitMessage": "no such file"}
    replica = {"index": 0, "name": "worker-0", "podName": "demo-worker-0-0-0", "terminatedInfo": end}
    octo.set_status("demo", state="Failed", roleStatus=[{"name": "worker", "replicaStatus": [replica]}])
    said = octo("logs", "demo", "--index", "0")

    assert "the pod of worker-0 is removed (spec.podRetention is None; All or Failed would keep it)" in said.stderr
    assert "exit code 3: no such file" in said.stderr
    assert said.exit_code == Exit.NOT_FOUND


def test_following_the_logs_ends_with_the_taskset(octo: Octo) -> None:
    octo.create(job())
    octo.set_status("demo", state="Succeeded")
    said = octo("logs", "-f", "demo")

    assert "worker-0 has no pod yet" in said.stderr
    assert said.exit_code == Exit.NOT_FOUND
