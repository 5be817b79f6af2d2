"""The embedded cluster in the place of a real Kubernetes: what tests of TaskSets need of a bed, and no more."""

import subprocess
from types import SimpleNamespace, TracebackType
from typing import Self

from octarbiter.testing.cluster import EmbeddedCluster
from octarbiter.testing.kubernetes import build
from octarbiter.testing.kubernetes.controlplane import KubectlFailed
from octarbiter.testing.kubernetes.fakenodes import FakeNodes


class EmbeddedPlane(EmbeddedCluster):
    """Speaks as `ControlPlane` does."""

    @property
    def admin_token(self) -> str:
        return self.token

    @property
    def authority(self) -> SimpleNamespace:
        return SimpleNamespace(pem=self.ca_pem)

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        argv = [str(build.ensure(["kubectl"])["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        env = {"HOME": str(self.directory)}
        done = subprocess.run(
            argv, input=input, capture_output=True, text=True, timeout=timeout_s, env=env, check=False
        )
        if check and done.returncode:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
        return done


class EmbeddedNodes(FakeNodes):
    """Nodes that the cluster itself pretends to have."""

    def start(self) -> None:
        self.names = [each["metadata"]["name"] for each in self._control_plane.request("GET", "/api/v1/nodes")["items"]]


class EmbeddedBed:
    def __init__(self, *, fake_nodes: int, resources: dict[str, str]) -> None:
        self.control_plane = EmbeddedPlane(nodes=fake_nodes, resources=resources, services=False)
        self.fake_nodes = EmbeddedNodes(self.control_plane, 0)  # type: ignore[arg-type]  # as much of one as it needs

    def __enter__(self) -> Self:
        self.control_plane.start()
        self.fake_nodes.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.control_plane.stop()
