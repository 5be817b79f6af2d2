"""The bed the other tests stand on: that it is a Kubernetes, and that it leaves nothing behind."""

import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octarbiter.testing.kubernetes import bed as beds
from octarbiter.testing.kubernetes import build, connection, controlplane, node, processes, scratch, versions
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.controlplane import ControlPlane

_LEFT = ("octarbiter-bed-young", "octarbiter-bed-abandoned", "somebody-else")

pytestmark = pytest.mark.xdist_group("bed")


def test_kubectl_and_the_server_speak_the_pinned_version(bed: Testbed) -> None:
    said = json.loads(bed.control_plane.kubectl("version", "--output=json").stdout)

    assert said["clientVersion"]["gitVersion"] == versions.KUBERNETES
    assert said["serverVersion"]["gitVersion"] == versions.KUBERNETES


def test_fake_nodes_are_ready_untainted_and_as_large_as_asked_for(bed: Testbed) -> None:
    nodes = bed.control_plane.request("GET", "/api/v1/nodes")["items"]

    assert len(nodes) == len(bed.fake_nodes.names) >= 5
    for found in nodes:
        assert found["spec"].get("taints", []) == []
        assert found["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert {"type": "Ready", "status": "True"}.items() <= found["status"]["conditions"][0].items()


def test_a_failing_kubectl_raises_what_it_said(bed: Testbed) -> None:
    with pytest.raises(controlplane.KubectlFailed, match=r"get pod nowhere: exit code 1: .*not found"):
        bed.control_plane.kubectl("get", "pod", "nowhere")

    assert bed.control_plane.kubectl("get", "pod", "nowhere", check=False).returncode == 1


def test_files_with_secrets_are_for_their_owner_alone(bed: Testbed) -> None:
    directory = bed.control_plane.directory
    secret = [*directory.glob("*.kubeconfig"), *directory.glob("*.key"), *directory.glob("*.csv")]

    assert len(secret) >= 8
    assert {stat.S_IMODE(file.stat().st_mode) for file in secret} == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_service_account_may_do_what_a_role_allows_and_no_more(bed: Testbed, namespace: str) -> None:
    plane = bed.control_plane
    plane.kubectl("create", "serviceaccount", "robot", "--namespace", namespace)
    plane.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", "--namespace", namespace)
    binding = ("create", "rolebinding", "robot", "--role=reader", f"--serviceaccount={namespace}:robot")
    plane.kubectl(*binding, "--namespace", namespace)
    token = plane.kubectl("create", "token", "robot", "--namespace", namespace).stdout
    robot = connection.Connection(plane.url, plane.authority.pem, token)

    _eventually(lambda: robot.answers(f"/api/v1/namespaces/{namespace}/pods"))
    with pytest.raises(connection.ApiError) as refusal:
        robot.request("GET", f"/api/v1/namespaces/{namespace}/secrets")
    robot.close()
    assert refusal.value.status == 403


def test_a_stranger_is_refused(bed: Testbed) -> None:
    stranger = connection.Connection(bed.control_plane.url, bed.control_plane.authority.pem, "guessed")
    with pytest.raises(connection.ApiError) as refusal:
        stranger.request("GET", "/api/v1/namespaces")
    stranger.close()

    assert refusal.value.status == 401


def test_the_api_server_goes_away_and_comes_back_with_all_its_data(bed: Testbed, namespace: str) -> None:
    plane = bed.control_plane
    others = {name: pid for name, pid in plane.pids.items() if name != "kube-apiserver"}
    plane.stop_apiserver()
    with pytest.raises(OSError, match="refused"):
        plane.request("GET", f"/api/v1/namespaces/{namespace}")
    plane.start_apiserver()

    assert plane.request("GET", f"/api/v1/namespaces/{namespace}")["metadata"]["name"] == namespace
    assert {name: pid for name, pid in plane.pids.items() if name != "kube-apiserver"} == others
    # Scheduler and nodes find their way back, too.
    pod = {"metadata": {"name": "after"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    path = f"/api/v1/namespaces/{namespace}/pods/after"
    _eventually(lambda: plane.request("GET", path)["status"]["phase"] == "Running")


def test_memory_is_known_also_of_what_has_ended(programs: None) -> None:
    with ControlPlane(controller_manager=False, scheduler=False) as plane:
        while_running = plane.peak_memory

    assert set(while_running) == {"etcd", "kube-apiserver"}
    assert all(10_000_000 < while_running[name] <= plane.peak_memory[name] for name in while_running)


def test_two_control_planes_live_side_by_side_and_know_nothing_of_each_other(bed: Testbed, namespace: str) -> None:
    with ControlPlane(controller_manager=False, scheduler=False) as other:
        assert other.url != bed.control_plane.url
        with pytest.raises(connection.ApiError) as refusal:
            other.request("GET", f"/api/v1/namespaces/{namespace}")
        pids, directory = other.pids, other.directory

    assert refusal.value.status == 404
    assert not any(_is_alive(pid) for pid in pids.values())
    assert not directory.exists()


def test_a_port_that_somebody_else_was_faster_to_take_is_given_up(
    programs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = controlplane._free_port
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken = somebody.getsockname()[1]
        ports = [taken]
        monkeypatch.setattr(controlplane, "_free_port", lambda address: ports.pop() if ports else find(address))
        with ControlPlane(controller_manager=False, scheduler=False) as plane:
            assert not plane.url.endswith(f":{taken}")


def test_nothing_survives_a_parent_that_is_killed(programs: None) -> None:
    program = (
        "import json, threading, time\n"
        "from octarbiter.testing.kubernetes.bed import Testbed\n"
        "bed = Testbed(fake_nodes=1)\n"
        # In a thread that ends at once: the children belong to the process, not to whoever started them.
        "thread = threading.Thread(target=bed.start); thread.start(); thread.join()\n"
        "print(json.dumps(bed.control_plane.pids), flush=True)\n"
        "time.sleep(3600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = json.loads(parent.stdout.readline())
    assert set(pids) == {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
    assert all(_is_alive(pid) for pid in pids.values())
    parent.send_signal(signal.SIGKILL)
    parent.communicate()

    _eventually(lambda: not any(_is_alive(pid) for pid in pids.values()))


def test_what_a_killed_run_left_on_disk_is_removed_by_the_next_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(scratch, "_base", lambda: base)
    alive, young, abandoned, foreign = scratch.Scratch(), *(base / f"{name}-1" for name in _LEFT)
    for directory in (young, abandoned, foreign):
        directory.mkdir()
        (directory / "lock").touch()
    an_hour_ago = time.time() - 3600
    for directory in (alive.directory, abandoned, foreign):
        os.utime(directory, (an_hour_ago, an_hour_ago))
    newest = scratch.Scratch()

    assert set(base.iterdir()) == {alive.directory, young, foreign, newest.directory}
    alive.remove()
    newest.remove()
    assert set(base.iterdir()) == {young, foreign}


def test_a_program_that_does_not_come_up_shows_the_end_of_its_log(tmp_path: Path) -> None:
    process = processes.Process("talker", ["/bin/sh", "-c", "echo the reason; exit 7"], tmp_path / "log")
    process.start()

    with pytest.raises(processes.StartFailed, match=r"talker ended with exit code 7; .*\n.*the reason"):
        process.wait_until_ready(lambda: False)


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = processes.Process("deaf", ["/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"], log)
    process.start()
    process.wait_until_ready(lambda: "up" in log.read_text())
    process.stop(grace_s=0.1)

    assert process.wait(0) == -signal.SIGKILL
    assert process.pid is None


def test_a_real_node_that_is_not_possible_is_left_out_with_one_line(
    programs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node.RealNode, "unavailable", staticmethod(lambda: "no real node here: not today"))
    told = io.StringIO()
    with Testbed(fake_nodes=1, real_node=True, stream=told) as testbed:
        assert testbed.real_node is None
        assert testbed.left_out == "no real node here: not today"

    assert told.getvalue() == "LEFT OUT: no real node here: not today\n"


@pytest.fixture
def detached(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(build.binaries_home()))
    monkeypatch.setenv("OCTARBITER_CACHE", str(tmp_path))
    yield
    beds.down()


def test_a_detached_bed_stays_until_it_is_taken_down(detached: None) -> None:
    assert beds.status() is None
    started = beds.up(fake_nodes=2, resources={"nvidia.com/gpu": "4"}, stream=io.StringIO())
    assert beds.status() == started
    kubectl = [str(build.ensure(["kubectl"])["kubectl"]), f"--kubeconfig={started.kubeconfig}"]
    gpus = "-o=jsonpath={.items[*].status.allocatable.nvidia\\.com/gpu}"
    assert subprocess.check_output([*kubectl, "get", "nodes", gpus], text=True) == "4 4"
    assert stat.S_IMODE(Path(started.kubeconfig).stat().st_mode) == 0o600
    with pytest.raises(beds.NotUp, match="up already"):
        beds.up(stream=io.StringIO())

    assert beds.down()
    assert beds.status() is None
    assert not any(_is_alive(pid) for pid in started.components.values())
    assert not Path(started.kubeconfig).exists()
    assert not beds.down()


def test_a_detached_bed_whose_supervisor_was_killed_is_down_and_can_be_had_again(detached: None) -> None:
    killed = beds.up(fake_nodes=0, stream=io.StringIO())
    os.kill(killed.pid, signal.SIGKILL)

    _eventually(lambda: beds.status() is None)
    _eventually(lambda: not any(_is_alive(pid) for pid in killed.components.values()))
    assert beds.up(fake_nodes=0, stream=io.StringIO()).pid != killed.pid


def test_a_detached_bed_that_loses_a_component_goes_down_and_says_which(detached: None) -> None:
    started = beds.up(fake_nodes=0, stream=io.StringIO())
    os.kill(started.components["etcd"], signal.SIGKILL)

    _eventually(lambda: beds.status() is None)
    assert "etcd has ended" in (build.cache_home() / "testbed" / "log").read_text()
    assert not any(_is_alive(pid) for pid in started.components.values())


def _is_alive(pid: int) -> bool:
    """Zombies are dead, and whoever got the id of one of ours later does not count."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
    return any(name.encode() in command for name in build.PROGRAMS)


def _eventually(holds: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s"
        time.sleep(0.05)
