"""TaskSets on a real Kubernetes: the controller as a process beside the bed, and a bench a test; for `conftest.py` to
import.

The controller runs as it would in a cluster: with the rights that `octo install` gives it and no more, and started
again whenever it ends by itself; but only while a module of tests asks for it, because others that share the bed want
none, or their own. A test that goes wrong shows what the controller said and what happened to the pods; a test also
fails if two pods of one replica were ever alive at once, or if the controller stumbled over itself.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from embedded_bed import EmbeddedBed, InterruptiblePlane
from eventual import eventually
from taskset_bench import Bench
from taskset_observer import Observer

from octarbiter.api import crd, kinds, scheme
from octarbiter.cli import installation
from octarbiter.testing.kubernetes import certificates, processes
from octarbiter.testing.kubernetes.bed import Testbed

ACCOUNT = "octarbiter-under-test"
RBAC = "rbac.authorization.k8s.io"


class Controller:
    """`octo controller`. `flags` come on top of those that any of them needs."""

    def __init__(self, bed: Testbed, kubeconfig: Path, log: Path, *flags: str) -> None:
        argv = [sys.executable, "-m", "octarbiter", "controller", "--health-address=", f"--lease-namespace={ACCOUNT}"]
        env = {"KUBECONFIG": str(kubeconfig), "PATH": os.environ.get("PATH", os.defpath)}
        self.bed = bed
        self.process = processes.Process(log.stem, [*argv, *flags], log, env=env)
        self._rests = threading.Event()
        self._keeper: threading.Thread | None = None

    def start(self) -> None:
        """From now on it runs, whatever ends it."""
        self._rests.clear()
        self.process.start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def stop(self) -> None:
        self._rest()
        self.process.stop()

    def kill(self) -> None:
        """At once, with whatever it was doing, and it stays dead."""
        self._rest()
        if self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def lines(self, since: int = 0) -> list[dict[str, Any]]:
        """What it logged, from this byte of its log on."""
        if not self.process.log.exists():
            return []
        with self.process.log.open("rb") as log:
            log.seek(since)
            return [json.loads(line) if line.startswith(b"{") else {"message": line.decode()} for line in log]

    @property
    def log_size(self) -> int:
        return self.process.log.stat().st_size if self.process.log.exists() else 0

    def when_it_says(self, message: str, since: int = 0, timeout_s: float = 60.0) -> None:
        def said() -> bool:
            return any(line["message"] == message for line in self.lines(since))

        complaint = f"{self.process.name} to say {message!r}"
        eventually(said, lambda: f"{complaint}; the end of its log:\n{processes.tail(self.process.log)}", timeout_s)

    def lease(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.bed.control_plane.request(
            "GET", scheme.LEASES.path(ACCOUNT, installation.CONTROLLER.name)
        )["spec"]
        return spec

    def another(self, name: str, *flags: str) -> "Controller":
        """Beside this one, in the same contest for the same lease."""
        log = self.process.log.with_name(f"{name}.log")
        return Controller(self.bed, kubeconfig_file(self.bed), log, *flags)

    def _rest(self) -> None:
        self._rests.set()
        if self._keeper is not None:
            self._keeper.join()

    def _keep(self) -> None:
        """As a Deployment would: losing the lease ends the process, and somebody must start the next."""
        while not self._rests.wait(0.2):
            if not self.process.is_alive:
                self.process.start()


def kubeconfig_file(bed: Testbed) -> Path:
    return bed.control_plane.directory / f"{ACCOUNT}.kubeconfig"


@contextlib.contextmanager
def running(bed: Testbed, directory: Path) -> Iterator[Controller]:
    _install(bed)
    made = Controller(bed, kubeconfig_file(bed), directory / "controller.log")
    made.start()
    try:
        made.when_it_says("leading")
        yield made
    finally:
        made.stop()


def _install(bed: Testbed) -> None:
    """CRD, service account and rights as `octo install` makes them, under a name of our own."""
    plane = bed.control_plane
    account = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": ACCOUNT}]
    objects: list[Any] = [
        crd.render(kinds.TASKSET),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ACCOUNT}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": ACCOUNT}},
    ]
    for kind, rules in (
        ("ClusterRole", installation.CONTROLLER.rules),
        ("Role", installation.CONTROLLER.rules_at_home),
    ):
        meta = {"name": ACCOUNT} | ({"namespace": ACCOUNT} if kind == "Role" else {})
        head = {"apiVersion": f"{RBAC}/v1", "metadata": meta}
        reference = {"apiGroup": RBAC, "kind": kind, "name": ACCOUNT}
        objects.append(head | {"kind": kind, "rules": rules})
        objects.append(head | {"kind": f"{kind}Binding", "roleRef": reference, "subjects": account})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump_all(objects))
    plane.kubectl("wait", "--for=condition=Established", f"crd/{kinds.TASKSET.definition}", "--timeout=60s")
    token = plane.kubectl("create", "token", ACCOUNT, f"--namespace={ACCOUNT}", "--duration=24h").stdout.strip()
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token}
    certificates.write_secret(kubeconfig_file(bed), yaml.safe_dump(content).encode())


@contextlib.contextmanager
def bench(bed: Testbed, controller: Controller, observer: Observer) -> Iterator[Bench]:
    plane = bed.control_plane
    namespace, since = plane.create_namespace(), controller.log_size
    made = Bench(bed, namespace, observer)
    try:
        yield made
        assert observer.doubles(namespace) == []
        assert [line for line in controller.lines(since) if line.get("exception")] == []
    finally:
        # Shown where the test has failed, and only then.
        print(f"--- the pods of {namespace}", *observer.story(namespace), sep="\n")
        print("--- what the controller said", *map(json.dumps, controller.lines(since)), sep="\n")
        plane.request("DELETE", scheme.NAMESPACES.path(name=namespace))


@pytest.fixture(scope="session")
def embedded_bed(programs: None) -> Iterator[EmbeddedBed]:
    with EmbeddedBed(fake_nodes=5, resources={"nvidia.com/gpu": "8"}) as made:
        yield made


@pytest.fixture(scope="session")
def interruptible_bed(programs: None) -> Iterator[EmbeddedBed]:
    """Embedded, too; its API server can be away for a while."""
    with EmbeddedBed(fake_nodes=5, kind=InterruptiblePlane) as made:
        yield made


@pytest.fixture(scope="module", params=["kubernetes", "embedded"])
def any_bed(request: pytest.FixtureRequest) -> Testbed:
    """The same tests on a real Kubernetes and on the embedded cluster."""
    fixtures = {"kubernetes": "bed", "embedded": "embedded_bed", "interruptible": "interruptible_bed"}
    found: Testbed = request.getfixturevalue(fixtures[request.param])
    return found


@pytest.fixture(scope="module")
def controller(any_bed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with running(any_bed, tmp_path_factory.mktemp("controller")) as made:
        yield made


@pytest.fixture(scope="module")
def real_controller(real_bed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with running(real_bed, tmp_path_factory.mktemp("real-controller")) as made:
        yield made


@pytest.fixture(scope="module")
def observer(any_bed: Testbed) -> Iterator[Observer]:
    with Observer(any_bed.control_plane) as made:
        yield made


@pytest.fixture(scope="module")
def real_observer(real_bed: Testbed) -> Iterator[Observer]:
    with Observer(real_bed.control_plane) as made:
        yield made


@pytest.fixture
def tasksets(any_bed: Testbed, controller: Controller, observer: Observer) -> Iterator[Bench]:
    """A namespace on fake nodes."""
    with bench(any_bed, controller, observer) as made:
        yield made


@pytest.fixture
def real_tasksets(real_bed: Testbed, real_controller: Controller, real_observer: Observer) -> Iterator[Bench]:
    """A namespace on the real node."""
    with bench(real_bed, real_controller, real_observer) as made:
        yield made
