"""What does a request to delete an object lead to?

Nothing is removed while somebody still has to do something: the node's agent has to stop the pod (grace period), or the
owner of a finalizer has to clean up. The garbage collector is such an owner, too: policies are finalizers for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import objects, status
from octarbiter.cluster.apiserver.kinds import CRDS, NAMESPACES, Propagation, Resource

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
"""Finalizers for the garbage collector."""
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Of a definition: its objects have to go first."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    grace_s: int | None = None
    propagation: str | None = None
    orphan: bool | None = None
    """The older way to say `propagation`."""
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


class Outcome(Enum):
    REMOVE = auto()
    MARK_AND_REMOVE = auto()
    """Watchers first see that it is being deleted, at once and without grace, and then that it is gone."""
    MARK = auto()
    """It stays and says that it is being deleted."""
    PENDING = auto()
    """Nothing new: it is already being deleted."""


def decide(resource: Resource, obj: Json, options: Options, now: datetime) -> tuple[Outcome, Json]:
    """The outcome, and the object as it then is (if it is removed: as it last was). `obj` is left alone."""
    check_preconditions(resource, obj, options)
    obj = {**obj, "metadata": dict(obj["metadata"])}
    if resource is NAMESPACES and (outcome := _namespace(obj, options, now)):
        return outcome, obj
    if resource is CRDS and "deletionTimestamp" not in obj["metadata"]:
        _definition(obj, now)
        return Outcome.MARK, obj
    metadata = obj["metadata"]
    graceful, grace = False, 0
    if resource.graceful:
        if "deletionTimestamp" in metadata:
            grace_left = metadata.get("deletionGracePeriodSeconds") or 0
            if grace_left:
                if options.grace_s is None or _at_least_one(options.grace_s) >= grace_left:
                    return Outcome.PENDING, obj
                graceful, grace = True, _shorten(metadata, grace_left, _at_least_one(options.grace_s), now)
        else:
            graceful, grace = True, _grace(obj, options)
            metadata["deletionTimestamp"] = objects.timestamp(now + timedelta(seconds=grace))
            metadata["deletionGracePeriodSeconds"] = grace
            _next_generation(metadata)
    finalizers = _finalizers(resource, metadata, options)
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
        if not graceful:
            _mark(metadata, now)
        return Outcome.MARK, obj
    if grace > 0:
        return Outcome.MARK, obj
    return (Outcome.MARK_AND_REMOVE if graceful else Outcome.REMOVE), obj


def completes_deletion(resource: Resource, obj: Json, old: Json) -> bool:
    """An update took away the last thing that a deletion was waiting for."""
    before = old["metadata"]
    if "deletionTimestamp" not in before or obj["metadata"].get("finalizers"):
        return False
    if resource is NAMESPACES and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not before.get("deletionGracePeriodSeconds")


def check_preconditions(resource: Resource, obj: Json, options: Options) -> None:
    metadata = obj["metadata"]
    for asked, found, what, happened in (
        (options.uid, metadata.get("uid", ""), "UID", "deleted and then recreated"),
        (options.resource_version, metadata.get("resourceVersion", ""), "ResourceVersion", "modified"),
    ):
        if asked is None or asked == found:
            continue
        if resource is NAMESPACES or resource is CRDS:
            why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
            raise status.conflict(resource, metadata["name"], why)
        why = (
            f"the {what} in the precondition ({asked}) does not match the {what} in record ({found}). "
            f"The object might have been {happened}"
        )
        raise status.precondition_failed(resource, metadata["name"], why)


def _namespace(obj: Json, options: Options, now: datetime) -> Outcome | None:
    """A namespace is emptied first; its own finalizers, in the spec, say who has to."""
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        return Outcome.PENDING if (obj.get("spec") or {}).get("finalizers") else None
    metadata["deletionTimestamp"] = objects.timestamp(now)
    obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    finalizers = _finalizers(NAMESPACES, metadata, options)
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    return Outcome.MARK


def _definition(crd: Json, now: datetime) -> None:
    metadata = crd["metadata"]
    metadata["deletionTimestamp"] = objects.timestamp(now)
    metadata["finalizers"] = list(dict.fromkeys([*(metadata.get("finalizers") or []), CLEANUP]))
    conditions = [each for each in (crd.get("status") or {}).get("conditions") or [] if each["type"] != "Terminating"]
    terminating = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": objects.timestamp(now),
    }
    crd["status"] = {**(crd.get("status") or {}), "conditions": [*conditions, terminating]}


def _grace(pod: Json, options: Options) -> int:
    """Nobody needs time to stop what never started or has ended."""
    spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    grace = options.grace_s if options.grace_s is not None else spec.get("terminationGracePeriodSeconds") or 0
    return _at_least_one(grace)


def _shorten(metadata: Json, grace_left: int, grace: int, now: datetime) -> int:
    due = objects.read_time(metadata["deletionTimestamp"]) or now
    due += timedelta(seconds=grace - grace_left)
    if due < now:
        due, grace = now, min(grace, 1)
    metadata["deletionTimestamp"] = objects.timestamp(due)
    metadata["deletionGracePeriodSeconds"] = grace
    return grace


def _finalizers(resource: Resource, metadata: Json, options: Options) -> list[str]:
    present: list[str] = metadata.get("finalizers") or []
    if resource.propagation is Propagation.NONE:
        return present
    wanted = _policy(resource, present, options)
    others = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    if wanted == "Orphan":
        return [*others, ORPHAN]
    return [*others, FOREGROUND] if wanted == "Foreground" else others


def _policy(resource: Resource, present: list[str], options: Options) -> str:
    """Said with the request, else by a finalizer, else by the kind."""
    if options.orphan is not None:
        return "Orphan" if options.orphan else "Background"
    if options.propagation is not None:
        return options.propagation
    for name, policy in ((ORPHAN, "Orphan"), (FOREGROUND, "Foreground")):
        if name in present:
            return policy
    return resource.propagation


def _mark(metadata: Json, now: datetime) -> None:
    due = objects.read_time(metadata.get("deletionTimestamp", ""))
    if "deletionTimestamp" not in metadata:
        _next_generation(metadata)
    if due is None or due > now:
        metadata["deletionTimestamp"] = objects.timestamp(now)
    metadata["deletionGracePeriodSeconds"] = 0


def _next_generation(metadata: Json) -> None:
    if metadata.get("generation"):
        metadata["generation"] += 1


def _at_least_one(grace: int) -> int:
    """A negative period means the shortest one there is."""
    return 1 if grace < 0 else grace
