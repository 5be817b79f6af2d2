"""Volumes, claims, and who provides them."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables.cluster import age_of, name_of
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import (
    NONE,
    UNSET,
    amount,
    dig,
    flag,
    many,
    mapping,
    text,
    words,
)

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _volume(volume: Json, now: datetime) -> Cells:
    spec = mapping(volume, "spec")
    claim = mapping(spec, "claimRef")
    return [
        name_of(volume),
        amount(dig(spec, "capacity", "storage")),
        _modes(words(spec, "accessModes")),
        text(spec, "persistentVolumeReclaimPolicy"),
        _phase(volume),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        _class(volume),
        _or_unset(spec, "volumeAttributesClassName"),
        text(volume, "status", "reason"),
        age_of(volume, now),
        _or_unset(spec, "volumeMode"),
    ]


def _claim(claim: Json, now: datetime) -> Cells:
    spec, status = mapping(claim, "spec"), mapping(claim, "status")
    bound = bool(text(spec, "volumeName"))
    return [
        name_of(claim),
        _phase(claim),
        text(spec, "volumeName"),
        amount(dig(status, "capacity", "storage")) if bound else "",
        _modes(words(status, "accessModes")) if bound else "",
        _class(claim),
        _or_unset(spec, "volumeAttributesClassName"),
        age_of(claim, now),
        _or_unset(spec, "volumeMode"),
    ]


def _phase(obj: Json) -> str:
    deleted = dig(obj, "metadata", "deletionTimestamp") is not None
    return "Terminating" if deleted else text(obj, "status", "phase")


def _modes(found: list[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _class(obj: Json) -> str:
    annotations = mapping(obj, "metadata", "annotations")
    return text(annotations, _CLASS_ANNOTATION) or text(obj, "spec", "storageClassName")


def _or_unset(obj: Json, name: str) -> str:
    return UNSET if obj.get(name) is None else text(obj, name)


def _storage_class(found: Json, now: datetime) -> Cells:
    annotations = mapping(found, "metadata", "annotations")
    is_default = any(annotations.get(name) == "true" for name in _DEFAULT_ANNOTATIONS)
    return [
        f"{name_of(found)} (default)" if is_default else name_of(found),
        text(found, "provisioner"),
        text(found, "reclaimPolicy") or "Delete",
        text(found, "volumeBindingMode") or "Immediate",
        flag(found, "allowVolumeExpansion"),
        age_of(found, now),
    ]


def _attributes_class(found: Json, now: datetime) -> Cells:
    return [name_of(found), text(found, "driverName"), age_of(found, now)]


def _attachment(found: Json, now: datetime) -> Cells:
    spec = mapping(found, "spec")
    return [
        name_of(found),
        text(spec, "attacher"),
        text(spec, "source", "persistentVolumeName"),
        text(spec, "nodeName"),
        flag(found, "status", "attached"),
        age_of(found, now),
    ]


def _csi_node(found: Json, now: datetime) -> Cells:
    return [name_of(found), len(many(found, "spec", "drivers")), age_of(found, now)]


def _csi_driver(found: Json, now: datetime) -> Cells:
    spec = mapping(found, "spec")
    requests = many(spec, "tokenRequests")
    return [
        name_of(found),
        spec.get("attachRequired") is not False,
        flag(spec, "podInfoOnMount"),
        flag(spec, "storageCapacity"),
        ",".join(text(each, "audience") for each in requests) if "tokenRequests" in spec else UNSET,
        flag(spec, "requiresRepublish"),
        ",".join(words(spec, "volumeLifecycleModes")) or NONE,
        age_of(found, now),
    ]


LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "PersistentVolume"): Layout(
        columns(
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            "VolumeMode*",
        ),
        _volume,
    ),
    ("", "PersistentVolumeClaim"): Layout(
        columns(
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            "VolumeMode*",
        ),
        _claim,
    ),
    ("storage.k8s.io", "StorageClass"): Layout(
        columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        _storage_class,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Layout(columns("Name", "DriverName", "Age"), _attributes_class),
    ("storage.k8s.io", "VolumeAttachment"): Layout(
        columns("Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"), _attachment
    ),
    ("storage.k8s.io", "CSINode"): Layout(columns("Name", "Drivers:integer", "Age"), _csi_node),
    ("storage.k8s.io", "CSIDriver"): Layout(
        columns(
            "Name",
            "AttachRequired:boolean",
            "PodInfoOnMount:boolean",
            "StorageCapacity:boolean",
            "TokenRequests",
            "RequiresRepublish:boolean",
            "Modes",
            "Age",
        ),
        _csi_driver,
    ),
}
