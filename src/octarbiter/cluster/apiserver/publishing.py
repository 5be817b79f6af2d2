"""Where do clients read what the API looks like? The OpenAPI v3 documents, and how long they may be kept.

A document's address holds a hash of what it says, so whoever has read it once need not read it again until a definition
changes it. The hash is taken of what a document is made from: the documents themselves are large, and made only when
somebody reads them.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from aiohttp import web

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import discovery, handlers, kinds, negotiation, objects, status
from octarbiter.cluster.apiserver.catalogue import Catalogue
from octarbiter.cluster.apiserver.schemas import openapi
from octarbiter.cluster.store.store import Store

ROOT: Final = "/openapi/v3"
_KEPT_FOR: Final = timedelta(days=365)
_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class Publisher:
    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self._store = store
        self._catalogue = catalogue
        self._edition = 0
        self._hashes: dict[str, str] = {}
        self._documents: dict[str, tuple[str, bytes]] = {}

    def index(self) -> Json:
        self._refresh()
        return {"paths": {path: {"serverRelativeURL": self._address(path)} for path in self._hashes}}

    def answer(self, path: str, asked: str | None, now: datetime) -> web.Response:
        """`path` is `api/v1` or `apis/GROUP/VERSION`; `asked` the hash in the query. Raises a refusal (404)."""
        self._refresh()
        current = self._hashes.get(path)
        if current is None:
            raise status.unknown_resource()
        if asked is not None and asked != current:
            return web.Response(status=301, headers={"Location": self._address(path)})
        headers = {"ETag": f'"{current}"', "Vary": "Accept"}
        if asked is not None:
            expires = (now + _KEPT_FOR).strftime("%a, %d %b %Y %H:%M:%S GMT")
            headers |= {"Cache-Control": "public, immutable", "Expires": expires}
        return handlers.response(200, self._document(path, current), negotiation.JSON, headers=headers)

    def _document(self, path: str, current: str) -> bytes:
        kept = self._documents.get(path)
        if kept is None or kept[0] != current:
            body = openapi.document(_group_version(path), self._definitions())
            kept = self._documents[path] = (current, body)
        return kept[1]

    def _refresh(self) -> None:
        if self._edition == self._catalogue.edition:
            return
        definitions = self._definitions()
        versions = [("", "v1"), *((group.name, each) for group in self._catalogue.groups() for each in group.versions)]
        self._hashes = {}
        for group, version in versions:
            specs = [crd["spec"] for crd in definitions if crd["spec"]["group"] == group]
            content = objects.encode([discovery.version(), group, version, specs])
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            self._hashes[path] = hashlib.sha512(content).hexdigest().upper()
        self._edition = self._catalogue.edition

    def _definitions(self) -> list[Json]:
        served = self._catalogue.definitions()
        entries = (self._store.get(kinds.CRDS.key("", name)) for name in served)
        return [objects.loaded(entry.value, kinds.CRDS) for entry in entries if entry is not None]

    def _address(self, path: str) -> str:
        return f"{ROOT}/{path}?hash={self._hashes[path]}"


def legacy(accept: str) -> web.Response:
    """The OpenAPI v2 document: empty. kubectl wants one for what v3 does not describe, such as lists of mixed kinds,
    and checks nothing by itself that it does not find in there."""
    version = str(discovery.version()["gitVersion"])
    if "proto-openapi" not in accept:
        document = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": version}, "paths": {}}
        return handlers.response(200, objects.encode(document), negotiation.JSON, headers={"Vary": "Accept"})
    info = _field(1, b"Kubernetes") + _field(2, version.encode())
    return handlers.response(200, _field(1, b"2.0") + _field(2, info), _V2_PROTOBUF, headers={"Vary": "Accept"})


def _field(number: int, value: bytes) -> bytes:
    """Of a protobuf message; for values shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def _group_version(path: str) -> str:
    return path.partition("/")[2]
