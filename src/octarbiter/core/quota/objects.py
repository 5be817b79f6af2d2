"""What is read from a ResourceQuota, and what is sent to carry out a deed? JSON, as the API has it."""

from __future__ import annotations

from octarbiter.api import arbitrator, queue, resources
from octarbiter.api.core_kinds import ResourceQuota
from octarbiter.api.meta import Json, OwnerReference
from octarbiter.core.quota import ledger, names


def quota(seen: ResourceQuota) -> ledger.Quota:
    metadata, spec = seen.metadata, seen.spec
    owner = metadata.controller
    return ledger.Quota(
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        hard={key: str(value) for key, value in spec.hard.items()},
        queue=metadata.labels.get(arbitrator.QUEUE),
        original=metadata.annotations.get(arbitrator.ORIGINAL_HARD),
        made_by=metadata.labels.get(names.MADE_BY_LABEL, ""),
        owner=owner.uid if owner is not None and is_queue(owner) else "",
        is_scoped=bool(spec.scopes or spec.scope_selector),
    )


def is_queue(owner: OwnerReference) -> bool:
    return owner.kind == queue.KIND and owner.api_version.partition("/")[0] == arbitrator.GROUP


def new_quota(deed: ledger.CreateQuota) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": deed.name,
            "labels": {arbitrator.QUEUE: deed.label, names.MADE_BY_LABEL: arbitrator.MANAGER},
            "ownerReferences": _owners(deed.owner),
        },
        "spec": {"hard": deed.hard},
    }


def change(deed: ledger.ChangeQuota | ledger.RestoreQuota) -> Json:
    """A merge patch, refused by the server if the quota is no longer the one that was decided on."""
    labels: dict[str, str | None] = {arbitrator.QUEUE: deed.label}
    metadata: Json = {
        "resourceVersion": deed.version,
        "labels": labels,
        "annotations": {arbitrator.ORIGINAL_HARD: None},
    }
    if isinstance(deed, ledger.ChangeQuota):
        metadata["annotations"] = {arbitrator.ORIGINAL_HARD: deed.annotation}
        if deed.is_made:
            labels[names.MADE_BY_LABEL] = arbitrator.MANAGER
            metadata["ownerReferences"] = _owners(deed.owner)
    patch: Json = {"metadata": metadata}
    return {**patch, "spec": {"hard": deed.hard}} if deed.hard else patch


def new_queue(deed: ledger.CreateQueue, namespace: str) -> Json:
    spec: Json = {"weight": 1}
    if deed.request:
        spec["request"] = {"resources": resources.written(deed.request)}
    metadata = {"name": deed.name, "namespace": namespace, "labels": {names.MADE_BY_LABEL: arbitrator.MANAGER}}
    return {"apiVersion": arbitrator.API_VERSION, "kind": queue.KIND, "metadata": metadata, "spec": spec}


def _owners(owner: ledger.Holder | None) -> list[Json]:
    if owner is None:
        return []
    return [
        {
            "apiVersion": arbitrator.API_VERSION,
            "kind": queue.KIND,
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
