"""What every namespace has from the start: the account its pods run under, and the certificate they know the API by."""

from __future__ import annotations

from typing import Final

from octarbiter.api import errors
from octarbiter.api.core_kinds import ConfigMap, Namespace
from octarbiter.api.meta import Json, Object
from octarbiter.cluster.controllers import kinds
from octarbiter.runtime import cache, client, fairness

ACCOUNT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
ROOT_CA_KEY: Final = "ca.crt"


def is_furnishable(namespace: Namespace) -> bool:
    return namespace.metadata.deletion_timestamp is None and namespace.status.phase != "Terminating"


class Furnishing:
    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        namespaces: cache.Cache[Namespace],
        accounts: cache.Cache[Object],
        certificates: cache.Cache[ConfigMap],
        root_ca: str,
    ) -> None:
        """`accounts` and `certificates` hold only those of these names. Empty `root_ca`: no certificate is given."""
        self._client, self._gate, self._namespaces = client_, gate, namespaces
        self._accounts, self._certificates = accounts, certificates
        self._root_ca = root_ca

    async def reconcile(self, name: str) -> float | None:
        namespace = self._namespaces.get(name)
        if namespace is None or not is_furnishable(namespace):
            return None
        try:
            await self._give_account(name)
            if self._root_ca:
                await self._give_certificate(name)
        except errors.NotFound:
            return None  # the namespace went meanwhile
        except errors.Forbidden as problem:
            if any(cause.reason == "NamespaceTerminating" for cause in problem.status.details.causes):
                return None
            raise
        return None

    async def _give_account(self, namespace: str) -> None:
        if self._accounts.get(f"{namespace}/{ACCOUNT}") is not None:
            return
        try:
            async with self._gate.slot(namespace):
                body = {"metadata": {"name": ACCOUNT, "namespace": namespace}}
                self._accounts.put(await self._client.create(kinds.SERVICE_ACCOUNTS, namespace, body))
        except errors.AlreadyExists:
            pass  # the watch will tell

    async def _give_certificate(self, namespace: str) -> None:
        held = self._certificates.get(f"{namespace}/{ROOT_CA}")
        data: Json = {ROOT_CA_KEY: self._root_ca}
        if held is not None and held.data == data:
            return
        try:
            async with self._gate.slot(namespace):
                if held is None:
                    body: Json = {"metadata": {"name": ROOT_CA, "namespace": namespace}, "data": data}
                    self._certificates.put(await self._client.create(kinds.CONFIGMAPS, namespace, body))
                else:
                    # Others' keys go: this object says whom to trust.
                    patch = {"data": {**dict.fromkeys(held.data), **data}}
                    self._certificates.put(await self._client.merge_patch(kinds.CONFIGMAPS, namespace, ROOT_CA, patch))
        except errors.AlreadyExists:
            pass
