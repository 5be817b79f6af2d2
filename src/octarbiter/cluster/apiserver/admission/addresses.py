"""Where is a webhook to be reached?

By its URL, or as a service of the cluster. Nothing here routes to services: what is behind one is taken from its
EndpointSlices or Endpoints, and where there are none, it is a program on this machine at the service's target port.
The certificate must be the service's, as on a real cluster.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, objects
from octarbiter.cluster.store.store import Store

_USUAL_PORT: Final = 443
_SERVICES: Final = next(row for row in kinds.BUILT_IN if row.plural == "services")
_ENDPOINTS: Final = next(row for row in kinds.BUILT_IN if row.plural == "endpoints")
_SLICES: Final = next(row for row in kinds.BUILT_IN if row.plural == "endpointslices")


class Address(msgspec.Struct, frozen=True):
    url: str
    server_name: str | None = None
    """Whose certificate must be shown, if it is not the URL's host."""


def shown(config: Json) -> str:
    """As people know it."""
    service = config.get("service")
    if not isinstance(service, dict):
        return str(config.get("url") or "")
    port = service.get("port") or _USUAL_PORT
    return f"https://{service.get('name')}.{service.get('namespace')}.svc:{port}/{_path(service)}"


def of(config: Json, store: Store) -> Address:
    """Raises LookupError, ValueError."""
    service = config.get("service")
    if isinstance(service, dict):
        return _of_service(service, store)
    url = str(config.get("url") or "")
    if urlsplit(url).scheme != "https":
        raise ValueError("a webhook is called over https only")
    return Address(url)


def _of_service(reference: Json, store: Store) -> Address:
    name, namespace = str(reference.get("name")), str(reference.get("namespace"))
    entry = store.get(_SERVICES.key(namespace, name))
    if entry is None:
        raise LookupError(f'service "{name}" not found')
    wanted = reference.get("port") or _USUAL_PORT
    ports = (objects.loaded(entry.value, _SERVICES).get("spec") or {}).get("ports") or []
    port = next((each for each in ports if each.get("port") == wanted), None)
    if port is None:
        raise LookupError(f'service "{name}" has no port {wanted}')
    behind = list(_behind(name, namespace, port, store))
    target = port.get("targetPort") or wanted
    if not behind and not isinstance(target, int):
        raise LookupError(f'no endpoints available for service "{name}"')
    host, number = random.choice(behind) if behind else ("127.0.0.1", target)  # noqa: S311 - only to share the work
    shown_host = f"[{host}]" if ":" in host else host
    return Address(f"https://{shown_host}:{number}/{_path(reference)}", f"{name}.{namespace}.svc")


def _behind(name: str, namespace: str, port: Json, store: Store) -> Iterator[tuple[str, int]]:
    for entry in store.list(_SLICES.prefix(namespace)):
        found = objects.loaded(entry.value, _SLICES)
        if (found["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != name:
            continue
        for number in _numbers(found.get("ports"), port):
            for endpoint in found.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready") is not False:
                    yield from ((address, number) for address in endpoint.get("addresses") or [])
    held = store.get(_ENDPOINTS.key(namespace, name))
    for subset in objects.loaded(held.value, _ENDPOINTS).get("subsets") or [] if held is not None else []:
        for number in _numbers(subset.get("ports"), port):
            yield from ((address["ip"], number) for address in subset.get("addresses") or [])


def _numbers(ports: list[Json] | None, wanted: Json) -> Iterator[int]:
    for each in ports or []:
        if (each.get("name") or "") == (wanted.get("name") or "") and each.get("port"):
            yield each["port"]


def _path(service: Json) -> str:
    return str(service.get("path") or "").lstrip("/")
