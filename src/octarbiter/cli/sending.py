"""How are objects of any kind sent to a cluster, and how is one named in a line of output?"""

from __future__ import annotations

import msgspec

from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import Resource
from octarbiter.cli.sources import Document
from octarbiter.runtime.client import Client
from octarbiter.runtime.requests import Request

FIELD_MANAGER = "octo"


def namespace_for(resource: Resource[Object], document: Document, namespace: str) -> str:
    return str(document.metadata.get("namespace") or namespace) if resource.namespaced else ""


def short(body: Json) -> str:
    """`taskset.octopus.openi.pcl.cn/x`, `configmap/x`: as kubectl names it, and as our commands take it."""
    group = body["apiVersion"].rpartition("/")[0]
    metadata = body["metadata"]
    kind = f"{body['kind'].lower()}.{group}" if group else body["kind"].lower()
    return f"{kind}/{metadata.get('name') or metadata.get('generateName')}"


def with_query(request: Request, **parameters: str) -> Request:
    return msgspec.structs.replace(request, query=(*request.query, *parameters.items()))


async def answer_of(client: Client, request: Request) -> Json:
    """The whole object, with the fields that our own types do not know, but without the bookkeeping nobody reads."""
    answer: Json = await client.send(request, dict)
    return without_bookkeeping(answer)


def without_bookkeeping(body: Json) -> Json:
    if isinstance(body.get("metadata"), dict):
        body["metadata"].pop("managedFields", None)
    return body
