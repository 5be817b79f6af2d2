"""How is a real Kubernetes control plane started on this machine, and how is it ended?

etcd, kube-apiserver and, unless told otherwise, kube-controller-manager and kube-scheduler: the programs of a cluster,
with a cluster's authentication, RBAC and admission. Only the API server has a port: etcd listens on a socket in a
private directory, so nobody else on the machine can read or write what the API server guards.
"""

import errno
import os
import secrets
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import yaml

from octarbiter.testing.kubernetes import build, certificates, connection, credentials, processes, scratch

# Far above what two cores can do: in a load test neither the server's nor the clients' throttles may be the limit.
_REQUESTS_IN_FLIGHT = 4000
_CLIENT_QPS = 5000
_PORT_ATTEMPTS = 5
_START_TIMEOUT_S = 120.0


class KubectlFailed(Exception):
    """kubectl ended with an error; the message is what it said."""


class ControlPlane:
    """A control plane of its own in a private directory; `with ControlPlane() as control_plane: ...` ends it again.

    `node_names` are the nodes that may join with a kubelet: each gets the user `system:node:NAME`. Without `fsync` etcd
    does not wait for the disk: right for tests, wrong for measuring what durability costs.
    """

    def __init__(
        self,
        *,
        controller_manager: bool = True,
        scheduler: bool = True,
        bind_address: str = "127.0.0.1",
        node_names: Sequence[str] = (),
        fsync: bool = False,
        apiserver_flags: Sequence[str] = (),
        stream: TextIO | None = None,
    ) -> None:
        self.bind_address = bind_address
        self._with_controller_manager = controller_manager
        self._with_scheduler = scheduler
        self._node_names = node_names
        self._fsync = fsync
        self._apiserver_flags = list(apiserver_flags)
        self._stream = stream
        self._processes: dict[str, processes.Process] = {}
        self._scratch: scratch.Scratch | None = None
        self._connection: connection.Connection | None = None
        self._probe: connection.Connection | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        wanted = ["etcd", "kube-apiserver", "kubectl"]
        wanted += ["kube-controller-manager"] if self._with_controller_manager else []
        wanted += ["kube-scheduler"] if self._with_scheduler else []
        self._programs = build.ensure(wanted, self._stream)
        self._scratch = scratch.Scratch()
        self.directory = self._scratch.directory
        try:
            self._credentials = credentials.Credentials(self.directory, self.bind_address, self._node_names)
            self._start_etcd()
            self._start_on_free_port()
            if self._with_controller_manager:
                self._start_controller_manager()
            if self._with_scheduler:
                self._start_scheduler()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything and remove the directory; harmless when nothing runs."""
        self._disconnect()
        for process in reversed(self._processes.values()):
            process.stop(grace_s=2.0)
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def stop_apiserver(self) -> None:
        """Take the API server away; port and data are kept for `start_apiserver`."""
        # With watchers connected it would linger for long; whatever it acknowledged is in etcd.
        self._processes["kube-apiserver"].stop(grace_s=1.0)

    def start_apiserver(self) -> None:
        process = self._processes["kube-apiserver"]
        process.start()
        process.wait_until_ready(self._is_ready, _START_TIMEOUT_S)

    @property
    def pids(self) -> dict[str, int]:
        return {name: pid for name, process in self._processes.items() if (pid := process.pid)}

    @property
    def peak_memory(self) -> dict[str, int]:
        """The most bytes each component ever held."""
        return {name: process.peak_bytes for name, process in self._processes.items()}

    @property
    def kubeconfig(self) -> Path:
        return self.kubeconfig_of("admin")

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of "admin", "controller-manager", "scheduler" or "node-NAME"."""
        return self._credentials.kubeconfig_of(user)

    @property
    def authority(self) -> certificates.Authority:
        return self._credentials.authority

    @property
    def ca_data(self) -> str:
        return self._credentials.ca_data

    @property
    def admin_token(self) -> str:
        return self._credentials.users["admin"].token

    def logs(self, component: str) -> str:
        return self._processes[component].log.read_text(errors="replace")

    def run(self, name: str, flags: Sequence[str]) -> processes.Process:
        """Start one more program of the bed, which ends with this control plane, before it."""
        self._programs |= build.ensure([name], self._stream)
        process = self._process(name, flags)
        process.start()
        return process

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as admin; with `check` a failure raises KubectlFailed."""
        argv = [str(self._programs["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(
            argv, input=input, capture_output=True, text=True, timeout=timeout_s, env=self._environment(), check=False
        )
        if check and done.returncode:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
        return done

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """One API call as admin: the decoded answer, or `connection.ApiError`."""
        if self._connection is None:
            raise OSError("the control plane is not running")
        return self._connection.request(method, path, body, content_type)

    def create_namespace(self, prefix: str = "test-") -> str:
        """A fresh namespace in which pods can be created at once."""
        made = self.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": prefix}})
        name: str = made["metadata"]["name"]
        if self._with_controller_manager:
            manager = self._processes["kube-controller-manager"]
            manager.wait_until_ready(lambda: self._has_service_account(name))
        return name

    def _start_etcd(self) -> None:
        self._etcd_url = f"unix://{self.directory}/etcd.sock"
        # etcd wants host and port where it tells other members its address; it is alone, and nobody ever calls there.
        advertised = "http://127.0.0.1:1"
        flags = [
            "--name=bed",
            f"--data-dir={self.directory}/etcd",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={advertised}",
            f"--listen-peer-urls=unix://{self.directory}/peer.sock",
            f"--initial-advertise-peer-urls={advertised}",
            f"--initial-cluster=bed={advertised}",
            f"--quota-backend-bytes={8 << 30}",
            "--log-level=warn",
        ]
        etcd = self._process("etcd", flags if self._fsync else [*flags, "--unsafe-no-fsync"])
        etcd.start()
        etcd.wait_until_ready(lambda: _accepts(f"{self.directory}/etcd.sock"), _START_TIMEOUT_S)

    def _start_on_free_port(self) -> None:
        """Between finding a port free and the server's taking it, somebody else may have; then another one is tried."""
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            port = _free_port(self.bind_address)
            self.url = f"https://{_bracketed(self.bind_address)}:{port}"
            self._credentials.write_kubeconfigs(self.url)
            self._disconnect()
            self._connection = connection.Connection(self.url, self.authority.pem, self.admin_token)
            # Whoever else has the port may let us wait; the server itself answers at once or not at all.
            self._probe = connection.Connection(self.url, self.authority.pem, self.admin_token, timeout_s=3.0)
            apiserver = self._process("kube-apiserver", self._flags_of_apiserver(port))
            apiserver.start()
            try:
                apiserver.wait_until_ready(self._is_ready, _START_TIMEOUT_S)
                return
            except processes.StartFailed:
                apiserver.stop()
                if attempt == _PORT_ATTEMPTS or "address already in use" not in processes.tail(apiserver.log):
                    raise

    def _flags_of_apiserver(self, port: int) -> list[str]:
        flags = [
            f"--etcd-servers={self._etcd_url}",
            f"--bind-address={self.bind_address}",
            f"--advertise-address={self.bind_address}",
            f"--secure-port={port}",
            f"--cert-dir={self.directory}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            # There is no kube-proxy: an aggregated server is reached by its endpoints.
            "--enable-aggregator-routing=true",
            f"--max-requests-inflight={_REQUESTS_IN_FLIGHT}",
            f"--max-mutating-requests-inflight={_REQUESTS_IN_FLIGHT}",
            *self._credentials.flags_of_apiserver(),
        ]
        if self.bind_address.startswith("127."):
            # The server may not publish a loopback address as its own endpoint, and would complain for ever.
            flags.append("--endpoint-reconciler-type=none")
        if not self._with_controller_manager:
            # Nobody makes the service accounts that this plugin asks every pod for.
            flags.append("--disable-admission-plugins=ServiceAccount")
        return flags + self._apiserver_flags

    def _start_controller_manager(self) -> None:
        flags = [
            "--leader-elect=false",
            "--secure-port=0",
            f"--kube-api-qps={_CLIENT_QPS}",
            f"--kube-api-burst={_CLIENT_QPS}",
            *self._credentials.flags_of_controller_manager(),
        ]
        manager = self._process("kube-controller-manager", flags)
        manager.start()
        manager.wait_until_ready(lambda: self._has_service_account("default"), _START_TIMEOUT_S)

    def _start_scheduler(self) -> None:
        kubeconfig = str(self.kubeconfig_of("scheduler"))
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": kubeconfig, "qps": _CLIENT_QPS, "burst": _CLIENT_QPS},
        }
        file = self.directory / "scheduler.yaml"
        file.write_text(yaml.safe_dump(configuration))
        self._process("kube-scheduler", [f"--config={file}", "--secure-port=0"]).start()

    def _process(self, name: str, flags: Sequence[str]) -> processes.Process:
        argv = [str(self._programs[name]), *flags]
        log = self.directory / f"{name}.log"
        process = processes.Process(name, argv, log, env=self._environment(), directory=self.directory)
        self._processes[name] = process
        return process

    def _environment(self) -> Mapping[str, str]:
        # A clean one: no proxy between us and ourselves, no configuration from the person's home directory.
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.directory), "TMPDIR": str(self.directory)}

    def _is_ready(self) -> bool:
        return self._answers("/readyz")

    def _has_service_account(self, namespace: str) -> bool:
        return self._answers(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")

    def _answers(self, path: str) -> bool:
        return self._probe is not None and self._probe.answers(path)

    def _disconnect(self) -> None:
        for kept in (self._connection, self._probe):
            if kept is not None:
                kept.close()
        self._connection = self._probe = None


def _free_port(address: str) -> int:
    """A port nobody listens on, below those the kernel gives to outgoing connections.

    One of the kernel's own (`bind` to 0) could be gone again while the API server is stopped for a while.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    low, high = (10_000, first) if first > 12_000 else (1024, 65_000)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    while True:
        port = low + secrets.randbelow(high - low)
        with socket.socket(family) as probe:
            try:
                probe.bind((address, port))
                return port
            except OSError as problem:
                if problem.errno != errno.EADDRINUSE:
                    raise


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _accepts(socket_path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(socket_path)
        except OSError:
            return False
    return True
