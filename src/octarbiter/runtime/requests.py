"""Which HTTP request asks the API server for that? Builds requests and sends nothing.

Names, namespaces and selectors arrive unquoted and leave quoted. An empty name is an error and not a request for the
collection: a DELETE with the name forgotten would delete every object of the namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from octarbiter.api import codec
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import PODS, Resource

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Body = bytes | Mapping[str, Any] | msgspec.Struct
AnyResource = Resource[Object]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = ""
    accept: str = JSON
    verb: str = ""
    """As RBAC and metrics name it: get, list, watch, create, update, patch, delete, deletecollection."""
    resource: str = ""
    """As RBAC and metrics name it: `pods`, `pods/log`."""

    @property
    def target(self) -> str:
        """Path and query, as they stand in the first line of the HTTP request."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


def get(resource: AnyResource, namespace: str, name: str) -> Request:
    return Request(method="GET", path=_object_path(resource, namespace, name), verb="get", resource=resource.plural)


def list_(
    resource: AnyResource,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = 0,
    continue_: str = "",
    resource_version: str = "",
    resource_version_match: str = "",
) -> Request:
    return Request(
        method="GET",
        path=_collection_path(resource, namespace),
        query=_query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=limit or None,
            **{"continue": continue_},
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
        ),
        verb="list",
        resource=resource.plural,
    )


def watch(
    resource: AnyResource,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str = "",
    send_initial_events: bool = False,
    timeout_s: int | None = None,
) -> Request:
    """Every change after `resource_version`. With `send_initial_events` the present state comes first (WatchList)."""
    return Request(
        method="GET",
        path=_collection_path(resource, namespace),
        query=_query(
            watch="true",
            allowWatchBookmarks="true",
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            sendInitialEvents="true" if send_initial_events else "",
            resourceVersionMatch="NotOlderThan" if send_initial_events else "",
            timeoutSeconds=timeout_s,
        ),
        verb="watch",
        resource=resource.plural,
    )


def create(resource: AnyResource, namespace: str, body: Body, *, name: str = "", subresource: str = "") -> Request:
    """`name` and `subresource` only for what is posted to an object, like a pod's `binding`."""
    if subresource:
        path = _object_path(resource, namespace, name, subresource)
    elif resource.namespaced and not namespace:
        raise ValueError(f"creating a {resource.kind} needs a namespace")
    else:
        path = _collection_path(resource, namespace)
    return Request(
        method="POST",
        path=path,
        body=_encoded(body),
        content_type=JSON,
        verb="create",
        resource=_resource_name(resource, subresource),
    )


def replace(resource: AnyResource, namespace: str, name: str, body: Body, *, subresource: str = "") -> Request:
    return Request(
        method="PUT",
        path=_object_path(resource, namespace, name, subresource),
        body=_encoded(body),
        content_type=JSON,
        verb="update",
        resource=_resource_name(resource, subresource),
    )


def merge_patch(resource: AnyResource, namespace: str, name: str, patch: Body, *, subresource: str = "") -> Request:
    return _patch(resource, namespace, name, subresource, MERGE_PATCH, _encoded(patch))


def json_patch(
    resource: AnyResource, namespace: str, name: str, operations: Sequence[Mapping[str, Any]], *, subresource: str = ""
) -> Request:
    return _patch(resource, namespace, name, subresource, JSON_PATCH, codec.encode(operations))


def apply(
    resource: AnyResource,
    namespace: str,
    name: str,
    body: Body,
    *,
    field_manager: str,
    force: bool = False,
    subresource: str = "",
) -> Request:
    """Server-side apply: creates what is absent; fields of other managers are a Conflict unless `force`."""
    query = _query(fieldManager=field_manager, force="true" if force else "")
    return _patch(resource, namespace, name, subresource, APPLY_PATCH, _encoded(body), query)


def delete(
    resource: AnyResource,
    namespace: str,
    name: str,
    *,
    propagation: str | None = None,
    grace_period_seconds: int | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
) -> Request:
    """`uid` and `resource_version` are preconditions: the server answers Conflict when the object is another by now."""
    options = _delete_options(propagation, grace_period_seconds, uid, resource_version)
    return Request(
        method="DELETE",
        path=_object_path(resource, namespace, name),
        body=codec.encode(options),
        content_type=JSON,
        verb="delete",
        resource=resource.plural,
    )


def delete_collection(
    resource: AnyResource,
    namespace: str,
    label_selector: str,
    *,
    field_selector: str = "",
    propagation: str | None = None,
    grace_period_seconds: int | None = None,
) -> Request:
    if not label_selector and not field_selector:
        raise ValueError(f"deleting {resource.plural} needs a selector: without one all of them would go")
    return Request(
        method="DELETE",
        path=_collection_path(resource, namespace),
        query=_query(labelSelector=label_selector, fieldSelector=field_selector),
        body=codec.encode(_delete_options(propagation, grace_period_seconds)),
        content_type=JSON,
        verb="deletecollection",
        resource=resource.plural,
    )


def log(
    namespace: str,
    pod: str,
    *,
    container: str = "",
    follow: bool = False,
    previous: bool = False,
    timestamps: bool = False,
    tail_lines: int | None = None,
    since_s: int | None = None,
    limit_bytes: int | None = None,
) -> Request:
    return Request(
        method="GET",
        path=_object_path(PODS, namespace, pod, "log"),
        query=_query(
            container=container,
            follow="true" if follow else "",
            previous="true" if previous else "",
            timestamps="true" if timestamps else "",
            tailLines=tail_lines,
            sinceSeconds=since_s,
            limitBytes=limit_bytes,
        ),
        accept="*/*",
        verb="get",
        resource="pods/log",
    )


def evict(namespace: str, pod: str, *, grace_period_seconds: int | None = None, uid: str | None = None) -> Request:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": _delete_options(None, grace_period_seconds, uid),
    }
    return create(PODS, namespace, eviction, name=pod, subresource="eviction")


def _patch(
    resource: AnyResource,
    namespace: str,
    name: str,
    subresource: str,
    content_type: str,
    body: bytes,
    query: tuple[tuple[str, str], ...] = (),
) -> Request:
    return Request(
        method="PATCH",
        path=_object_path(resource, namespace, name, subresource),
        query=query,
        body=body,
        content_type=content_type,
        verb="patch",
        resource=_resource_name(resource, subresource),
    )


def _delete_options(
    propagation: str | None,
    grace_period_seconds: int | None,
    uid: str | None = None,
    resource_version: str | None = None,
) -> Json:
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    options: Json = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": propagation,
        "gracePeriodSeconds": grace_period_seconds,
        "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
    }
    return {key: value for key, value in options.items() if value is not None}


def _collection_path(resource: AnyResource, namespace: str) -> str:
    return resource.path(_segment(namespace) if namespace else "")


def _object_path(resource: AnyResource, namespace: str, name: str, subresource: str = "") -> str:
    if not name:
        raise ValueError(f"a {resource.kind} must be asked for by name")
    if resource.namespaced and not namespace:
        raise ValueError(f"{resource.kind} {name} must be asked for with its namespace")
    return resource.path(_segment(namespace) if namespace else "", _segment(name), subresource)


def _segment(text: str) -> str:
    # Quoting does not help against these: the server unquotes the path before it takes it apart.
    if text in (".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be a name: in a URL it would lead elsewhere")
    return quote(text, safe="")


def _resource_name(resource: AnyResource, subresource: str) -> str:
    return f"{resource.plural}/{subresource}" if subresource else resource.plural


def _query(**parameters: str | int | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in parameters.items() if value not in ("", None))


def _encoded(body: Body) -> bytes:
    return body if isinstance(body, bytes) else codec.encode(body)
