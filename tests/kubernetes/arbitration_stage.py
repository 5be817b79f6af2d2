"""A stage for tests of arbitration: one cluster of a known size, and the arbitrator as a process beside it.

The arbitrator runs with the rights that `octo install` gives it and no more, and its webhook is reached by URL. Sharing
is global, so a test has the cluster to itself: what it made is gone before the next one begins.
"""

import itertools
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventual import eventually

from octarbiter.api import crd, kinds
from octarbiter.services import rights
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.testing.kubernetes import certificates, processes
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.connection import ApiError

ACCOUNT = "octarbiter-system"
RBAC = "rbac.authorization.k8s.io"
GROUP = "/apis/arbitrator.incubator.k8s.io/v1"
ROUND_S = 0.2
"""Rounds come faster than in real life, for the tests' sake."""

_numbers = itertools.count(1)


class Arbitrator:
    """`octo arbitrator`, to be started, killed and started again."""

    def __init__(self, bed: Testbed, directory: Path, *flags: str) -> None:
        port = free_port()
        argv = [sys.executable, "-m", "octarbiter", "arbitrator", "--health-address=", "--log-format=json"]
        argv += [f"--lease-namespace={ACCOUNT}", f"--webhook-address=127.0.0.1:{port}", "--no-leader-elect"]
        argv += [f"--webhook-url=https://127.0.0.1:{port}", f"--status-interval-s={ROUND_S}", *flags]
        env = {"KUBECONFIG": str(kubeconfig_file(bed)), "PATH": os.environ.get("PATH", os.defpath)}
        self.process = processes.Process("arbitrator", argv, directory / "arbitrator.log", env=env)

    def start(self) -> None:
        size = self.log_size
        self.process.start()
        eventually(
            lambda: any(line["message"] == "the first arbitration" for line in self.lines(size)),
            lambda: f"the arbitrator to begin; the end of its log:\n{processes.tail(self.process.log)}",
        )

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        """At once, with whatever it was doing."""
        if self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    @property
    def log_size(self) -> int:
        return self.process.log.stat().st_size if self.process.log.exists() else 0

    def lines(self, since: int = 0) -> list[dict[str, Any]]:
        if not self.process.log.exists():
            return []
        with self.process.log.open("rb") as log:
            log.seek(since)
            return [json.loads(line) if line.startswith(b"{") else {"message": line.decode()} for line in log]


class Stage:
    def __init__(self, bed: Testbed, arbitrator: Arbitrator) -> None:
        self.bed, self.plane, self.arbitrator = bed, bed.control_plane, arbitrator
        self.namespaces: list[str] = []

    # --- making

    def namespace(self, **labels: str) -> str:
        name = f"ns{next(_numbers):02}"
        metadata = {"name": name, "labels": labels}
        self.plane.request("POST", "/api/v1/namespaces", {"metadata": metadata})
        self.namespaces.append(name)
        eventually(lambda: self._has_account(name), f"the service account of {name}")
        return name

    def queue(self, namespace: str, name: str, weight: int = 1, **spec: Any) -> None:
        body = {
            "apiVersion": "arbitrator.incubator.k8s.io/v1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": weight, **spec},
        }
        self.plane.request("POST", f"{GROUP}/namespaces/{namespace}/queues", body)

    def job(
        self, namespace: str, name: str, queue: str, count: int, unit: dict[str, str] | None = None, **spec: Any
    ) -> None:
        body = {
            "apiVersion": "arbitrator.incubator.k8s.io/v1",
            "kind": "QueueJob",
            "metadata": {"name": name},
            "spec": {
                "queue": queue,
                "resourceno": count,
                "resourceunit": {"resources": unit or {"cpu": "1", "memory": "1Gi"}},
                **spec,
            },
        }
        self.plane.request("POST", f"{GROUP}/namespaces/{namespace}/queuejobs", body)

    def pod(self, namespace: str, name: str, cpu: str = "1", memory: str = "1Gi", **more: Any) -> dict[str, Any]:
        """It runs until somebody ends it. `labels` and what else a pod's spec has may be given."""
        wanted = {"cpu": cpu, "memory": memory}
        container = {"name": "main", "image": "busybox", "resources": {"requests": wanted, "limits": wanted}}
        metadata = {"name": name, "labels": more.pop("labels", {}), "annotations": more.pop("annotations", {})}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **more}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made: dict[str, Any] = self.plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        return made

    def user_quota(self, namespace: str, name: str, hard: dict[str, str]) -> None:
        body = {"metadata": {"name": name}, "spec": {"hard": hard}}
        self.plane.request("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", body)

    def outside(self, cpu: str, memory: str) -> None:
        """A pod outside every queue: so much less is there to share."""
        namespace = self.namespace()
        self.pod(namespace, "outside", cpu, memory)
        path = f"/api/v1/namespaces/{namespace}/pods/outside"
        eventually(lambda: self.plane.request("GET", path)["spec"].get("nodeName"), "the pod outside to be placed")

    def let_go(self, namespace: str, pod: str) -> None:
        """A pod that lingers."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self.plane.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod}", options)

    # --- seeing

    def queue_status(self, namespace: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.plane.request("GET", f"{GROUP}/namespaces/{namespace}/queues/{name}")
        status: dict[str, Any] = found.get("status", {})
        return status

    def amounts(self, namespace: str, name: str, figure: str) -> dict[str, str]:
        found: dict[str, str] = self.queue_status(namespace, name).get(figure, {}).get("resources", {})
        return found

    def job_status(self, namespace: str, name: str) -> dict[str, Any]:
        """Nothing, while there is no such claim."""
        try:
            found: dict[str, Any] = self.plane.request("GET", f"{GROUP}/namespaces/{namespace}/queuejobs/{name}")
        except ApiError as problem:
            if "not found" not in str(problem):
                raise
            return {}
        status: dict[str, Any] = found.get("status", {})
        return status

    def units(self, namespace: str, name: str) -> int:
        number: int = self.job_status(namespace, name).get("allocatedNo", 0)
        return number

    def quotas(self, namespace: str) -> dict[str, dict[str, str]]:
        """What each quota of a namespace allows; nothing, until that is in force."""
        found = self.plane.request("GET", f"/api/v1/namespaces/{namespace}/resourcequotas")["items"]
        hard = {each["metadata"]["name"]: each["spec"].get("hard", {}) for each in found}
        counted = {each["metadata"]["name"]: each.get("status", {}).get("hard", {}) for each in found}
        return {name: allowed if allowed == counted[name] else {} for name, allowed in hard.items()}

    def pods(self, namespace: str) -> list[str]:
        """Names of those that are there and not on their way out."""
        found = self.plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return sorted(each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"])

    def condition(self, status: dict[str, Any], type_: str) -> dict[str, Any]:
        return next((each for each in status.get("conditions", ()) if each["type"] == type_), {})

    def until(self, probe: Any, expected: Any, what: str, timeout_s: float = 60.0) -> None:
        """`probe()` answers what is expected."""
        eventually(lambda: probe() == expected, lambda: f"{what}: {expected}; is {probe()}", timeout_s)

    def refused(self, deed: Callable[[], object], because: str) -> None:
        with pytest.raises(ApiError) as refusal:
            deed()
        assert because in str(refusal.value)

    @contextmanager
    def without_webhook(self) -> Iterator[None]:
        """The API server asks nobody. The arbitrator configures it again within a minute; that is waited for."""
        for plural in ("validating", "mutating"):
            path = f"/apis/admissionregistration.k8s.io/v1/{plural}webhookconfigurations"
            for each in self.plane.request("GET", path)["items"]:
                if "octarbiter" in each["metadata"]["name"]:
                    self.plane.request("DELETE", f"{path}/{each['metadata']['name']}")
        try:
            yield
        finally:
            eventually(lambda: webhook_is_there(self.bed), "the webhook to be configured again", 120.0)

    # --- clearing away

    def clear(self) -> None:
        for plural in ("queuejobs", "queues"):
            for namespace in self.namespaces:
                self.plane.request("DELETE", f"{GROUP}/namespaces/{namespace}/{plural}")
        for namespace in self.namespaces:
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            self.plane.request("DELETE", f"/api/v1/namespaces/{namespace}/pods", options)
            self.plane.request("DELETE", f"/api/v1/namespaces/{namespace}")
        eventually(self._is_empty, "queues and pods to be gone")

    def _is_empty(self) -> bool:
        paths = [f"{GROUP}/queues", f"{GROUP}/queuejobs"]
        paths += [f"/api/v1/namespaces/{namespace}/pods" for namespace in self.namespaces]
        return not any(self.plane.request("GET", path)["items"] for path in paths)

    def _has_account(self, namespace: str) -> bool:
        accounts = self.plane.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts")["items"]
        return any(each["metadata"]["name"] == "default" for each in accounts)


def kubeconfig_file(bed: Testbed) -> Path:
    return bed.control_plane.directory / "arbitrator.kubeconfig"


def install(bed: Testbed) -> None:
    """CRDs, service account and rights as `octo install` makes them."""
    plane = bed.control_plane
    account = [{"kind": "ServiceAccount", "name": "octarbiter-arbitrator", "namespace": ACCOUNT}]
    name = account[0]["name"]
    objects: list[Any] = [crd.render(kind) for kind in kinds.INSTALLED]
    objects += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ACCOUNT}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": ACCOUNT}},
    ]
    inside = [*rights.ARBITRATOR_IN_ITS_NAMESPACE, *rights.lease(ArbitratorSettings().lease_name)]
    for kind, rules in (("ClusterRole", rights.ARBITRATOR), ("Role", inside)):
        meta = {"name": name} | ({"namespace": ACCOUNT} if kind == "Role" else {})
        head = {"apiVersion": f"{RBAC}/v1", "metadata": meta}
        reference = {"apiGroup": RBAC, "kind": kind, "name": name}
        objects.append(head | {"kind": kind, "rules": rules})
        objects.append(head | {"kind": f"{kind}Binding", "roleRef": reference, "subjects": account})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump_all(objects))
    for kind in kinds.INSTALLED:
        plane.kubectl("wait", "--for=condition=Established", f"crd/{kind.definition}", "--timeout=60s")
    token = plane.kubectl("create", "token", name, f"--namespace={ACCOUNT}", "--duration=24h").stdout.strip()
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token}
    certificates.write_secret(kubeconfig_file(bed), yaml.safe_dump(content).encode())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def webhook_is_there(bed: Testbed) -> bool:
    found = bed.control_plane.request("GET", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")
    return any("octarbiter" in each["metadata"]["name"] for each in found["items"])
