"""Are the containers of a pod in order?"""

from __future__ import annotations

import re
from collections.abc import Collection

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, probes, resources, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

PROTOCOLS = ("SCTP", "TCP", "UDP")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = frozenset(
    (
        *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
        *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
    )
)
_AMOUNTS = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)
_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]", re.DOTALL)
_EPHEMERAL = "cannot be set for an Ephemeral Container"
_NOT_EPHEMERAL = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"),
)
_MOST_ID = 2**31 - 1


def all_of(spec: Json, path: str, volumes: Collection[str]) -> Problems:
    seen: set[str] = set()
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for where, container in rules.each(spec.get(kind), f"{path}.{kind}"):
            yield from _container(container, where, volumes)
            name = str(container.get("name") or "")
            if name and name in seen:
                yield wording.duplicate(f"{where}.name", name)
            seen.add(name)
            if kind == "ephemeralContainers":
                yield from _ephemeral(container, where, spec)
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                for probe in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                    if container.get(probe):
                        rule = "may not be set for init containers without restartPolicy=Always"
                        yield wording.forbidden(f"{where}.{probe}", rule)
    if not spec.get("containers"):
        yield wording.required(f"{path}.containers")
    yield from _host_ports(spec, path)


def _ephemeral(container: Json, path: str, spec: Json) -> Problems:
    """Nothing may depend on a container that somebody adds to have a look."""
    others = {each.get("name") for kind in ("containers", "initContainers") for each in spec.get(kind) or []}
    if (target := container.get("targetContainerName")) and target not in others:
        yield rules.not_found(f"{path}.targetContainerName", target)
    for name in _NOT_EPHEMERAL:
        if container.get(name):
            yield wording.forbidden(f"{path}.{name}", _EPHEMERAL)
    for where, mount in rules.each(container.get("volumeMounts"), f"{path}.volumeMounts"):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                yield wording.forbidden(f"{where}.{name}", _EPHEMERAL)


def _container(container: Json, path: str, volumes: Collection[str]) -> Problems:
    yield from rules.named(container.get("name"), f"{path}.name", names.label)
    image = str(container.get("image") or "")
    if not image.strip():
        yield wording.required(f"{path}.image")
    elif image != image.strip():
        yield wording.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from rules.one_of(
        container.get("imagePullPolicy"), f"{path}.imagePullPolicy", ("Always", "IfNotPresent", "Never")
    )
    yield from rules.one_of(
        container.get("terminationMessagePolicy"), f"{path}.terminationMessagePolicy", ("File", "FallbackToLogsOnError")
    )
    yield from _ports(container.get("ports"), f"{path}.ports")
    for where, variable in rules.each(container.get("env"), f"{path}.env"):
        yield from rules.named(variable.get("name"), f"{where}.name", names.environment_variable)
        if isinstance(source := variable.get("valueFrom"), dict):
            yield from _value_source(source, bool(variable.get("value")), f"{where}.valueFrom")
    for where, source in rules.each(container.get("envFrom"), f"{path}.envFrom"):
        yield from _environment_source(source, where, f"{path}.envFrom")
    yield from resources.of_container(rules.part(container, "resources"), f"{path}.resources")
    yield from _mounts(container, path, volumes)
    yield from probes.of_container(container, path)
    yield from _security(rules.part(container, "securityContext"), f"{path}.securityContext")


def _ports(value: object, path: str) -> Problems:
    seen: set[str] = set()
    for where, port in rules.each(value, path):
        name = port.get("name")
        if name:
            wrong = list(rules.well_formed(name, f"{where}.name", names.port_name))
            yield from wrong
            if not wrong and name in seen:
                yield wording.duplicate(f"{where}.name", name)
            seen.add(name)
        number = port.get("containerPort") or 0
        if not number:
            yield wording.required(f"{where}.containerPort")
        else:
            yield from (wording.invalid(f"{where}.containerPort", number, wrong) for wrong in names.port(number))
        if host := port.get("hostPort"):
            yield from (wording.invalid(f"{where}.hostPort", host, wrong) for wrong in names.port(host))
        yield from rules.one_of(port.get("protocol"), f"{where}.protocol", PROTOCOLS)


def _host_ports(spec: Json, path: str) -> Problems:
    """No two containers can have the same port of the node."""
    seen: set[str] = set()
    for where, container in rules.each(spec.get("containers"), f"{path}.containers"):
        for at, port in rules.each(container.get("ports"), f"{where}.ports"):
            if not (host := port.get("hostPort")):
                continue
            key = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{host}"
            if key in seen:
                yield wording.duplicate(f"{at}.hostPort", key)
            seen.add(key)
            if spec.get("hostNetwork") and host != port.get("containerPort"):
                rule = "must match `containerPort` when `hostNetwork` is true"
                yield wording.invalid(f"{at}.hostPort", host, rule)


def _value_source(source: Json, has_value: bool, path: str) -> Problems:
    chosen = [name for name in _SOURCES if isinstance(source.get(name), dict)]
    for name in chosen:
        yield from _reference(name, source[name], f"{path}.{name}")
    if not chosen:
        known = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield wording.invalid(path, "", f"must specify one of: {known}")
    elif has_value:
        yield wording.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(chosen) > 1:
        yield wording.invalid(path, "", "may not have more than one field specified at a time")


def _reference(kind: str, reference: Json, path: str) -> Problems:
    if kind == "fieldRef":
        yield from field_reference(reference, path, _FIELDS)
    elif kind == "resourceFieldRef":
        yield from amount_reference(reference, path)
    elif kind in ("configMapKeyRef", "secretKeyRef"):
        yield from rules.well_formed(str(reference.get("name") or ""), f"{path}.name", names.subdomain)
        yield from rules.named(reference.get("key"), f"{path}.key", names.config_key)


def field_reference(reference: Json, path: str, known: Collection[str]) -> Problems:
    field = str(reference.get("fieldPath") or "")
    if not reference.get("apiVersion"):
        yield wording.required(f"{path}.apiVersion")
    if not field:
        yield wording.required(f"{path}.fieldPath")
    elif match := _SUBSCRIPT.fullmatch(field):
        key = match[2].lower() if match[1].endswith("annotations") else match[2]
        yield from (wording.invalid(path, match[2], wrong) for wrong in names.qualified(key))
    elif field not in known:
        where = f"{path}.fieldPath"
        yield wording.invalid(where, field, f"error converting fieldPath: field label not supported: {field}")


def amount_reference(reference: Json, path: str) -> Problems:
    resource = reference.get("resource")
    if not resource:
        yield wording.required(f"{path}.resource")
    elif not str(resource).startswith(("limits.hugepages-", "requests.hugepages-")):
        yield from rules.one_of(resource, f"{path}.resource", _AMOUNTS)


def _environment_source(source: Json, path: str, of_list: str) -> Problems:
    if prefix := source.get("prefix"):
        yield from rules.well_formed(prefix, f"{path}.prefix", names.environment_variable)
    chosen = [name for name in ("configMapRef", "secretRef") if isinstance(source.get(name), dict)]
    for name in chosen:
        yield from rules.named(source[name].get("name"), f"{path}.{name}.name", names.subdomain)
    if not chosen:
        yield wording.invalid(of_list, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(chosen) > 1:
        yield wording.invalid(of_list, "", "may not have more than one field specified at a time")


def _mounts(container: Json, path: str, volumes: Collection[str]) -> Problems:
    places: set[str] = set()
    for where, mount in rules.each(container.get("volumeMounts"), f"{path}.volumeMounts"):
        name, place = str(mount.get("name") or ""), str(mount.get("mountPath") or "")
        if not name:
            yield wording.required(f"{where}.name")
        if name not in volumes:
            yield rules.not_found(f"{where}.name", name)
        if not place:
            yield wording.required(f"{where}.mountPath")
        elif place in places:
            yield wording.invalid(f"{where}.mountPath", place, "must be unique")
        places.add(place)
        inside, expression = mount.get("subPath"), mount.get("subPathExpr")
        if inside:
            yield from descending(inside, f"{path}.volumeMounts.subPath")
        if expression and inside:
            rule = "subPathExpr and subPath are mutually exclusive"
            yield wording.invalid(f"{where}.subPathExpr", expression, rule)
        elif expression:
            yield from descending(expression, f"{path}.volumeMounts.subPathExpr")


def descending(place: str, path: str) -> Problems:
    """A relative path that stays inside."""
    if place.startswith("/"):
        yield wording.invalid(path, place, "must be a relative path")
    if ".." in place.split("/"):
        yield wording.invalid(path, place, "must not contain '..'")


def _security(context: Json, path: str) -> Problems:
    for name in ("runAsUser", "runAsGroup"):
        if isinstance(number := context.get(name), int):
            yield from (wording.invalid(f"{path}.{name}", number, wrong) for wrong in names.within(number, 0, _MOST_ID))
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        rule = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield wording.invalid(path, context, rule)
