"""An API server in this process, over real HTTPS on the loopback address, and somebody who asks it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from octarbiter.cluster.apiserver.connections import Bounds
from octarbiter.cluster.apiserver.server import ApiServer
from octarbiter.cluster.store.store import Store

Json = dict[str, Any]
DEFAULT = "/api/v1/namespaces/default"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


class Answer(msgspec.Struct):
    code: int
    body: Any
    headers: Any

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))


class Stream:
    """The events of a watch, one after the other."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.code = response.status
        self._response = response

    async def event(self) -> tuple[str, Json]:
        async with asyncio.timeout(20):
            line = await self._response.content.readline()
        found = msgspec.json.decode(line)
        return found["type"], found["object"]

    async def events(self, count: int) -> list[tuple[str, str]]:
        """Types and names."""
        seen = [await self.event() for _ in range(count)]
        return [(kind, obj["metadata"].get("name", "")) for kind, obj in seen]

    async def rest(self) -> list[tuple[str, Json]]:
        """Everything until the server ends it."""
        async with asyncio.timeout(30):
            body = await self._response.content.read()
        lines = [msgspec.json.decode(line) for line in body.splitlines()]
        return [(line["type"], line["object"]) for line in lines]


class Api:
    def __init__(self, store: Store, server: ApiServer, session: aiohttp.ClientSession, tls: ssl.SSLContext) -> None:
        self.store = store
        self.server = server
        self._session = session
        self._tls = tls

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        token: str | None = None,
    ) -> Answer:
        all_headers = self._headers(headers, token)
        content = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        if content is not None:
            all_headers.setdefault("Content-Type", "application/json")
        async with self._session.request(
            method, self.server.url + path, data=content, headers=all_headers, ssl=self._tls
        ) as response:
            raw = await response.read()
            is_json = response.content_type == "application/json" and raw
            return Answer(response.status, msgspec.json.decode(raw) if is_json else raw, response.headers)

    async def create(self, path: str, body: Json) -> Json:
        answer = await self.ask("POST", path, body)
        assert answer.code == 201, answer.body
        made: Json = answer.body
        return made

    @asynccontextmanager
    async def watch(self, path: str, headers: dict[str, str] | None = None) -> AsyncIterator[Stream]:
        url = self.server.url + path + ("&" if "?" in path else "?") + "watch=true"
        async with self._session.get(url, headers=self._headers(headers, None), ssl=self._tls) as response:
            yield Stream(response)

    def _headers(self, headers: dict[str, str] | None, token: str | None) -> dict[str, str]:
        shown = self.server.token if token is None else token
        return {**({"Authorization": f"Bearer {shown}"} if shown else {}), **(headers or {})}


@asynccontextmanager
async def running(directory: Path, store: Store | None = None, *, bounds: Bounds | None = None) -> AsyncIterator[Api]:
    own = store is None
    store = store or await Store.open(None)
    async with ApiServer(store, directory=directory, bounds=bounds) as server:
        tls = ssl.create_default_context(cadata=server.ca_pem.decode())
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            yield Api(store, server, session, tls)
    if own:
        await store.close()


def config_map(name: str, /, labels: dict[str, str] | None = None, **data: str) -> Json:
    metadata: Json = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str, /, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def definition(plural: str = "widgets", kind: str = "Widget", **version: Any) -> Json:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "default": 3},
                    "colour": {"type": "string"},
                },
            },
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "singular": kind.lower(), "shortNames": [f"{plural[:2]}x"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    **version,
                }
            ],
        },
    }
