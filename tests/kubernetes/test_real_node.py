"""A real kubelet with containerd: what pods may count on, and that nothing of it stays behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from octarbiter.testing.kubernetes import enclosure
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.node import RealNode

pytestmark = pytest.mark.xdist_group("real-node")

_KERNEL_VARIABLES = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")


def _kernel_variables() -> dict[str, str]:
    return {name: Path(f"/proc/sys/{name}").read_text() for name in _KERNEL_VARIABLES}


# Read when tests are collected: no kubelet of ours runs yet.
_KERNEL_BEFORE = _kernel_variables()


@pytest.fixture
def namespace(real_bed: Testbed) -> Iterator[str]:
    name = real_bed.control_plane.create_namespace()
    yield name
    real_bed.control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


def test_the_node_is_ready_and_carries_the_version_of_its_control_plane(real_bed: Testbed) -> None:
    node = real_bed.control_plane.request("GET", f"/api/v1/nodes/{_node(real_bed).name}")
    server = real_bed.control_plane.request("GET", "/version")

    assert _condition(node, "Ready") == "True"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == server["gitVersion"]


def test_a_pod_that_exits_3_shows_its_exit_code_its_log_and_its_last_words(real_bed: Testbed, namespace: str) -> None:
    pod = _pod("speaks", "echo these are my last words; exit 3", terminationMessagePolicy="FallbackToLogsOnError")
    _create(real_bed, namespace, pod)
    ended = _when(real_bed, namespace, "speaks", lambda pod: pod["status"]["phase"] == "Failed")
    logs = real_bed.control_plane.kubectl("logs", f"--namespace={namespace}", "speaks").stdout

    terminated = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["message"]) == (3, "these are my last words\n")
    assert logs == "these are my last words\n"


def test_the_image_is_pulled_anew_for_every_pod(real_bed: Testbed, namespace: str) -> None:
    for name in ("first", "second"):
        created = _create(real_bed, namespace, _pod(name, "true"))
        _when(real_bed, namespace, name, lambda pod: pod["status"]["phase"] == "Succeeded")
        assert created["spec"]["containers"][0]["imagePullPolicy"] == "Always"

    _until(lambda: {"first", "second"} <= _pods_with_event(real_bed, namespace, "Pulled"))


def test_an_image_the_registry_does_not_have_is_reported_as_not_found(real_bed: Testbed, namespace: str) -> None:
    pod = _pod("stranger", "true")
    pod["spec"]["containers"][0]["image"] = "no-such-image"
    _create(real_bed, namespace, pod)

    waiting = _when(real_bed, namespace, "stranger", lambda pod: "not found" in _waiting_message(pod))
    assert "no-such-image" in _waiting_message(waiting)


def test_eight_pods_of_a_second_each_all_succeed(real_bed: Testbed, namespace: str) -> None:
    names = [f"sleeper-{number}" for number in range(8)]
    for name in names:
        _create(real_bed, namespace, _pod(name, "sleep 1"))

    for name in names:
        _when(real_bed, namespace, name, lambda pod: pod["status"]["phase"] == "Succeeded")


def test_a_pod_is_reached_by_its_address_from_another_pod_and_from_the_machine(
    real_bed: Testbed, namespace: str
) -> None:
    serve = "echo hello from a pod > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"
    _create(real_bed, namespace, _pod("server", serve))
    server = _when(real_bed, namespace, "server", lambda pod: _condition(pod, "Ready") == "True")
    url = f"http://{server['status']['podIP']}:8080/"
    fetch = f"until wget -q -O- {url}; do sleep 0.1; done"
    _create(real_bed, namespace, _pod("client", fetch))
    _when(real_bed, namespace, "client", lambda pod: pod["status"]["phase"] == "Succeeded")
    logs = real_bed.control_plane.kubectl("logs", f"--namespace={namespace}", "client").stdout
    fetched = subprocess.run(["busybox", "wget", "-q", "-O-", url], capture_output=True, text=True, check=True).stdout

    assert logs == "hello from a pod\n"
    assert fetched == "hello from a pod\n"


def test_commands_run_in_a_live_pod_and_deletion_reaches_it_as_sigterm(real_bed: Testbed, namespace: str) -> None:
    _create(real_bed, namespace, _pod("lives", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"))
    _when(real_bed, namespace, "lives", lambda pod: _condition(pod, "Ready") == "True")
    kubectl = real_bed.control_plane.kubectl

    assert kubectl("exec", f"--namespace={namespace}", "lives", "--", "hostname").stdout == "lives\n"
    # Its grace period is an hour: only the trap lets this return in time.
    kubectl("delete", "pod", "lives", f"--namespace={namespace}", "--grace-period=3600", "--wait", timeout_s=60)


def test_a_pod_that_needs_more_memory_than_its_limit_is_killed_for_it(real_bed: Testbed, namespace: str) -> None:
    limits = {"limits": {"memory": "32Mi"}}
    _create(real_bed, namespace, _pod("greedy", "tail -c 200m /dev/zero", resources=limits))
    ended = _when(real_bed, namespace, "greedy", lambda pod: pod["status"]["phase"] == "Failed")

    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_a_pod_waits_for_gpus_until_the_node_has_as_many(real_bed: Testbed, namespace: str) -> None:
    gpus = {"limits": {"nvidia.com/gpu": "2"}}
    _node(real_bed).set_resource("nvidia.com/gpu", 1)
    _create(real_bed, namespace, _pod("trainer", "true", resources=gpus))
    _when(real_bed, namespace, "trainer", lambda pod: _condition(pod, "PodScheduled") == "False")
    _node(real_bed).set_resource("nvidia.com/gpu", 2)

    _when(real_bed, namespace, "trainer", lambda pod: pod["status"]["phase"] == "Succeeded")


def test_what_kubelet_sets_in_the_kernel_is_not_set_on_the_machine(real_bed: Testbed) -> None:
    assert _node(real_bed).place.run("cat", "/proc/sys/kernel/panic").strip() == "10"
    assert _kernel_variables() == _KERNEL_BEFORE


def test_a_second_node_beside_the_first_leaves_nothing_behind_and_the_first_unharmed(
    real_bed: Testbed, namespace: str
) -> None:
    with Testbed(fake_nodes=0, real_node=True) as second:
        _create(second, "default", _pod("straggler", "sleep 3600"))
        _when(second, "default", "straggler", lambda pod: _condition(pod, "Ready") == "True")
        traces = Traces.of(_node(second))
        assert {"containerd", "containerd-shim", "kubelet", "docker-registry", "sleep"} <= traces.processes()
        assert traces.links()
        assert traces.cgroups()
        assert traces.files()

    assert not traces.processes()
    assert [*traces.links(), *traces.mounts(), *traces.cgroups(), *traces.files()] == []
    _create(real_bed, namespace, _pod("unharmed", "true"))
    _when(real_bed, namespace, "unharmed", lambda pod: pod["status"]["phase"] == "Succeeded")


def test_a_node_whose_owner_is_killed_ends_by_itself_and_the_next_one_sweeps_up(real_bed: Testbed) -> None:
    with tempfile.TemporaryDirectory() as home:
        owner = subprocess.Popen(
            [sys.executable, "-c", "import test_real_node; test_real_node.own_a_bed()"],
            cwd=Path(__file__).parent,
            env=os.environ | {"TMPDIR": home},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert owner.stdout is not None
            traces = Traces(**json.loads(owner.stdout.readline()))
            assert {"containerd", "containerd-shim", "kubelet", "sleep"} <= traces.processes()
        finally:
            owner.kill()
            owner.communicate()

        _until(lambda: not (traces.processes() or traces.links() or traces.mounts()))
    assert traces.cgroups()
    enclosure.sweep()
    assert not traces.cgroups()
    assert Traces.of(_node(real_bed)).cgroups()


def test_what_is_missing_for_a_real_node_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    problem = RealNode.unavailable()

    assert problem is not None
    assert "apt-get install -y busybox-static containerd docker-registry iproute2 iptables runc util-linux" in problem
    assert "root" in problem


def own_a_bed() -> None:
    """Have a node with a pod on it, say so, and wait to be killed."""
    with Testbed(fake_nodes=0, real_node=True) as bed:
        _create(bed, "default", _pod("orphan", "sleep 3600"))
        _when(bed, "default", "orphan", lambda pod: _condition(pod, "Ready") == "True")
        print(json.dumps(asdict(Traces.of(_node(bed)))), flush=True)
        signal.pause()


@dataclass(frozen=True)
class Traces:
    """What a node can be recognised by on the machine, while it runs and after."""

    directory: str
    cgroup: str
    address: str
    network_namespace: str

    @classmethod
    def of(cls, node: RealNode) -> Self:
        network_namespace = node.place.run("readlink", "/proc/self/ns/net").strip()
        return cls(str(node.directory), node.place.cgroup, node.bind_address, network_namespace)

    def processes(self) -> set[str]:
        """The node's own share its network, those of pods are in its cgroup."""
        return {
            (process / "comm").read_text().strip() for process in Path("/proc").glob("[0-9]*") if self._has(process)
        }

    def _has(self, process: Path) -> bool:
        try:
            return (
                os.readlink(process / "ns/net") == self.network_namespace
                or self.cgroup in (process / "cgroup").read_text()
            )
        except OSError:
            return False

    def links(self) -> list[str]:
        found = subprocess.run(["ip", "-json", "address", "show", "to", self.address], capture_output=True, check=True)
        return [link["ifname"] for link in json.loads(found.stdout or "[]") if link]

    def mounts(self) -> list[str]:
        return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if self.directory in line]

    def cgroups(self) -> list[Path]:
        name = self.cgroup.removeprefix("/")
        return [*Path("/sys/fs/cgroup").glob(name), *Path("/sys/fs/cgroup").glob(f"*/{name}")]

    def files(self) -> list[Path]:
        return list(Path(self.directory).glob("**/*"))


def _node(bed: Testbed) -> RealNode:
    assert bed.real_node is not None, bed.left_out
    return bed.real_node


def _pod(name: str, script: str, **container: Any) -> dict[str, Any]:
    command = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [command | container]}
    return {"metadata": {"name": name}, "spec": spec}


def _create(bed: Testbed, namespace: str, pod: dict[str, Any]) -> Any:
    return bed.control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)


def _when(bed: Testbed, namespace: str, name: str, condition: Callable[[Any], bool]) -> Any:
    """The pod, as soon as the condition holds."""
    pod: Any = None

    def holds() -> bool:
        nonlocal pod
        pod = bed.control_plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        return condition(pod)

    _until(holds, lambda: json.dumps(pod["status"]))
    return pod


def _until(condition: Callable[[], bool], described: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"not within a minute: {described()}"
        time.sleep(0.1)


def _condition(thing: Any, kind: str) -> str | None:
    conditions = {condition["type"]: condition["status"] for condition in thing["status"].get("conditions", ())}
    return conditions.get(kind)


def _waiting_message(pod: Any) -> str:
    containers = pod["status"].get("containerStatuses", ())
    return " ".join(container["state"].get("waiting", {}).get("message", "") for container in containers)


def _pods_with_event(bed: Testbed, namespace: str, reason: str) -> set[str]:
    events = bed.control_plane.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return {event["involvedObject"]["name"] for event in events if event["reason"] == reason}
