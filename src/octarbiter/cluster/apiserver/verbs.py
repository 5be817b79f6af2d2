"""Which verb does a request mean, and does its path lead anywhere?"""

from __future__ import annotations

from typing import Final

from octarbiter.cluster.apiserver import kinds, status
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.apiserver.routing import Target

_ON_COLLECTIONS: Final = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_OBJECTS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
SPECIAL: Final = {
    name: name for name in ("scale", "binding", "eviction", "log", "exec", "attach", "portforward", "token")
}
"""Subresources that are not just a part of their object."""

_ON_SUBRESOURCES: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}


def is_there(method: str, target: Target, resource: kinds.Resource) -> bool:
    """Whether such a path can lead to the resource at all."""
    if not resource.namespaced:
        return not target.namespace
    return bool(target.namespace) or (method == "GET" and not target.name and "list" in resource.verbs)


def of(method: str, target: Target, served: Served) -> str:
    """Raises a refusal (404, 405)."""
    resource = served.resource
    if resource.custom and (verb := _unusual(method, target)):
        return verb
    if target.subresource:
        sub = resource.subresource(target.subresource)
        if sub is None:
            raise status.not_found(resource, target.name) if resource.custom else status.unknown_resource()
        verb, known = _ON_SUBRESOURCES.get(method, ""), sub.verbs
    else:
        verb = (_ON_OBJECTS if target.name else _ON_COLLECTIONS).get(method, "")
        known = resource.verbs
    if verb not in known:
        raise status.method_not_allowed()
    return verb


def _unusual(method: str, target: Target) -> str:
    """Custom objects can be made also by a path that names one, whatever it names; and of changes without a name the
    body is not looked at."""
    if target.subresource:
        return ""
    if method == "POST" and target.name:
        return "create"
    if method in ("PUT", "PATCH") and not target.name:
        return "nameless"
    return ""
