"""Where do the contents of ConfigMaps, Secrets and tokens come from? The API server, asked when they are needed."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Protocol

from octarbiter.api import codec, errors
from octarbiter.api.meta import Noun, Object
from octarbiter.api.scheme import Resource
from octarbiter.cluster.nodeagent.pods import Pod, TokenProjection
from octarbiter.runtime import clock as clocks
from octarbiter.runtime import requests
from octarbiter.runtime.client import Client

MOST_TOKENS: Final = 10_000
"""That are remembered."""


class Sources(Protocol):
    """None: it does not exist. Everything else that goes wrong is an ApiError."""

    async def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None: ...
    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None: ...
    async def token(self, pod: Pod, wanted: TokenProjection) -> bytes: ...


class _ConfigMap(Object, frozen=True):
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}


class _Secret(Object, frozen=True):
    data: dict[str, str] = {}


class _TokenStatus(Noun, frozen=True):
    token: str = ""


class _TokenRequest(Object, frozen=True):
    status: _TokenStatus = _TokenStatus()


_CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", True, _ConfigMap)
_SECRETS = Resource("", "v1", "Secret", "secrets", True, _Secret)
_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", True, Object)


class ApiSources:
    def __init__(self, client: Client, clock: clocks.Clock = clocks.SYSTEM) -> None:
        self._client = client
        self._clock = clock
        self._tokens: OrderedDict[tuple[str, str, int], tuple[float, bytes]] = OrderedDict()

    async def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        try:
            found = await self._client.get(_CONFIG_MAPS, namespace, name)
        except errors.NotFound:
            return None
        return {key: value.encode() for key, value in found.data.items()} | _decoded(found.binary_data)

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        try:
            found = await self._client.get(_SECRETS, namespace, name)
        except errors.NotFound:
            return None
        return _decoded(found.data)

    async def token(self, pod: Pod, wanted: TokenProjection) -> bytes:
        """The same one until four fifths of its life are over, as the kubelet does."""
        meta = pod.metadata
        key = (meta.uid, wanted.audience, wanted.expiration_seconds)
        held = self._tokens.get(key)
        if held is not None and self._clock.monotonic() < held[0]:
            return held[1]
        spec = {
            "audiences": [wanted.audience] if wanted.audience else [],
            "expirationSeconds": wanted.expiration_seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid},
        }
        body = codec.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        account = pod.spec.service_account_name or "default"
        request = requests.create(_ACCOUNTS, meta.namespace, body, name=account, subresource="token")
        token = (await self._client.send(request, _TokenRequest)).status.token.encode()
        self._tokens[key] = (self._clock.monotonic() + 0.8 * wanted.expiration_seconds, token)
        if len(self._tokens) > MOST_TOKENS:
            self._tokens.popitem(last=False)
        return token


def _decoded(data: Mapping[str, str]) -> dict[str, bytes]:
    try:
        return {key: b64decode(value) for key, value in data.items()}
    except NotBase64 as problem:
        raise ValueError("the server sent data that is not base64") from problem
