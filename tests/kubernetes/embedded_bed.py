"""The embedded cluster in the place of a real Kubernetes: what tests of TaskSets need of a bed, and no more."""

import subprocess
from types import SimpleNamespace, TracebackType
from typing import Self
from urllib.parse import urlsplit

import yaml
from relay import Relay

from octarbiter.testing.cluster import EmbeddedCluster
from octarbiter.testing.kubernetes import build, certificates
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


class InterruptiblePlane(EmbeddedPlane):
    """Those who come with its kubeconfig can be cut off. The cluster's own parts are not, nor are those who test."""

    def start(self) -> None:
        super().start()
        self._relay = Relay(urlsplit(self.url).port or 0)
        self._relay.open()
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._relay.port}"
        self.kubeconfig = self.directory / "relayed.kubeconfig"
        certificates.write_secret(self.kubeconfig, yaml.safe_dump(config).encode())

    def stop(self) -> None:
        self._relay.end()
        super().stop()

    def stop_apiserver(self) -> None:
        self._relay.close()

    def start_apiserver(self) -> None:
        self._relay.open()


class EmbeddedNodes(FakeNodes):
    """Nodes that the cluster itself pretends to have."""

    def start(self) -> None:
        self.names = [each["metadata"]["name"] for each in self._control_plane.request("GET", "/api/v1/nodes")["items"]]


class EmbeddedBed:
    def __init__(
        self, *, fake_nodes: int, resources: dict[str, str] | None = None, kind: type[EmbeddedPlane] = EmbeddedPlane
    ) -> None:
        self.control_plane = kind(nodes=fake_nodes, resources=resources, services=False)
        self.fake_nodes = EmbeddedNodes(self.control_plane, 0)  # type: ignore[arg-type]  # as much of one as it needs

    def __enter__(self) -> Self:
        self.control_plane.start()
        self.fake_nodes.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.control_plane.stop()
