"""Which account does a pod run under, and does it get a token of it?

Every pod has an account, `default` unless it names another. Pods that name one themselves, or ask for it with
`automountServiceAccountToken: true`, find its token where client libraries look for it. Pods that just have the account
everybody has get none, other than on a real cluster: it has no rights, and here a mounted volume costs each container a
mount namespace of its own.
"""

from __future__ import annotations

from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import admission, kinds, objects, status
from octarbiter.cluster.apiserver.admission import Attempt
from octarbiter.cluster.store.store import Store

USUAL: Final = "default"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_LIFETIME_S: Final = 3607
_ACCOUNTS: Final = next(row for row in kinds.BUILT_IN if row.plural == "serviceaccounts")


class ServiceAccounts:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, attempt: Attempt) -> None:
        obj = attempt.obj
        is_new = attempt.operation == admission.CREATE and not attempt.subresource
        if attempt.served.resource is not kinds.PODS or not is_new or obj is None:
            return
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return  # the rules of the kind will say so
        named = spec.get("serviceAccountName") or spec.get("serviceAccount") or ""
        name = named or USUAL
        account = self._account(attempt, name)
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]
        if _wants_token(spec, account, is_named=bool(named) and named != USUAL):
            _mount(spec)

    async def validate(self, attempt: Attempt) -> None:
        """Everything was said before."""

    def _account(self, attempt: Attempt, name: str) -> Json:
        entry = self._store.latest(_ACCOUNTS.key(attempt.namespace, name))
        if entry is not None:
            return objects.loaded(entry.value, _ACCOUNTS)
        if name == USUAL:
            return {}  # whoever makes it in every new namespace is about to
        where = f"{attempt.namespace}/{name}"
        why = f'error looking up service account {where}: serviceaccount "{name}" not found'
        raise status.forbidden(kinds.PODS, attempt.name, why)


def _wants_token(spec: Json, account: Json, *, is_named: bool) -> bool:
    for given in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if given is not None:
            return bool(given)
    return is_named


def _mount(spec: Json) -> None:
    containers = [each for group in ("initContainers", "containers") for each in spec.get(group) or []]
    bare = [each for each in containers if not any(m.get("mountPath") == MOUNT_PATH for m in _mounts(each))]
    if not bare:
        return
    name = objects.generated_name("kube-api-access-")
    for container in bare:
        container["volumeMounts"] = [*_mounts(container), {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _LIFETIME_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    spec["volumes"] = [
        *(spec.get("volumes") or []),
        {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}},
    ]


def _mounts(container: Json) -> list[Json]:
    return container.get("volumeMounts") or []
