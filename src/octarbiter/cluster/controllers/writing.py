"""Requests that only a cluster's own controllers make."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from octarbiter.api import codec
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import Resource
from octarbiter.runtime.requests import JSON, Request

STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


def strategic_patch(resource: Resource[Any], of: Object, patch: Json, *, subresource: str = "") -> Request:
    """Lists such as conditions are merged by their key. The UID in it keeps the patch off a successor of that name."""
    meta = of.metadata
    whole = {**patch, "metadata": {"uid": meta.uid, **patch.get("metadata", {})}}
    return Request(
        method="PATCH",
        path=resource.path(meta.namespace, meta.name, subresource),
        body=codec.encode(whole),
        content_type=STRATEGIC_PATCH,
        verb="patch",
        resource=f"{resource.plural}/{subresource}" if subresource else resource.plural,
    )


def delete_all(resource: Resource[Any], namespace: str) -> Request:
    """Everything of one kind in one namespace: only for a namespace that is going."""
    if not namespace:
        raise ValueError(f"deleting all {resource.plural} needs a namespace: without one those of all would go")
    return Request(
        method="DELETE",
        path=resource.path(namespace),
        body=codec.encode({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}),
        content_type=JSON,
        verb="deletecollection",
        resource=resource.plural,
    )


def timestamp(moment: datetime) -> str:
    """As the API writes times: UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
