"""kubectl and what runs: pods, jobs, nodes, things with a number of replicas, and who may do what."""

import base64
import json
import re
import socket
from pathlib import Path

import pytest
from kubectl_runner import Kubectl


def lines(text: str) -> set[str]:
    return {" ".join(line.split()) for line in text.splitlines()}


def sleeper(kubectl: Kubectl, name: str = "sleeper", script: str = "sleep 1000") -> None:
    kubectl("run", name, "--image=busybox", "--restart=Never", "--command", "--", "sh", "-c", script)
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=30s")


# --- pods


def test_a_pod_that_is_run_becomes_ready_on_a_node_and_is_exposed(kubectl: Kubectl) -> None:
    assert kubectl("run", "web", "--image=nginx", "--labels=app=web", "--port=80") == "pod/web created"
    assert kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s") == "pod/web condition met"

    header, row = kubectl("get", "pods", "-o", "wide").splitlines()
    assert header.split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert row.split()[:4] == ["web", "1/1", "Running", "0"]
    assert kubectl("expose", "pod", "web", "--port=80") == "service/web exposed"
    assert {"Selector: app=web", "Type: ClusterIP"} <= lines(kubectl("describe", "service", "web"))


def test_describe_tells_a_pods_story(kubectl: Kubectl) -> None:
    sleeper(kubectl)
    described = kubectl("describe", "pod", "sleeper")

    assert {"Status: Running", "Image: busybox", "Ready: True", "Restart Count: 0", "PodScheduled True"} <= lines(
        described
    )
    assert re.search(
        rf"Scheduled +\S+ +default-scheduler +Successfully assigned {kubectl.namespace}/sleeper to", described
    )


def test_wait_sees_a_phase_and_gives_up_in_time(kubectl: Kubectl) -> None:
    kubectl("run", "loser", "--image=busybox", "--restart=Never", "--", "sh", "-c", "exit 3")

    assert kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/loser", "--timeout=30s")
    assert kubectl.refusal("wait", "--for=condition=Ready", "pod/loser", "--timeout=0s") == (
        "error: condition not met for pods/loser"
    )
    kubectl("delete", "pod", "loser", "--now")
    assert kubectl("wait", "--for=delete", "pod/loser", "--timeout=30s") == ""


def test_logs_are_followed_to_the_end(running_kubectl: Kubectl) -> None:
    script = "for i in 1 2 3; do echo line $i; sleep 0.1; done; echo oops >&2"
    sleeper(running_kubectl, "talker", f"sleep 0.5; {script}")

    assert running_kubectl("logs", "-f", "talker").splitlines() == ["line 1", "line 2", "line 3", "oops"]
    assert running_kubectl("logs", "talker", "--tail=1") == "oops"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\S+Z oops", running_kubectl("logs", "talker", "--tail=1", "--timestamps"))


def test_commands_are_executed_in_a_running_pod(running_kubectl: Kubectl) -> None:
    sleeper(running_kubectl)

    assert running_kubectl("exec", "sleeper", "--", "sh", "-c", "echo $((6 * 7))") == "42"
    assert running_kubectl("exec", "-i", "sleeper", "--", "cat", input="through") == "through"
    refusal = running_kubectl.refusal("exec", "sleeper", "--", "sh", "-c", "echo why >&2; exit 7", code=7)
    assert refusal.splitlines() == ["why", "command terminated with exit code 7"]


def once(kubectl: Kubectl, script: str, input: str | None = None) -> list[str]:
    """What a pod says that lives as long as somebody listens."""
    arguments = ["--image=busybox", "--restart=Never", "--rm", "-i", "--command", "--", "sh", "-c", script]
    return kubectl("run", "once", *arguments, input=input).splitlines()


def test_a_pod_is_run_listened_to_and_removed_in_one_command(running_kubectl: Kubectl) -> None:
    told = once(running_kubectl, "for i in 1 2 3 4 5; do echo here; sleep 0.2; done")

    assert "here" in told
    assert running_kubectl("get", "pod", "once", "--ignore-not-found") == ""


def test_a_pod_reads_what_is_typed_to_it(running_kubectl: Kubectl) -> None:
    assert "heard it" in once(running_kubectl, "read word; echo heard $word; sleep 1", input="it\n")


def test_files_are_copied_into_a_pod_and_back(running_kubectl: Kubectl, tmp_path: Path) -> None:
    sleeper(running_kubectl)
    (tmp_path / "there.txt").write_text("and back\n")
    running_kubectl("cp", str(tmp_path / "there.txt"), "sleeper:copied.txt")
    running_kubectl("cp", "sleeper:copied.txt", str(tmp_path / "back.txt"))

    assert (tmp_path / "back.txt").read_text() == "and back\n"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_a_port_of_a_pod_is_reached_from_here(running_kubectl: Kubectl) -> None:
    port = free_port()
    greeter = (
        "import socketserver as s\n"
        "class Greeter(s.StreamRequestHandler):\n"
        "    def handle(self): self.wfile.write(b'hello ' + self.rfile.read())\n"
        f"with s.ThreadingTCPServer(('127.0.0.1', {port}), Greeter) as server:\n"
        "    print('open', flush=True)\n"
        "    server.serve_forever()\n"
    )
    running_kubectl("run", "greeter", "--image=python", "--restart=Never", "--command", "--", "python3", "-c", greeter)
    running_kubectl("wait", "--for=condition=Ready", "pod/greeter", "--timeout=30s")
    follow = running_kubectl.start("logs", "--follow", "greeter")
    forward = running_kubectl.start("port-forward", "pod/greeter", f":{port}", "--address=127.0.0.1")
    assert follow.stdout is not None
    assert forward.stdout is not None
    try:
        assert follow.stdout.readline() == "open\n"
        told = re.match(rf"Forwarding from 127.0.0.1:(\d+) -> {port}\n", forward.stdout.readline())
        assert told is not None
        for name in (b"Ada", b"Grace" * 100_000):
            with socket.create_connection(("127.0.0.1", int(told[1])), timeout=30) as connection:
                connection.sendall(name)
                connection.shutdown(socket.SHUT_WR)
                assert connection.makefile("rb").read() == b"hello " + name
    finally:
        for process in (follow, forward):
            process.terminate()
            process.communicate()


# --- jobs and tasksets


@pytest.mark.parametrize(("cascade", "pods_left"), [("background", 0), ("foreground", 0), ("orphan", 1)])
def test_a_jobs_pods_go_with_it_unless_they_are_orphaned(kubectl: Kubectl, cascade: str, pods_left: int) -> None:
    kubectl("create", "job", "work", "--image=busybox", "--", "sleep", "1000")
    kubectl("wait", "--for=jsonpath={.status.ready}=1", "job/work", "--timeout=30s")
    pod = kubectl("get", "pods", "-o=name")
    assert {"Parallelism: 1", "Pods Statuses: 1 Active (1 Ready) / 0 Succeeded / 0 Failed"} <= lines(
        kubectl("describe", "job", "work")
    )

    kubectl("delete", "job", "work", f"--cascade={cascade}")
    if not pods_left:
        kubectl("wait", "--for=delete", pod, "--timeout=30s")
    assert len(kubectl("get", "pods", "-o=name").split()) == pods_left


def test_a_job_completes(kubectl: Kubectl) -> None:
    kubectl("create", "job", "work", "--image=busybox", "--", "sh", "-c", "exit 0")

    assert kubectl("wait", "--for=condition=Complete", "job/work", "--timeout=30s") == "job.batch/work condition met"
    assert kubectl("get", "jobs").splitlines()[1].split()[:3] == ["work", "Complete", "1/1"]


def test_a_taskset_is_applied_runs_and_is_described(kubectl: Kubectl) -> None:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 0"]}
    role = {
        "name": "worker",
        "replicas": 2,
        "completionPolicy": {"minSucceeded": 2, "maxFailed": 1},
        "eventPolicy": [{"event": "RoleSucceeded", "action": "TaskSetSucceeded"}],
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    manifest = {
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
        "kind": "TaskSet",
        "metadata": {"name": "demo"},
        "spec": {"roles": [role]},
    }
    assert kubectl("apply", "-f", "-", input=manifest) == "taskset.octopus.openi.pcl.cn/demo created"

    kubectl("wait", "--for=jsonpath={.status.state}=Succeeded", "taskset/demo", "--timeout=60s")
    described = lines(kubectl("describe", "taskset", "demo"))
    assert {"Name: demo", "Kind: TaskSet", "State: Succeeded"} <= described


# --- rollout


def test_the_rollout_of_what_is_not_there_is_not_found(kubectl: Kubectl) -> None:
    assert kubectl.refusal("rollout", "status", "deployment", "nope") == (
        'Error from server (NotFound): deployments.apps "nope" not found'
    )


# --- nodes and namespaces


def test_a_drained_node_is_empty_and_takes_no_pods(kubectl: Kubectl) -> None:
    sleeper(kubectl)
    node = kubectl("get", "pod", "sleeper", "-o=jsonpath={.spec.nodeName}")
    try:
        told = kubectl("drain", node, "--force", "--grace-period=1", "--timeout=30s", "--pod-selector=run=sleeper")
        assert f"node/{node} cordoned" in told.splitlines()
        assert told.splitlines()[-2:] == ["pod/sleeper evicted", f"node/{node} drained"]
        assert kubectl("get", "node", node).splitlines()[1].split()[1] == "Ready,SchedulingDisabled"
        assert "Unschedulable: true" in lines(kubectl("describe", "node", node))
    finally:
        assert kubectl("uncordon", node) == f"node/{node} uncordoned"


def test_taints_come_and_go(kubectl: Kubectl) -> None:
    node = kubectl("get", "nodes", "-o=jsonpath={.items[0].metadata.name}")

    assert kubectl("taint", "node", node, "clients=busy:PreferNoSchedule") == f"node/{node} tainted"
    assert "Taints: clients=busy:PreferNoSchedule" in lines(kubectl("describe", "node", node))
    assert kubectl("taint", "node", node, "clients-") == f"node/{node} untainted"


def test_a_namespace_is_described_with_its_quota(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "few", "--hard=configmaps=9")
    kubectl("wait", "--for=jsonpath={.status.used.configmaps}=1", "quota/few", "--timeout=30s")
    described = lines(kubectl("describe", "namespace", kubectl.namespace))

    assert {f"Name: {kubectl.namespace}", "Status: Active", "configmaps 1 9", "No LimitRange resource."} <= described


# --- who may do what


def test_whoever_asks_is_told_who_they_are_and_what_they_may(kubectl: Kubectl) -> None:
    if kubectl.minor > 27:  # the first that knows a version of the review that servers still have
        who = kubectl.json("auth", "whoami")["status"]["userInfo"]
        assert who["groups"] == ["system:masters", "system:authenticated"]
    assert kubectl("auth", "can-i", "create", "pods") == "yes"


def test_others_may_what_a_role_grants_them_and_nothing_else(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "bob-reads", "--role=reader", "--user=bob")

    assert kubectl("auth", "can-i", "list", "pods", "--as=bob") == "yes"
    assert kubectl.run("auth", "can-i", "list", "secrets", "--as=bob").stdout == "no\n"
    assert kubectl("get", "pods", "-o=name", "--as=bob") == ""
    assert kubectl.refusal("get", "secrets", "--as=bob") == (
        'Error from server (Forbidden): secrets is forbidden: User "bob" cannot list resource "secrets" in API group '
        f'"" in the namespace "{kubectl.namespace}"'
    )


def test_a_token_of_a_service_account_says_whose_it_is_and_opens_the_door(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=10m")
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))

    account = f"system:serviceaccount:{kubectl.namespace}:robot"
    assert claims["sub"] == account
    assert kubectl.refusal(f"--token={token}", "get", "pods").endswith(
        f'pods is forbidden: User "{account}" cannot list resource "pods" in API group "" in the namespace '
        f'"{kubectl.namespace}"'
    )
