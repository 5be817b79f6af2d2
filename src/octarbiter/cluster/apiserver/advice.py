"""What is allowed and yet worth a warning?

Said in a header to whoever makes such an object; kubectl shows it. The words are the real server's, but for one
sentence that only a cluster without all controllers has to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.apiserver.schemas import quantities
from octarbiter.cluster.apiserver.structural.wording import quoted
from octarbiter.cluster.apiserver.validation import names
from octarbiter.cluster.apiserver.validation.rules import each, part

_SURPRISING: Final = "which can result in surprising behavior; a DNS label is recommended"
_WITH_TEMPLATES: Final = {
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "Job"): ("spec", "template"),
}
_NAMES_PODS: Final = ("ReplicationController", "Deployment", "ReplicaSet", "CronJob", "Job")
_WHOLE_BYTES: Final = ("memory", "ephemeral-storage")


def on(resource: Resource, obj: Json, old: Json | None) -> Iterator[str]:
    """About a new object, or about one of which an update has changed more than the metadata."""
    kind = (resource.group, resource.kind)
    if kind == ("", "Pod"):
        # Pods are changed by programs, which do not listen.
        if old is None:
            yield from _name(obj, "the Pod's hostname")
            yield from _pod(part(obj, "spec"), "spec")
        return
    if kind not in _WITH_TEMPLATES:
        return
    if old is None and resource.kind in _NAMES_PODS:
        yield from _name(obj, "Pod names and hostnames")
    path = _WITH_TEMPLATES[kind]
    template = _at(obj, path)
    if old is None or part(obj, "metadata").get("generation") != part(old, "metadata").get("generation"):
        yield from _pod(part(template, "spec"), ".".join((*path, "spec")))


NOT_STARTED: Final = "ephemeral containers are kept in this cluster, but not started: use exec instead"


def nobody_acts_on(resource: Resource) -> str:
    return (
        f"no controller for {resource.plural} runs in this cluster: the object is kept, but no pods come of it; "
        "run the workload as a Job, as a TaskSet or as a Pod"
    )


def _name(obj: Json, used_in: str) -> Iterator[str]:
    if wrong := names.label(str(part(obj, "metadata").get("name") or "")):
        yield f"metadata.name: this is used in {used_in}, {_SURPRISING}: [{' '.join(wrong)}]"


def _pod(spec: Json, path: str) -> Iterator[str]:
    for where, constraint in each(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints"):
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: a null labelSelector results in matching no pod"
    yield from _repeated(spec, path, "hostAliases", "ip")
    yield from _repeated(spec, path, "imagePullSecrets", "name")
    for where, secret in each(spec.get("imagePullSecrets"), f"{path}.imagePullSecrets"):
        if not secret.get("name"):
            yield f'{where}.name: invalid empty name ""'
    containers = [*each(spec.get("initContainers"), f"{path}.initContainers")]
    containers += each(spec.get("containers"), f"{path}.containers")
    for where, container in containers:
        yield from _amounts(part(container, "resources"), f"{where}.resources")
        yield from _environment(container, f"{where}.env")
    yield from _ports(containers)
    if isinstance(grace := spec.get("terminationGracePeriodSeconds"), int) and grace < 0:
        rule = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {rule}"


def _repeated(spec: Json, path: str, field: str, key: str) -> Iterator[str]:
    seen: set[object] = set()
    for where, item in each(spec.get(field), f"{path}.{field}"):
        if item.get(key) in seen:
            yield f"{where}.{key}: duplicate {key} {quoted(str(item.get(key) or ''))}"
        seen.add(item.get(key))


def _amounts(resources: Json, path: str) -> Iterator[str]:
    for name in _WHOLE_BYTES:
        for kind in ("limits", "requests"):
            amount = part(resources, kind).get(name)
            if amount is not None and quantities.nano(amount) % 10**9:
                rule = f"fractional byte value {quoted(str(amount))} is invalid, must be an integer"
                yield f"{path}.{kind}[{name}]: {rule}"


def _environment(container: Json, path: str) -> Iterator[str]:
    """A variable may be set again only to add to what it was."""
    seen: set[object] = set()
    for where, variable in each(container.get("env"), path):
        name, value = variable.get("name"), str(variable.get("value") or "")
        reference = f"$({name})"
        if name in seen and (variable.get("valueFrom") is not None or value == reference or reference not in value):
            hidden = f"hides previous definition of {quoted(str(name))}, which may be dropped when using apply"
            yield f"{where}: {hidden}"
        seen.add(name)


def _ports(containers: list[tuple[str, Json]]) -> Iterator[str]:
    ports = [found for where, container in containers for found in each(container.get("ports"), f"{where}.ports")]
    taken: dict[tuple[object, object], list[tuple[str, Json]]] = {}
    for where, port in ports:
        others = taken.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for elsewhere, other in others:
            if how := _clash(port, other):
                yield f"{where}: {how} port definition with {elsewhere}"
        others.append((where, port))
    named: dict[object, str] = {}
    for where, port in ports:
        if name := port.get("name"):
            first = named.setdefault(name, where)
            if first != where:
                use = f"services and probes that select ports by name will use {first}"
                yield f"{where}: duplicate port name {quoted(str(name))} with {first}, {use}"


def _clash(port: Json, other: Json) -> str:
    mine, theirs = ((found.get("hostIP") or "", found.get("hostPort") or 0) for found in (port, other))
    if mine == theirs:
        return "duplicate"
    if not mine[1] or not theirs[1]:
        return "overlapping"
    return "dangerously ambiguous" if mine[1] == theirs[1] and bool(mine[0]) != bool(theirs[0]) else ""


def _at(obj: Json, path: tuple[str, ...]) -> Json:
    for name in path:
        obj = part(obj, name)
    return obj
