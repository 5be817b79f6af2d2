"""What absent means in a pod and in every template of one."""

from __future__ import annotations

import re

from octarbiter.cluster.apiserver.defaults.filling import Json, absent, empty, items, part

_REPOSITORY = re.compile(
    r"(?:[A-Za-z0-9.:\[\]-]+/)?[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*"
)
_FILE_MODE = 0o644
_FILES = ("secret", "configMap", "downwardAPI", "projected")
_LISTS = ("initContainers", "containers", "ephemeralContainers")


def pod(obj: Json) -> None:
    spec = part(obj, "spec")
    if isinstance(status := obj.get("status"), dict):
        _addresses(status)
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        _requests_of_limits(part(container, "resources"))
    absent(spec, "enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in (*items(spec, "containers"), *items(spec, "initContainers")):
            for port in items(container, "ports"):
                empty(port, "hostPort", port.get("containerPort", 0))
    pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _addresses(status: Json) -> None:
    """The first address has two names; the older one counts."""
    addresses = status.get("podIPs") or []
    if (first := status.get("podIP")) and (not addresses or addresses[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif addresses:
        status["podIP"] = addresses[0].get("ip", "")


def template(obj: Json) -> None:
    """A pod template: what is filled in only for real pods stays open."""
    pod_spec(part(obj, "spec"))


def pod_spec(spec: Json) -> None:
    empty(spec, "dnsPolicy", "ClusterFirst")
    empty(spec, "restartPolicy", "Always")
    absent(spec, "securityContext", {})
    absent(spec, "terminationGracePeriodSeconds", 30)
    empty(spec, "schedulerName", "default-scheduler")
    # Two names for one thing; old clients read the second.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in items(spec, "volumes"):
        _volume(volume)
    for name in _LISTS:
        for container in items(spec, name):
            _container(container)


def _requests_of_limits(resources: Json) -> None:
    limits = resources.get("limits")
    if limits:
        requests = part(resources, "requests")
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _volume(volume: Json) -> None:
    sources = [name for name, value in volume.items() if name != "name" and value is not None]
    if not sources:
        volume["emptyDir"] = {}
    for name in _FILES:
        if isinstance(source := volume.get(name), dict):
            absent(source, "defaultMode", _FILE_MODE)
            for item in items(source, "items"):
                _field_reference(item)
            for projection in items(source, "sources"):
                if isinstance(token := projection.get("serviceAccountToken"), dict):
                    absent(token, "expirationSeconds", 3600)
                for item in items(projection, "downwardAPI", "items"):
                    _field_reference(item)
    if isinstance(host_path := volume.get("hostPath"), dict):
        absent(host_path, "type", "")
    if isinstance(image := volume.get("image"), dict):
        empty(image, "pullPolicy", _pull_policy(str(image.get("reference") or "")))
    if isinstance(ephemeral := volume.get("ephemeral"), dict):
        claim = ephemeral.get("volumeClaimTemplate")
        if isinstance(claim, dict):
            absent(part(claim, "spec"), "volumeMode", "Filesystem")


def _container(container: Json) -> None:
    empty(container, "imagePullPolicy", _pull_policy(str(container.get("image") or "")))
    empty(container, "terminationMessagePath", "/dev/termination-log")
    empty(container, "terminationMessagePolicy", "File")
    part(container, "resources")
    for variable in items(container, "env"):
        if isinstance(source := variable.get("valueFrom"), dict):
            _field_reference(source)
    for port in items(container, "ports"):
        empty(port, "protocol", "TCP")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(name), dict):
            _probe(probe)
    if isinstance(lifecycle := container.get("lifecycle"), dict):
        for name in ("postStart", "preStop"):
            _http_get(lifecycle.get(name))


def _probe(probe: Json) -> None:
    empty(probe, "timeoutSeconds", 1)
    empty(probe, "periodSeconds", 10)
    empty(probe, "successThreshold", 1)
    empty(probe, "failureThreshold", 3)
    _http_get(probe)
    if isinstance(grpc := probe.get("grpc"), dict):
        absent(grpc, "service", "")


def _http_get(handler: object) -> None:
    if isinstance(handler, dict) and isinstance(http := handler.get("httpGet"), dict):
        empty(http, "path", "/")
        empty(http, "scheme", "HTTP")


def _field_reference(source: Json) -> None:
    if isinstance(reference := source.get("fieldRef"), dict):
        empty(reference, "apiVersion", "v1")
    if isinstance(reference := source.get("resourceFieldRef"), dict):
        empty(reference, "divisor", "0")


def _pull_policy(image: str) -> str:
    """`latest`, also when it is only meant, may change; everything else is taken for good."""
    name, at, _ = image.partition("@")
    head, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        head, tag = name, "" if at else "latest"
    return "Always" if tag == "latest" and _REPOSITORY.fullmatch(head) else "IfNotPresent"
