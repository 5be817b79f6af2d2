"""A webhook in a thread of its own, before an API server of its own; what it knows, the test tells it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from embedded_bed import EmbeddedPlane
from eventual import eventually

from octarbiter.api import arbitrator, crd, kinds, scheme
from octarbiter.api.arbitrator import Mode
from octarbiter.api.queue import Queue
from octarbiter.core.quota import admission, names
from octarbiter.runtime import kubeconfig, manager, settings
from octarbiter.services.webhook import configuration, serving
from octarbiter.services.webhook.certificates import SECRET, SECRETS
from octarbiter.testing.kubernetes import certificates, connection
from octarbiter.testing.kubernetes.controlplane import ControlPlane

Json = dict[str, Any]
OURSELVES = "octarbiter"


class KnownView(msgspec.Struct):
    us: str = ""
    policies: tuple[str, ...] = ("drf", "proportion")
    places: dict[str, admission.Place] = {}
    known_queues: dict[str, Queue] = {}
    claims: set[tuple[str, str, str, str]] = set()

    def place(self, namespace: str) -> admission.Place:
        return self.places.get(namespace, admission.Place(name=namespace))

    def queues(self) -> dict[str, Queue]:
        return self.known_queues

    def has_claim(self, namespace: str, api_version: str, kind: str, name: str) -> bool:
        return (namespace, api_version, kind, name) in self.claims


class Webhook:
    """Starts, and ends, as often as a test likes; always at the same address."""

    def __init__(self, kubeconfig_file: Path, view: KnownView) -> None:
        self.view = view
        self._kubeconfig = str(kubeconfig_file)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._manager: manager.Manager | None = None
        self._problem: BaseException | None = None

    def start(self, *, mode: Mode | None = None, rotation_s: float = 3600.0, settle_s: float = 60.0) -> None:
        reach = configuration.Reach(url=f"https://127.0.0.1:{self._port}")
        options = serving.Options(
            address=f"127.0.0.1:{self._port}",
            reach=reach,
            mode=mode,
            certificate_rotation_s=rotation_s,
            settle_s=settle_s,
        )
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(options, started), daemon=True)
        self._thread.start()
        assert started.wait(60), "the webhook did not start"
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        if self._loop is not None and self._manager is not None:
            self._loop.call_soon_threadsafe(self._manager.stop)
        if self._thread is not None:
            self._thread.join()
        self._thread = self._loop = self._manager = None

    def _run(self, options: serving.Options, started: threading.Event) -> None:
        try:
            asyncio.run(self._serve(options, started))
        except BaseException as problem:
            self._problem = problem
        finally:
            started.set()

    async def _serve(self, options: serving.Options, started: threading.Event) -> None:
        chosen = settings.Settings(leader_elect=False, health_address="")
        self._manager = manager.Manager(chosen, kubeconfig.load(self._kubeconfig))
        self._loop = asyncio.get_running_loop()
        self.view.us = await serving.who_we_are(self._manager.client)
        async with serving.Webhook(self._manager, options, self.view) as webhook:
            working = asyncio.create_task(self._manager.serve())
            await webhook.server.has_certificate.wait()
            started.set()
            await working


class Bench:
    def __init__(self, plane: ControlPlane, webhook: Webhook, us: connection.Connection) -> None:
        self.plane, self.webhook, self.view, self.us = plane, webhook, webhook.view, us

    def namespace(self, mode: str | None = None, **place: Any) -> str:
        labels = {} if mode is None else {arbitrator.MODE: mode}
        made = self.plane.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": "t-", "labels": labels}})
        name: str = made["metadata"]["name"]
        self.account(name)
        if place:
            self.view.places[name] = admission.Place(name=name, **place)
        return name

    def account(self, namespace: str) -> None:
        """Without which no pod can be created; the controller that makes it does not run everywhere."""
        with contextlib.suppress(connection.ApiError):
            self.plane.request(
                "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}}
            )

    def create(self, path: str, body: Json) -> Json:
        made: Json = self.plane.request("POST", path, body)
        return made

    def pod(self, namespace: str, *, dry: bool = False, **spec: Any) -> Json:
        path = f"/api/v1/namespaces/{namespace}/pods{'?dryRun=All' if dry else ''}"
        return self.create(path, pod(**spec))

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        content_type = connection.MERGE_PATCH if method == "PATCH" else "application/json"
        with pytest.raises(connection.ApiError) as caught:
            self.plane.request(method, path, body, content_type)
        return caught.value.status, str(caught.value)

    def patch(self, path: str, body: Any, by: Any = None) -> Json:
        patched: Json = (by or self.plane).request("PATCH", path, body, connection.MERGE_PATCH)
        return patched

    def until_asked(self) -> None:
        """The API server notices configurations after a moment: until it asks the webhook, nothing can be tried."""
        place = self.namespace("deny")

        def is_refused() -> bool:
            try:
                self.pod(place, dry=True)
            except connection.ApiError as problem:
                return "has no Queue" in str(problem)
            return False

        eventually(is_refused, "the API server to ask the webhook")

    def secret(self) -> dict[str, str]:
        found = self.plane.request("GET", SECRETS.path(names.OWN_NAMESPACE, SECRET))
        data: dict[str, str] = found["data"]
        return data


def pod(**spec: Any) -> Json:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"generateName": "p-"},
        "spec": {"automountServiceAccountToken": False, "containers": [container], **spec},
    }


@pytest.fixture(scope="module", params=["kubernetes", "embedded"])
def plane(request: pytest.FixtureRequest, programs: None) -> Iterator[ControlPlane]:
    if request.param == "embedded":
        with EmbeddedPlane(nodes=1, services=False) as embedded:
            yield embedded  # type: ignore[misc]  # as much of one as is needed
    else:
        with ControlPlane(controller_manager=False, scheduler=False) as real:
            yield real


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> Bench:
    """Our kinds, our account with its token, and a webhook that does not run yet."""
    objects: list[Json] = [crd.render(kind) for kind in kinds.INSTALLED]
    home = names.OWN_NAMESPACE
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    objects += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OURSELVES, "namespace": home}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": OURSELVES},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": OURSELVES, "namespace": home}],
        },
    ]
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump_all(objects))
    for kind in kinds.INSTALLED:
        plane.kubectl("wait", "--for=condition=Established", f"crd/{kind.definition}", "--timeout=60s")
    token = plane.kubectl("create", "token", OURSELVES, f"--namespace={home}").stdout.strip()
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token}
    file = plane.directory / "webhook.kubeconfig"
    certificates.write_secret(file, yaml.safe_dump(content).encode())
    us = connection.Connection(plane.url, plane.authority.pem, token)
    bench = Bench(plane, Webhook(file, KnownView()), us)
    for namespace in ("kube-system", home):
        bench.account(namespace)
    return bench


@pytest.fixture(scope="module")
def bench(installed: Bench) -> Iterator[Bench]:
    installed.webhook.start()
    try:
        installed.until_asked()
        yield installed
    finally:
        installed.webhook.stop()


def quota(name: str, queue: str, *, is_made: bool) -> Json:
    labels = {arbitrator.QUEUE: queue} | ({names.MADE_BY_LABEL: arbitrator.MANAGER} if is_made else {})
    meta: Json = {"name": name, "labels": labels}
    if not is_made:
        meta["annotations"] = {arbitrator.ORIGINAL_HARD: '{"requests.cpu": "9"}'}
    return {"metadata": meta, "spec": {"hard": {"requests.cpu": "4", "pods": "50"}}}


def queue(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": arbitrator.API_VERSION,
        "kind": scheme.QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"request": {"resources": {"cpu": "1"}}, **spec},
    }
