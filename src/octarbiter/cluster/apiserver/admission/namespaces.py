"""May something be written into this namespace?

It must be there, and nothing new may come into one that is being emptied. The ones the system lives in stay.
"""

from __future__ import annotations

from typing import Final

from octarbiter.cluster.apiserver import admission, kinds, objects, status
from octarbiter.cluster.apiserver.admission import Attempt
from octarbiter.cluster.store.store import Store

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_REVIEWS: Final = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


class NamespaceLifecycle:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, attempt: Attempt) -> None:
        resource = attempt.served.resource
        if resource is kinds.NAMESPACES:
            if attempt.operation == admission.DELETE and attempt.name in IMMORTAL:
                raise status.forbidden(resource, attempt.name, "this namespace may not be deleted")
            return
        if attempt.operation != admission.CREATE or not resource.namespaced or resource.group in _REVIEWS:
            return
        entry = self._store.latest(kinds.NAMESPACES.key("", attempt.namespace))
        if entry is None:
            raise status.not_found(kinds.NAMESPACES, attempt.namespace)
        if b'"Terminating"' in entry.value and _is_terminating(entry.value):
            why = f"unable to create new content in namespace {attempt.namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {attempt.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise status.forbidden(resource, attempt.name, why, [cause])

    async def validate(self, attempt: Attempt) -> None:
        """Everything was said before."""


def _is_terminating(value: bytes) -> bool:
    namespace = objects.loaded(value, kinds.NAMESPACES)
    return (namespace.get("status") or {}).get("phase") == "Terminating"
