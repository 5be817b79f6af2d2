"""Are config maps, secrets and volumes' claims in order? And what of them may change?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.schemas import quantities
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, rules, volumes
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_MOST_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT = "kubernetes.io/service-account.name"
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def config_map(obj: Json, old: Json | None) -> Problems:
    data, binary = rules.part(obj, "data"), rules.part(obj, "binaryData")
    for key in data:
        yield from rules.well_formed(key, f"data[{key}]", names.config_key)
        if key in binary:
            yield wording.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from rules.well_formed(key, f"binaryData[{key}]", names.config_key)
    size = sum(len(str(text).encode()) for text in data.values()) + sum(map(_decoded_bytes, binary.values()))
    if size > _MOST_BYTES:
        yield wording.too_long("[]", _MOST_BYTES)
    if old is not None and old.get("immutable"):
        if not obj.get("immutable"):
            yield wording.forbidden("immutable", _FROZEN)
        for name in ("data", "binaryData"):
            if rules.part(obj, name) != rules.part(old, name):
                yield wording.forbidden(name, _FROZEN)


def secret(obj: Json, old: Json | None) -> Problems:
    data, kind = rules.part(obj, "data"), str(obj.get("type") or "")
    for key in data:
        yield from rules.well_formed(key, f"data[{key}]", names.config_key)
    if sum(map(_decoded_bytes, data.values())) > _MOST_BYTES:
        yield wording.too_long("data", _MOST_BYTES)
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield wording.required(f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield wording.required("data[username]")
        yield wording.required("data[password]")
    annotations = rules.part(rules.part(obj, "metadata"), "annotations")
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield wording.required(f"metadata.annotations[{_ACCOUNT}]")
    if old is not None:
        yield from rules.unchanged(obj.get("type"), old.get("type"), "type")
        if old.get("immutable"):
            if not obj.get("immutable"):
                yield wording.forbidden("immutable", _FROZEN)
            if data != rules.part(old, "data"):
                yield wording.forbidden("data", _FROZEN)


def _decoded_bytes(text: object) -> int:
    """Of base64."""
    written = str(text)
    return len(written) * 3 // 4 - written[-2:].count("=")


def volume_claim(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    modes = spec.get("accessModes") or []
    if not modes:
        yield wording.required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from rules.one_of(mode, "spec.accessModes", _MODES)
    storage = rules.part(rules.part(spec, "resources"), "requests").get("storage")
    if storage is None:
        yield wording.required("spec.resources[storage]")
    elif quantities.nano(storage) <= 0:
        yield wording.invalid("spec.resources[storage]", storage, "must be greater than zero")
    if name := spec.get("storageClassName"):
        yield from rules.well_formed(name, "spec.storageClassName", names.subdomain)
    yield from rules.one_of(spec.get("volumeMode"), "spec.volumeMode", ("Block", "Filesystem"))
    if old is not None:
        yield from _claim_update(obj, old)


def _claim_update(obj: Json, old: Json) -> Problems:
    may_change = {"volumeName", "volumeAttributesClassName"}
    if rules.part(old, "status").get("phase") == "Bound":
        may_change.add("resources")
    new, before = rules.part(obj, "spec"), rules.part(old, "spec")
    if any(new.get(name) != before.get(name) for name in {*new, *before} - may_change):
        rule = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        yield wording.forbidden("spec", f"{rule} for bound claims")


_VOLUME_FIELDS = (
    *("capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions"),
    *("volumeMode", "nodeAffinity", "volumeAttributesClassName"),
)


def volume(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    if not spec.get("accessModes"):
        yield wording.required("spec.accessModes")
    for mode in spec.get("accessModes") or []:
        yield from rules.one_of(mode, "spec.accessModes", _MODES)
    capacity = rules.part(spec, "capacity")
    if not capacity:
        yield wording.required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield wording.not_supported("spec.capacity", spec.get("capacity"), ["storage"])
    sources = {name: value for name, value in spec.items() if name not in _VOLUME_FIELDS and isinstance(value, dict)}
    if not sources:
        yield wording.required("spec", "must specify a volume type")
    for name in list(sources)[1:]:
        yield wording.forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    if "hostPath" in sources:
        yield from volumes.host_path(sources["hostPath"], "spec.hostPath")
    if "nfs" in sources:
        yield from volumes.nfs(sources["nfs"], "spec.nfs")
    policies = ("Delete", "Recycle", "Retain")
    yield from rules.one_of(spec.get("persistentVolumeReclaimPolicy"), "spec.persistentVolumeReclaimPolicy", policies)
    yield from rules.one_of(spec.get("volumeMode"), "spec.volumeMode", ("Block", "Filesystem"))
    if old is not None:
        before = rules.part(old, "spec")
        if any(spec.get(name) != before.get(name) for name in {*spec, *before} - {*_VOLUME_FIELDS}):
            rule = "spec.persistentvolumesource is immutable after creation"
            yield wording.forbidden("spec.persistentvolumesource", rule)
