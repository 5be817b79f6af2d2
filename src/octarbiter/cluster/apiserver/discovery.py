"""Which groups, versions and resources are there? The same answer in two forms.

Older clients ask group by group; newer ones ask for everything at once (aggregated discovery) and ask again only
whether it changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import negotiation
from octarbiter.cluster.apiserver.catalogue import Catalogue, Group, Served
from octarbiter.cluster.apiserver.kinds import Resource, Subresource

_AGGREGATED_GROUP: Final = "apidiscovery.k8s.io"
_AGGREGATED_KIND: Final = "APIGroupDiscoveryList"
_AGGREGATED_VERSION: Final = "v2"
AGGREGATED_TYPE: Final = f"{negotiation.JSON};g={_AGGREGATED_GROUP};v={_AGGREGATED_VERSION};as={_AGGREGATED_KIND}"


def is_aggregated(accept: str) -> bool:
    """Whether the client likes it best so; all others get the older form."""
    for clause in negotiation.clauses(accept) if accept else ():
        if not clause.takes(negotiation.JSON):
            continue
        wanted = clause.parameters
        if wanted.get("g") == _AGGREGATED_GROUP and wanted.get("as") == _AGGREGATED_KIND:
            if wanted.get("v") == _AGGREGATED_VERSION:
                return True
        elif not wanted:
            return False
    return False


def aggregated(catalogue: Catalogue, *, core: bool) -> Json:
    found = [Group("", ("v1",))] if core else catalogue.groups()
    return {
        "kind": _AGGREGATED_KIND,
        "apiVersion": f"{_AGGREGATED_GROUP}/{_AGGREGATED_VERSION}",
        "metadata": {},
        "items": [_aggregated_group(catalogue, group) for group in found],
    }


def etag(body: bytes) -> str:
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'


def core_versions(address: str) -> Json:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups(catalogue: Catalogue) -> Json:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(each) for each in catalogue.groups()]}


def group(catalogue: Catalogue, name: str) -> Json | None:
    found = next((each for each in catalogue.groups() if each.name == name), None)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(found)} if found else None


def resources(catalogue: Catalogue, group: str, version: str) -> Json | None:
    found = catalogue.in_version(group, version)
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        # The list of the core is older than the habit of saying so.
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [row for served in found for row in _rows(served.resource)],
    }


def root_paths(catalogue: Catalogue) -> Json:
    paths = ["/api", "/api/v1", "/apis"]
    for each in catalogue.groups():
        paths += [f"/apis/{each.name}", *(f"/apis/{each.name}/{version}" for version in each.versions)]
    return {"paths": [*paths, "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}


def version() -> Json:
    """Of the Kubernetes whose protocol this is; the platform is nobody's business."""
    return {
        "major": "1",
        "minor": "35",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "34",
        "emulationMajor": "1",
        "emulationMinor": "35",
        "gitVersion": "v1.35.4+octarbiter",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def _group(found: Group) -> Json:
    versions = [{"groupVersion": f"{found.name}/{version}", "version": version} for version in found.versions]
    return {"name": found.name, "versions": versions, "preferredVersion": versions[0]}


def _rows(resource: Resource) -> list[Json]:
    row: Json = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    return [row, *(_subresource_row(resource, each) for each in resource.subresources)]


def _subresource_row(resource: Resource, sub: Subresource) -> Json:
    row: Json = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": sub.kind,
        "verbs": list(sub.verbs),
    }
    if sub.group:
        row |= {"group": sub.group, "version": sub.version}
    return row


def _aggregated_group(catalogue: Catalogue, found: Group) -> Json:
    versions = [
        {
            "version": version,
            "resources": _aggregated_resources(catalogue.in_version(found.name, version)),
            "freshness": "Current",
        }
        for version in found.versions
    ]
    metadata: Json = {"creationTimestamp": None}
    if found.name:
        metadata["name"] = found.name
    return {"metadata": metadata, "versions": versions}


def _aggregated_resources(found: Sequence[Served]) -> list[Json]:
    rows: list[Json] = []
    for served in found:
        resource = served.resource
        row: Json = {
            "resource": resource.plural,
            "responseKind": _response_kind(resource, resource.kind),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": resource.singular,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            row["shortNames"] = list(resource.short_names)
        if resource.categories:
            row["categories"] = list(resource.categories)
        if resource.subresources:
            row["subresources"] = [_aggregated_subresource(resource, each) for each in resource.subresources]
        rows.append(row)
    return rows


def _aggregated_subresource(resource: Resource, sub: Subresource) -> Json:
    kind = _response_kind(resource, sub.kind, sub)
    return {"subresource": sub.name, "responseKind": kind, "verbs": list(sub.verbs)}


def _response_kind(resource: Resource, kind: str, sub: Subresource | None = None) -> Json:
    """Of built-in kinds, the group and the version go without saying: they are those that are being described."""
    if sub is not None and sub.group:
        return {"group": sub.group, "version": sub.version, "kind": kind}
    if resource.custom:
        return {"group": resource.group, "version": resource.version, "kind": kind}
    return {"group": "", "version": "", "kind": kind}
