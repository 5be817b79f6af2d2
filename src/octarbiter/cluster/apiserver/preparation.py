"""What does the server itself write into an object before it is stored?

Metadata nobody else may set, the split between spec and status, the generation: the same for all kinds but for what
their rows in `kinds` say, and for the few special cases named here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, objects, status
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.apiserver.validation.problems import Problem

_OF_THE_SERVER: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_OF_THE_SERVER_ALWAYS: Final = tuple(name for name in _OF_THE_SERVER if name != "generation")
_EMPTY_STATUS: Final[dict[str, Json]] = {
    "Pod": {"phase": "Pending"},
    "Namespace": {"phase": "Active"},
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "Service": {"loadBalancer": {}},
    "Ingress": {"loadBalancer": {}},
    "ReplicaSet": {"replicas": 0},
    "ReplicationController": {"replicas": 0},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "DaemonSet": {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    },
    "PodDisruptionBudget": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
    "HorizontalPodAutoscaler": {"currentMetrics": None, "desiredReplicas": 0},
}


def metadata_of(obj: Json) -> Json:
    """Its metadata, which are there and an object from now on. Raises a refusal (400)."""
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise status.bad_request("metadata must be an object")
    return metadata


def place(obj: Json, resource: Resource, namespace: str) -> None:
    """The namespace is the URL's; an object that names another one is refused (400)."""
    metadata = metadata_of(obj)
    given = metadata.get("namespace")
    if not resource.namespaced:
        metadata.pop("namespace", None)
    elif given and given != namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    else:
        metadata["namespace"] = namespace


def for_creation(obj: Json, resource: Resource, now: datetime) -> None:
    metadata = metadata_of(obj)
    for name in _settled(resource):
        metadata.pop(name, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = objects.generated_name(str(metadata["generateName"]))
    metadata["uid"] = objects.new_uid()
    metadata["creationTimestamp"] = objects.timestamp(now)
    if resource.tracks_generation:
        metadata["generation"] = 1
    if resource.has_status and not resource.status_on_create:
        obj.pop("status", None)


def _settled(resource: Resource) -> tuple[str, ...]:
    """Where nobody counts, a generation is whatever somebody says it is."""
    return _OF_THE_SERVER if resource.tracks_generation else _OF_THE_SERVER_ALWAYS


def complete_new(obj: Json, resource: Resource) -> None:
    """What nobody is said to own: it is the server's."""
    if resource.has_status and not resource.status_on_create and not resource.custom:
        obj["status"] = dict(_EMPTY_STATUS.get(resource.kind, {}))
    if resource is kinds.NAMESPACES:
        spec = obj.get("spec") if isinstance(obj.get("spec"), dict) else {}
        finalizers = list((spec or {}).get("finalizers") or [])
        obj["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}


def for_update(obj: Json, old: Json, resource: Resource, subresource: str) -> None:
    """Takes over from the old object what this request cannot change."""
    if subresource not in ("", "scale"):
        _keep_other_parts(obj, old, resource, subresource)
    elif resource.has_status:
        _take(obj, old, "status")
        if resource is kinds.NAMESPACES:
            _take(obj, old, "spec")
    metadata, before = metadata_of(obj), old["metadata"]
    for name in _settled(resource):
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)


def count_generation(obj: Json, old: Json, resource: Resource, subresource: str) -> None:
    if resource is kinds.PRIORITIES:
        # Has one, which nobody counts.
        return
    if resource.tracks_generation and subresource != "status" and _contents(obj, resource) != _contents(old, resource):
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def version_missing() -> Problem:
    return Problem("FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0: must be specified for an update")


def name_problems(obj: Json) -> list[Problem]:
    """What no name of any kind may be: it is a part of a path."""
    name = obj["metadata"].get("name")
    if not isinstance(name, str) or not name:
        return [Problem("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")]
    found = [f"may not be '{name}'"] if name in (".", "..") else []
    found += [f"may not contain '{part}'" for part in ("/", "%") if part in name]
    if not name.isprintable():
        found.append("may not contain unprintable characters")
    shown = objects.encode(name).decode()
    return [Problem("FieldValueInvalid", "metadata.name", f"Invalid value: {shown}: {what}") for what in found]


def identity_problems(obj: Json, old: Json) -> list[Problem]:
    """Who an object is, and that it is going: not for clients to change, but they may leave it out."""
    after, before = metadata_of(obj), old["metadata"]
    return [
        Problem(
            "FieldValueInvalid",
            f"metadata.{name}",
            f"Invalid value: {objects.encode(after[name]).decode()}: field is immutable",
        )
        for name in ("uid", "deletionTimestamp")
        if after.get(name) and after[name] != before.get(name)
    ]


def metadata_problems(obj: Json, old: Json) -> list[Problem]:
    """What no update may do to any object."""
    before = old["metadata"]
    if "deletionTimestamp" not in before:
        return []
    known = set(before.get("finalizers") or [])
    added = sorted(name for name in obj["metadata"].get("finalizers") or [] if name not in known)
    if not added:
        return []
    shown = ", ".join(f'"{name}"' for name in added)
    rule = "no new finalizers can be added if the object is being deleted, found new finalizers []string{" + shown + "}"
    return [Problem("FieldValueForbidden", "metadata.finalizers", f"Forbidden: {rule}")]


def slim(obj: Json) -> Json:
    """The parts that can change through `/status`; the others come from the old object anyway."""
    return {name: obj[name] for name in ("kind", "apiVersion", "metadata", "status") if name in obj}


def _keep_other_parts(obj: Json, old: Json, resource: Resource, subresource: str) -> None:
    """Through `/status` only the status changes, through `/finalize` only the spec, and the metadata with them."""
    if subresource in _PARTS_OF_PODS:
        _PARTS_OF_PODS[subresource](obj, old)
        return
    changes = "spec" if subresource == "finalize" else "status"
    for name in (obj.keys() | old.keys()) - {changes, "metadata", "kind", "apiVersion"}:
        _take(obj, old, name)
    if resource.custom:
        managed = metadata_of(obj).get("managedFields")
        obj["metadata"] = dict(old["metadata"])
        if managed is not None:
            obj["metadata"]["managedFields"] = managed
    elif resource is kinds.PODS:
        _take(metadata_of(obj), old["metadata"], "ownerReferences")
    elif resource.kind == "Deployment":
        _take(metadata_of(obj), old["metadata"], "labels")


def _keep_all_but_ephemeral_containers(pod: Json, old: Json) -> None:
    added = (pod.get("spec") or {}).get("ephemeralContainers")
    _keep_metadata(pod, old)
    if added is not None:
        pod["spec"]["ephemeralContainers"] = added
    else:
        pod["spec"].pop("ephemeralContainers", None)


def _keep_all_but_amounts(pod: Json, old: Json) -> None:
    """Containers that were moved or renamed stay as they came: whoever checks the pod will say so."""
    wanted = {kind: (pod.get("spec") or {}).get(kind) or [] for kind in ("containers", "initContainers")}
    if any(len(found) != len(old["spec"].get(kind) or []) for kind, found in wanted.items()):
        return
    _keep_metadata(pod, old)
    for kind, found in wanted.items():
        kept = pod["spec"].get(kind) or []
        if any(new.get("name") != before.get("name") for new, before in zip(found, kept, strict=True)):
            pod["spec"][kind] = found
            continue
        for new, before in zip(found, kept, strict=True):
            for name in ("resources", "resizePolicy"):
                _take(before, new, name)


def _keep_metadata(pod: Json, old: Json) -> None:
    for name in ("spec", "status"):
        _take(pod, old, name)
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        _take(metadata_of(pod), old["metadata"], name)


_PARTS_OF_PODS: Final[dict[str, Callable[[Json, Json], None]]] = {
    "ephemeralcontainers": _keep_all_but_ephemeral_containers,
    "resize": _keep_all_but_amounts,
}


def _take(obj: Json, old: Json, name: str) -> None:
    """A copy: whoever completes the object must not change what it was."""
    if name in old:
        obj[name] = objects.copied(old[name])
    else:
        obj.pop(name, None)


def _contents(obj: Json, resource: Resource) -> Json:
    """What the generation counts the changes of."""
    others = {"metadata", "kind", "apiVersion"} | ({"status"} if resource.has_status else set())
    return {name: value for name, value in obj.items() if name not in others}
