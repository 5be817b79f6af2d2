"""Which resources does this server have at present? CRDs come and go, so it is asked again and again.

Asked in the aggregated form, two requests for everything. What a part of the server that is away for the moment (a
group marked stale) had before, it still has: nothing may be taken for gone because nobody could be asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from octarbiter.api.meta import Noun, Object, ObjectMeta
from octarbiter.api.scheme import Resource
from octarbiter.cluster.controllers.kinds import Crd
from octarbiter.runtime import cache
from octarbiter.runtime.client import Client
from octarbiter.runtime.requests import Request

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
LOOK_AGAIN_S: Final = 60.0
LOOK_SOON_S: Final = 0.5
"""While a CRD that is established is not yet among the resources."""

log = logging.getLogger(__name__)


class _Kind(Noun, frozen=True):
    kind: str = ""


class _Resource(Noun, frozen=True):
    resource: str = ""
    response_kind: _Kind | None = None
    scope: str = ""
    verbs: list[str] = []


class _Version(Noun, frozen=True):
    version: str = ""
    freshness: str = ""
    resources: list[_Resource] = []


class _Group(Noun, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    versions: list[_Version] = []


class _Groups(Noun, frozen=True):
    items: list[_Group] = []


class Served(Struct, frozen=True):
    resource: Resource[Object]
    verbs: frozenset[str]


Name = tuple[str, str]
"""Group and plural of a resource."""


def merged(groups: Iterable[_Group], before: dict[Name, Served]) -> dict[Name, Served]:
    """Each resource in the version its group prefers, among those that serve it."""
    found: dict[Name, Served] = {}
    for group in groups:
        name = group.metadata.name
        for version in group.versions:
            for item in version.resources:
                if item.response_kind is None or not item.response_kind.kind:
                    continue
                resource = Resource(
                    name, version.version, item.response_kind.kind, item.resource, item.scope == "Namespaced", Object
                )
                found.setdefault((name, item.resource), Served(resource, frozenset(item.verbs)))
        if _is_stale(group):
            for known, served in before.items():
                if known[0] == name:
                    found.setdefault(known, served)
    return found


def _is_stale(group: _Group) -> bool:
    return any(version.freshness == "Stale" for version in group.versions)


class Catalogue:
    """What is served, as last heard; `on_change` is called after each change."""

    def __init__(self, client: Client, crds: cache.Cache[Crd]) -> None:
        self.served: dict[Name, Served] = {}
        self.stale: list[str] = []
        """Groups whose own server was away when we last asked."""
        self.on_change: list[Callable[[], None]] = []
        self._kinds: dict[tuple[str, str], Served] = {}
        self._client = client
        self._crds = crds

    def of_kind(self, api_version: str, kind: str) -> Served | None:
        return self._kinds.get((api_version.rpartition("/")[0], kind))

    def having(self, *verbs: str) -> list[Served]:
        return [served for served in self.served.values() if served.verbs.issuperset(verbs)]

    async def reconcile(self, _key: str) -> float:
        await self.refresh()
        established = [crd for crd in self._crds if _is_established(crd)]
        missing = [crd for crd in established if (crd.spec.group, crd.spec.names.plural) not in self.served]
        return LOOK_SOON_S if missing else LOOK_AGAIN_S

    async def refresh(self) -> None:
        groups = [group for path in ("/api", "/apis") for group in (await self._ask(path)).items]
        self.stale = [group.metadata.name for group in groups if _is_stale(group)]
        served = merged(groups, self.served)
        if served != self.served:
            self.served = served
            self._kinds = {(each.resource.group, each.resource.kind): each for each in served.values()}
            log.info("the server's resources changed", extra={"resources": len(served)})
            for tell in self.on_change:
                tell()

    async def _ask(self, path: str) -> _Groups:
        request = Request(method="GET", path=path, accept=AGGREGATED, verb="get", resource="discovery")
        return await self._client.send(request, _Groups)


def _is_established(crd: Crd) -> bool:
    going = crd.metadata.deletion_timestamp is not None
    return not going and any(c.type == "Established" and c.status == "True" for c in crd.status.conditions or ())
