"""Which environment does a container see? Pure: what must be fetched is named by `needs` and handed in.

Later wins: the machine's own few variables, the API server's address, `envFrom` in order, `env` in order. `$(NAME)` in
values and in the command stands for a variable defined before; `$$` is a dollar; what is not defined stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from octarbiter.api import errors, quantity
from octarbiter.cluster.nodeagent.pods import Container, EnvSource, FieldRef, KeyRef, Pod, ResourceFieldRef
from octarbiter.cluster.nodeagent.runtimes.protocol import Place

INHERITED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip
"""Of the agent's own environment: what programs of this machine need to work. All else may hold secrets."""
Contents = Mapping[str, Mapping[str, bytes] | None]
"""Name of a ConfigMap or Secret -> its data; None: there is none."""

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class Missing(Exception):
    """Something that the container's environment refers to is not there; the message is for people."""


class Needs(msgspec.Struct, frozen=True):
    config_maps: frozenset[str]
    secrets: frozenset[str]


def needs(container: Container) -> Needs:
    config_maps = {source.config_map_ref.name for source in container.env_from if source.config_map_ref}
    secrets = {source.secret_ref.name for source in container.env_from if source.secret_ref}
    sources = [variable.value_from for variable in container.env if variable.value_from]
    config_maps |= {source.config_map_key_ref.name for source in sources if source.config_map_key_ref}
    secrets |= {source.secret_key_ref.name for source in sources if source.secret_key_ref}
    return Needs(frozenset(config_maps), frozenset(secrets))


def resolve(
    pod: Pod, container: Container, place: Place, config_maps: Contents, secrets: Contents, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Raises Missing."""
    made = {name: inherited[name] for name in INHERITED if name in inherited}
    made["HOSTNAME"] = (pod.spec.hostname or pod.metadata.name)[:63]
    known = dict(place.services)
    for source in container.env_from:
        for kind, ref, contents in (
            ("configmap", source.config_map_ref, config_maps),
            ("secret", source.secret_ref, secrets),
        ):
            if ref is None:
                continue
            data = contents.get(ref.name)
            if data is None and not ref.optional:
                raise Missing(f'{kind} "{ref.name}" not found')
            for key, content in (data or {}).items():
                if is_name(source.prefix + key):
                    known[source.prefix + key] = _text(content)
    for variable in container.env:
        value: str | None = expand(variable.value, known)
        if not variable.value and variable.value_from is not None:
            value = _value_from(variable.value_from, pod, container, place, config_maps, secrets)
        if value is not None:
            known[variable.name] = value
    return {name: value for name, value in (made | known).items() if "\0" not in value}


def is_name(name: str) -> bool:
    """Whether the environment of a process can hold it at all."""
    return bool(name) and "=" not in name and "\0" not in name


def _value_from(
    source: EnvSource, pod: Pod, container: Container, place: Place, config_maps: Contents, secrets: Contents
) -> str | None:
    """None: an optional reference to something that is not there."""
    if source.field_ref is not None:
        return field(source.field_ref, pod, place)
    if source.resource_field_ref is not None:
        return resource(source.resource_field_ref, pod, container, place)
    if source.config_map_key_ref is not None:
        return _key("ConfigMap", source.config_map_key_ref, config_maps, pod.metadata.namespace)
    if source.secret_key_ref is not None:
        return _key("Secret", source.secret_key_ref, secrets, pod.metadata.namespace)
    raise Missing("valueFrom names no source that is known here: use a field, resource, ConfigMap or Secret")


def _key(kind: str, ref: KeyRef, contents: Contents, namespace: str) -> str | None:
    data = contents.get(ref.name)
    if data is None:
        if ref.optional:
            return None
        raise Missing(f'{kind.lower()} "{ref.name}" not found')
    if ref.key not in data:
        if ref.optional:
            return None
        raise Missing(f"couldn't find key {ref.key} in {kind} {namespace}/{ref.name}")
    return _text(data[ref.key])


def field(ref: FieldRef, pod: Pod, place: Place) -> str:
    meta, path = pod.metadata, ref.field_path
    if match := _SUBSCRIPT.fullmatch(path):
        return (meta.labels if match[1] == "labels" else meta.annotations).get(match[2], "")
    host_network = pod.spec.host_network
    answers: dict[str, Callable[[], str]] = {
        "metadata.name": lambda: meta.name,
        "metadata.namespace": lambda: meta.namespace,
        "metadata.uid": lambda: meta.uid,
        "metadata.labels": lambda: _pairs(meta.labels),
        "metadata.annotations": lambda: _pairs(meta.annotations),
        "spec.nodeName": lambda: pod.spec.node_name,
        "spec.serviceAccountName": lambda: pod.spec.service_account_name,
        "status.hostIP": lambda: place.host_ip,
        "status.hostIPs": lambda: place.host_ip,
        "status.podIP": lambda: place.host_ip if host_network else place.pod_ip,
        "status.podIPs": lambda: place.host_ip if host_network else place.pod_ip,
    }
    if path not in answers:
        raise Missing(f"unsupported fieldPath: {path}")
    return answers[path]()


def resource(ref: ResourceFieldRef, pod: Pod, container: Container, place: Place) -> str:
    """Rounded up to whole divisors. Without a limit, what the node has."""
    if ref.container_name:
        container = pod.container(ref.container_name)
    kind, _, name = ref.resource.partition(".")
    amounts = container.resources.limits if kind == "limits" else container.resources.requests
    amount = amounts.get(name, place.allocatable.get(name, "0") if kind == "limits" else "0")
    try:
        divisor = quantity.parse(ref.divisor).nano or quantity.NANO
        return str(-(-quantity.parse(amount).nano // divisor))
    except errors.Refused as problem:
        raise Missing(f"{ref.resource}: {problem}") from problem


def expand(text: str, known: Mapping[str, str]) -> str:
    made, at = [], 0
    while (dollar := text.find("$", at)) >= 0 and dollar + 1 < len(text):
        made.append(text[at:dollar])
        follows = text[dollar + 1]
        end = text.find(")", dollar) if follows == "(" else -1
        if end >= 0:
            name = text[dollar + 2 : end]
            made.append(known.get(name, text[dollar : end + 1]))
            at = end + 1
        else:
            made.append("$" if follows == "$" else "$" + follows)
            at = dollar + 2
    return "".join(made) + text[at:]


def command_line(container: Container, environment: Mapping[str, str]) -> Sequence[str]:
    """Arguments alone go to the image's entrypoint, which is not known here. Most images have none, or a shell that
    runs what it is given (`kubectl run x --image=busybox -- date`), so they are the command."""
    return [expand(word, environment) for word in (*container.command, *container.args)]


def _pairs(values: Mapping[str, str]) -> str:
    """As the kubelet writes labels into a file: one a line, quoted."""
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for value in values.values())
    return "\n".join(f'{key}="{value}"' for key, value in sorted(zip(values, quoted, strict=True)))


def _text(value: bytes) -> str:
    """Secrets may hold any bytes; a process gets them back as they were."""
    return value.decode("utf-8", "surrogateescape")
