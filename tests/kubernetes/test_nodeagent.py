"""The node agent against a real API server and a real scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventual import eventually

from octarbiter.cluster.nodeagent import logs
from octarbiter.cluster.nodeagent.agent import Agent
from octarbiter.cluster.nodeagent.nodes import NodeSettings, machine_capacity
from octarbiter.cluster.nodeagent.places import Places
from octarbiter.cluster.nodeagent.runtimes import ending
from octarbiter.cluster.nodeagent.runtimes.pretend import PretendRuntime
from octarbiter.cluster.nodeagent.runtimes.process import ProcessRuntime
from octarbiter.cluster.nodeagent.runtimes.protocol import Runtime
from octarbiter.cluster.nodeagent.sources import ApiSources
from octarbiter.runtime import kubeconfig
from octarbiter.runtime.client import Client
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.connection import ApiError

OURS = {"octarbiter.test/agent": "true"}


async def play(config: str, root: Path, kind: str, names: list[str]) -> None:
    """An agent, until cancelled."""
    capacity = machine_capacity(root) | {"cpu": "1000", "memory": "1000Gi"}
    settings = [
        NodeSettings(name=name, capacity=capacity, labels=OURS | {"octarbiter.test/kind": kind}, runtime=kind)
        for name in names
    ]
    async with Client(kubeconfig.load(config)) as client:
        runtime: Runtime = PretendRuntime() if kind == "pretend" else ProcessRuntime(root, ApiSources(client))
        await Agent(client, settings, runtime).run()


class Process:
    """An agent in a process of its own, so that it can be killed."""

    def __init__(self, bed: Testbed, root: Path, kind: str, names: list[str]) -> None:
        self.root = root
        self._line = [sys.executable, __file__, str(bed.control_plane.kubeconfig), str(root), kind, *names]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._line)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def agent(bed: Testbed, root: Path, kind: str, *names: str) -> Iterator[Process]:
    process = Process(bed, root, kind, list(names))
    try:
        yield process
    finally:
        process.kill()
        assert asyncio.run(ending.kill_all(Places(root))) == []
        for name in names:
            with contextlib.suppress(ApiError):
                bed.control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture(scope="module")
def node(bed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with agent(bed, tmp_path_factory.mktemp("agent"), "process", "laptop") as process:
        yield process


class Pods:
    def __init__(self, bed: Testbed, namespace: str, kind: str = "process") -> None:
        self._plane = bed.control_plane
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._kind = kind

    def create(self, name: str, script: str, **fields: Any) -> None:
        metadata = {"name": name, "annotations": fields.pop("annotations", {}), "finalizers": fields.pop("held", [])}
        container = {"name": "main", "image": "none", "command": ["sh", "-c", script]} | fields.pop("container", {})
        spec = {
            "containers": [container],
            "restartPolicy": "Never",
            "nodeSelector": {"octarbiter.test/kind": self._kind},
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | fields}
        self._plane.request("POST", self._path, body)

    def get(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._plane.request("GET", f"{self._path}/{name}")
        except ApiError as problem:
            if problem.status != 404:
                raise
            return None
        return found

    def status(self, name: str) -> dict[str, Any]:
        found = self.get(name)
        return found["status"] if found else {}

    def wait(self, name: str, phase: str) -> dict[str, Any]:
        eventually(lambda: self.status(name).get("phase") == phase, lambda: f"{name} {phase}: {self.status(name)}")
        return self.status(name)

    def delete(self, name: str) -> None:
        self._plane.request("DELETE", f"{self._path}/{name}")


@pytest.fixture
def pods(bed: Testbed, node: Process, namespace: str) -> Pods:
    return Pods(bed, namespace)


def output(root: Path, namespace: str, pod: str) -> str:
    async def read() -> bytes:
        path = logs.find(Places(root), namespace, pod, "main")
        return b"".join([piece async for piece in logs.read(path, logs.Query(), lambda: True)])

    return asyncio.run(read()).decode()


def types(status: dict[str, Any]) -> list[str]:
    return [condition["type"] for condition in status["conditions"]]


def test_a_pod_is_scheduled_runs_and_succeeds(pods: Pods, node: Process, namespace: str) -> None:
    pods.create("job", "echo hello")
    done = pods.wait("job", "Succeeded")

    assert types(done) == ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    assert done["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert done["podIP"].startswith("127.")
    assert output(node.root, namespace, "job") == "hello\n"


def test_the_node_is_ready_and_free_of_taints_and_has_a_lease(bed: Testbed, node: Process) -> None:
    def found() -> dict[str, Any]:
        everything = bed.control_plane.request("GET", "/api/v1/nodes")["items"]
        return next((one for one in everything if one["metadata"]["name"] == "laptop"), {})

    eventually(lambda: found().get("status", {}).get("conditions"), "the node")
    seen = eventually(lambda: found() if "taints" not in found()["spec"] else None, "the taint to go")
    conditions = {condition["type"]: condition["status"] for condition in seen["status"]["conditions"]}
    assert conditions == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    lease = bed.control_plane.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/laptop")
    assert lease["spec"]["holderIdentity"] == "laptop"


def test_the_service_account_is_where_programs_look_for_it(pods: Pods, node: Process, namespace: str) -> None:
    place = "/var/run/secrets/kubernetes.io/serviceaccount"
    pods.create("account", f"cat {place}/namespace && test -s {place}/token && test -s {place}/ca.crt")
    done = pods.wait("account", "Succeeded")

    assert done["phase"] == "Succeeded"
    assert output(node.root, namespace, "account") == namespace


def test_a_deleted_pod_tells_its_end_before_it_goes(bed: Testbed, pods: Pods) -> None:
    pods.create("server", "trap 'exit 3' TERM; while :; do sleep 0.1; done", held=["octarbiter.test/held"])
    pods.wait("server", "Running")
    pods.delete("server")

    def confirmed() -> dict[str, Any] | None:
        found = pods.get("server")
        return found if found and found["metadata"].get("deletionGracePeriodSeconds") == 0 else None

    last = eventually(confirmed, "the confirmation")
    assert last["status"]["phase"] == "Failed"
    assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    pods_path = f"/api/v1/namespaces/{last['metadata']['namespace']}/pods/server"
    bed.control_plane.request("PATCH", pods_path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    eventually(lambda: pods.get("server") is None, "the pod to go")


def test_conditions_of_others_stay(bed: Testbed, pods: Pods, namespace: str) -> None:
    pods.create("gated", "sleep 1000", readinessGates=[{"conditionType": "octarbiter.test/gate"}])
    status = pods.wait("gated", "Running")
    ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
    assert ready["reason"] == "ReadinessGatesNotReady"

    patch = {"status": {"conditions": [{"type": "octarbiter.test/gate", "status": "True"}]}}
    path = f"/api/v1/namespaces/{namespace}/pods/gated/status"
    bed.control_plane.request("PATCH", path, patch, "application/strategic-merge-patch+json")

    def is_ready() -> bool:
        return {"type": "Ready", "status": "True"}.items() <= next(
            condition for condition in pods.status("gated")["conditions"] if condition["type"] == "Ready"
        ).items()

    eventually(is_ready, lambda: f"readiness: {pods.status('gated')['conditions']}")
    assert types(pods.status("gated"))[0] == "octarbiter.test/gate"


def test_a_pod_of_the_same_name_is_another_pod(bed: Testbed, pods: Pods, namespace: str, tmp_path: Path) -> None:
    pods.create("twin", f"echo first >> {tmp_path}/n; exec sleep 1000")
    pods.wait("twin", "Running")
    bed.control_plane.kubectl("delete", "pod", "-n", namespace, "twin", "--force", "--grace-period=0")
    pods.create("twin", f"echo second >> {tmp_path}/n")

    assert pods.wait("twin", "Succeeded")["containerStatuses"][0]["restartCount"] == 0
    assert (tmp_path / "n").read_text() == "first\nsecond\n"


def test_hooks_and_probes_run_in_the_container(pods: Pods, tmp_path: Path) -> None:
    note = tmp_path / "note"
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", f"echo began $A >> {note}"]}},
        "preStop": {"exec": {"command": ["sh", "-c", f"echo ends $A >> {note}"]}},
    }
    probe = {"exec": {"command": ["test", "-e", f"{tmp_path}/ready"]}, "periodSeconds": 1}
    wanted = {"lifecycle": hooks, "readinessProbe": probe, "env": [{"name": "A", "value": "x"}]}
    pods.create("hooked", "exec sleep 1000", container=wanted)
    status = pods.wait("hooked", "Running")["containerStatuses"][0]
    assert (status["started"], status["ready"]) == (True, False)
    (tmp_path / "ready").touch()
    eventually(lambda: pods.status("hooked")["containerStatuses"][0]["ready"], "readiness")
    pods.delete("hooked")
    eventually(lambda: pods.get("hooked") is None, "the pod to go")

    assert note.read_text() == "began x\nends x\n"


def test_a_container_that_fails_is_started_again(pods: Pods, tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/n; test $(wc -l < {tmp_path}/n) = 2"
    pods.create("again", script, restartPolicy="OnFailure")
    status = pods.wait("again", "Succeeded")["containerStatuses"][0]

    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1


def test_a_killed_agent_finds_everything_again_and_runs_nothing_twice(
    bed: Testbed, namespace: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    with agent(bed, tmp_path / "root", "recovery", "mortal") as mortal:
        pods = Pods(bed, namespace, "recovery")
        gate = tmp_path / "gate"
        for number in range(4):
            script = f"echo {number} >> {notes}/{number}; while [ ! -e {gate} ]; do sleep 0.05; done; exit {number}"
            pods.create(f"p{number}", script)
        for number in range(4):
            pods.wait(f"p{number}", "Running")
        mortal.kill()
        gate.touch()
        pods.create("late", f"echo late >> {notes}/late")
        mortal.start()

        assert pods.wait("p0", "Succeeded")["containerStatuses"][0]["restartCount"] == 0
        for number in range(1, 4):
            ended = pods.wait(f"p{number}", "Failed")["containerStatuses"][0]["state"]["terminated"]
            assert ended["exitCode"] == number
        pods.wait("late", "Succeeded")
    assert {path.name: path.read_text().split() for path in notes.iterdir()} == {
        name: [name] for name in ("0", "1", "2", "3", "late")
    }


def test_an_agent_killed_at_any_moment_of_a_start_starts_nothing_twice(
    bed: Testbed, namespace: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    with agent(bed, tmp_path / "root", "hurried", "hurried") as mortal:
        pods = Pods(bed, namespace, "hurried")
        names = [f"h{number}" for number in range(12)]
        for number, name in enumerate(names):
            pods.create(name, f"echo x >> {notes}/{name}")
            if number % 3 == 2:
                mortal.kill()  # while it sees, prepares, starts or reports the last ones
                mortal.start()
        for name in names:
            pods.wait(name, "Succeeded")
    assert {path.name: path.read_text() for path in notes.iterdir()} == dict.fromkeys(names, "x\n")


def test_what_was_deleted_behind_the_agents_back_is_stopped(bed: Testbed, namespace: str, tmp_path: Path) -> None:
    with agent(bed, tmp_path / "root", "forced", "forced") as mortal:
        pods = Pods(bed, namespace, "forced")
        pods.create("p", f"echo $$$$ > {tmp_path}/pid; exec sleep 1000")
        pods.wait("p", "Running")
        mortal.kill()
        bed.control_plane.kubectl("delete", "pod", "-n", namespace, "p", "--force", "--grace-period=0")
        mortal.start()
        pid = int((tmp_path / "pid").read_text())
        eventually(lambda: not os.path.exists(f"/proc/{pid}"), "the process to end")
        eventually(lambda: not list((tmp_path / "root" / "pods").iterdir()), "its directory to go")


def test_pretended_pods_do_as_their_annotations_say(bed: Testbed, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with agent(bed, tmp_path / "root", "pretend", "fancy-0", "fancy-1"):
        pods = Pods(bed, namespace, "pretend")
        pods.create("good", "sleep 0.2")
        pods.create("bad", "true", annotations={"fake.octarbiter/duration": "100ms", "fake.octarbiter/exit-code": "7"})
        pods.create("long", "true")
        for number in range(20):
            pods.create(f"many-{number}", "exit 0")

        assert pods.wait("bad", "Failed")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
        pods.wait("good", "Succeeded")
        pods.wait("long", "Running")
        for number in range(20):
            pods.wait(f"many-{number}", "Succeeded")
        pods.delete("long")
        eventually(lambda: pods.get("long") is None, "the deleted pod to go")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        Path(sys.argv[2]).mkdir(exist_ok=True)
        asyncio.run(play(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:]))
