"""Are the volumes of a pod in order?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.schemas import quantities
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import containers, names, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate"),
    *("File", "FileOrCreate", "Socket"),
)
_FIELDS = frozenset(("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"))
_MOST_MODE = 0o777


def all_of(value: object, path: str) -> Problems:
    seen: set[str] = set()
    for where, volume in rules.each(value, path):
        yield from rules.named(volume.get("name"), f"{where}.name", names.label)
        name = str(volume.get("name") or "")
        if name and name in seen:
            yield wording.duplicate(f"{where}.name", name)
        seen.add(name)
        sources = [key for key, source in volume.items() if isinstance(source, dict)]
        for source in sources[1:]:
            yield wording.forbidden(f"{where}.{source}", "may not specify more than 1 volume type")
        for source in sources[:1]:
            yield from _source(source, volume[source], f"{where}.{source}")


def _source(kind: str, source: Json, path: str) -> Problems:
    match kind:
        case "configMap" | "secret":
            name = "name" if kind == "configMap" else "secretName"
            if not source.get(name):
                yield wording.required(f"{path}.{name}")
            yield from _files(source, path)
        case "downwardAPI":
            yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
            for where, item in rules.each(source.get("items"), f"{path}.items"):
                yield from _field_file(item, where, path)
        case "projected":
            yield from _projected(source, path)
        case "hostPath":
            yield from host_path(source, path)
        case "persistentVolumeClaim":
            if not source.get("claimName"):
                yield wording.required(f"{path}.claimName")
        case "emptyDir":
            limit = source.get("sizeLimit")
            if limit is not None and quantities.nano(limit) < 0:
                yield wording.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")
        case "nfs":
            yield from nfs(source, path)


def host_path(source: Json, path: str) -> Problems:
    place = str(source.get("path") or "")
    if not place:
        yield wording.required(f"{path}.path")
    elif ".." in place.split("/"):
        yield wording.invalid(f"{path}.path", place, "must not contain '..'")
    yield from rules.one_of(source.get("type"), f"{path}.type", _HOST_PATH_TYPES)


def nfs(source: Json, path: str) -> Problems:
    for name in ("server", "path"):
        if not source.get(name):
            yield wording.required(f"{path}.{name}")
    if not str(source.get("path") or "").startswith("/"):
        yield wording.invalid(f"{path}.path", source.get("path") or "", "must be an absolute path")


def _files(source: Json, path: str) -> Problems:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for where, item in rules.each(source.get("items"), f"{path}.items"):
        if not item.get("key"):
            yield wording.required(f"{where}.key")
        yield from _place(item, where)
        yield from _mode(item.get("mode"), f"{where}.mode")


def _place(item: Json, path: str) -> Problems:
    place = str(item.get("path") or "")
    if not place:
        yield wording.required(f"{path}.path")
    else:
        yield from containers.descending(place, f"{path}.path")


def _mode(value: object, path: str) -> Problems:
    if isinstance(value, int) and not 0 <= value <= _MOST_MODE:
        yield wording.invalid(path, value, "must be a number between 0 and 0777 (octal), both inclusive")


def _field_file(item: Json, path: str, of_volume: str) -> Problems:
    yield from _place(item, path)
    if isinstance(reference := item.get("fieldRef"), dict):
        yield from containers.field_reference(reference, f"{path}.fieldRef", _FIELDS)
    elif isinstance(reference := item.get("resourceFieldRef"), dict):
        if not reference.get("containerName"):
            yield wording.required(f"{path}.resourceFieldRef.containerName")
        yield from containers.amount_reference(reference, f"{path}.resourceFieldRef")
    else:
        yield wording.required(of_volume, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(item.get("mode"), f"{path}.mode")


def _projected(source: Json, path: str) -> Problems:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for where, projection in rules.each(source.get("sources"), f"{path}.sources"):
        for kind in ("configMap", "secret"):
            if isinstance(inner := projection.get(kind), dict):
                if not inner.get("name"):
                    yield wording.required(f"{where}.{kind}.name")
                yield from _files(inner, f"{where}.{kind}")
        for at, item in rules.each(rules.part(projection, "downwardAPI").get("items"), f"{where}.downwardAPI.items"):
            yield from _field_file(item, at, f"{where}.downwardAPI")
        if isinstance(token := projection.get("serviceAccountToken"), dict) and not token.get("path"):
            yield wording.required(f"{where}.serviceAccountToken.path")
