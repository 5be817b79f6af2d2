"""The embedded cluster as people meet it: `octo run`, `octo up`, `octo down`, and what a kill leaves of it."""

import base64
import json
import os
import signal
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GPU_JOB = EXAMPLES / "manual-1-tensorflowdemo.yaml"
TASKSETS = 20


class Octo:
    """The command, with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OCTO_", "KUBECONFIG"))}
        self.env = kept | {"OCTO_HOME": str(home)}

    @property
    def directory(self) -> Path:
        return self.home / "cluster"

    def __call__(self, *arguments: str, timeout_s: float = 90.0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "octarbiter", *arguments]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=timeout_s, check=False)

    def up(self, *arguments: str) -> None:
        said = self("up", *arguments)
        assert said.returncode == 0, said.stderr
        self.env["KUBECONFIG"] = str(self.directory / "kubeconfig")

    def kill(self) -> None:
        os.kill(json.loads((self.directory / "process.json").read_text())["pid"], signal.SIGKILL)


@pytest.fixture
def octo(tmp_path: Path) -> Iterator[Octo]:
    made = Octo(tmp_path / "home")
    yield made
    made("down", "--delete")


def job(name: str, *command: str, replicas: int = 2) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "command": ["sh", "-c", " ".join(command)]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
        "kind": "TaskSet",
        "metadata": {"name": name},
        "spec": {"roles": [{"name": "worker", "replicas": replicas, "template": {"spec": spec}}]},
    }


def written(path: Path, *bodies: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump_all(bodies))
    return str(path)


def alive_with(marker: str) -> list[str]:
    """Processes that have this word on their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(marker.encode() in word for word in words):
            found.append(entry.parent.name)
    return found


def test_run_ends_as_the_taskset_ends_and_leaves_nothing_behind(octo: Octo, tmp_path: Path) -> None:
    good = octo("run", written(tmp_path / "good.yaml", job("good", "echo done")))
    bad = octo("run", written(tmp_path / "bad.yaml", job("bad", "echo no disk >&2; exit 3", replicas=1)))

    assert good.returncode == 0, good.stderr
    assert good.stdout.splitlines()[-1] == "good: Succeeded: all roles succeeded"
    assert bad.returncode == 1
    assert "worker-0 Failed (exit 3)" in bad.stdout
    assert "bad failed: " in bad.stderr
    assert not octo.home.exists()


def test_run_prints_what_the_replicas_print_when_asked_to(octo: Octo, tmp_path: Path) -> None:
    said = octo("run", "--logs", written(tmp_path / "a.yaml", job("a", "echo I am $TASKROLE_REPLICA_INDEX; sleep 1")))

    assert said.returncode == 0, said.stderr
    assert sorted(said.stdout.splitlines()) == ["worker-0: I am 0", "worker-1: I am 1"]


def test_run_tells_scripts_each_status_as_json(octo: Octo, tmp_path: Path) -> None:
    said = octo("run", "--json", "--pretend", written(tmp_path / "a.yaml", job("a", "sleep 1")))

    states = [json.loads(line)["status"].get("state") for line in said.stdout.splitlines()]
    assert states[-1] == "Succeeded"


def test_what_the_machine_does_not_have_is_named_with_the_flag_that_pretends_it(octo: Octo) -> None:
    said = octo("run", str(GPU_JOB))

    assert said.returncode == 1
    assert "3 pods ask for 1 nvidia.com/gpu each, but no node has any" in said.stderr
    assert "--resource nvidia.com/gpu=3" in said.stderr


def test_ctrl_c_stops_everything(octo: Octo, tmp_path: Path) -> None:
    marker = f"marker-{os.getpid()}-{tmp_path.name}"
    file = written(tmp_path / "long.yaml", job("long", f": {marker}; while true; do sleep 1; done"))
    command = [sys.executable, "-m", "octarbiter", "run", file]
    with subprocess.Popen(command, env=octo.env, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.endswith("long: Running\n"):
                break
        assert alive_with(marker)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130

    assert alive_with(marker) == []


def test_after_kill_9_the_processes_are_recognised_and_nothing_is_run_twice(octo: Octo, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    line = f"echo ran >> {traces}/$TASKSET_NAME-$TASKROLE_REPLICA_INDEX; sleep 4"
    octo.up()
    names = [f"t-{number}" for number in range(TASKSETS)]
    assert octo("submit", "-f", written(tmp_path / "all.yaml", *(job(name, line) for name in names))).returncode == 0
    running = octo("wait", *names, "--for=running", "--timeout=60s")
    assert running.returncode == 0, running.stderr
    octo.kill()
    octo.up()

    said = octo("wait", *names, "--timeout=60s")
    assert said.returncode == 0, said.stderr
    assert {path.name: path.read_text() for path in traces.iterdir()} == {
        f"{name}-{index}": "ran\n" for name in names for index in range(2)
    }


def test_only_its_owner_may_read_its_files_and_only_its_token_opens_it(octo: Octo, tmp_path: Path) -> None:
    octo.up("--pretend")
    config = yaml.safe_load((octo.directory / "kubeconfig").read_text())
    url = config["clusters"][0]["cluster"]["server"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in octo.directory.rglob("*") if path.is_file()}

    assert url.startswith("https://127.0.0.1:")
    assert stat.S_IMODE(octo.directory.stat().st_mode) == 0o700
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
    authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
    context = ssl.create_default_context(cadata=_decoded(authority))
    request = urllib.request.Request(f"{url}/api/v1/pods", headers={"Authorization": "Bearer of-another-run"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=context, timeout=10)
    assert refused.value.code == 401


def test_who_has_no_other_cluster_speaks_to_the_one_that_is_up(octo: Octo, tmp_path: Path) -> None:
    octo.up("--pretend")
    octo.env |= {"HOME": str(tmp_path)}
    octo.env.pop("KUBECONFIG")

    assert octo("get").returncode == 0
    assert octo("--kubeconfig=/nowhere", "get").returncode != 0
    octo("down")
    assert "octo up" in octo("get").stderr


def test_what_was_created_is_there_after_down_and_up(octo: Octo, tmp_path: Path) -> None:
    octo.up("--pretend")
    assert octo("submit", "-f", written(tmp_path / "a.yaml", job("a", "sleep 600"))).returncode == 0
    assert octo("wait", "a", "--for=running", "--timeout=60s").returncode == 0
    assert octo("up").returncode == 4
    assert octo("down").stdout == "the cluster is down\n"
    assert octo("down").stdout == "no cluster was up\n"
    octo.up("--pretend")

    assert octo("wait", "a", "--for=running", "--timeout=60s").returncode == 0
    (replica, _) = json.loads(octo("get", "a", "-o", "json").stdout)["status"]["roleStatus"][0]["replicaStatus"]
    assert replica.get("totalRetriedCount", 0) == 0


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()
