"""How many replicas? The same question for every kind that has an answer.

A Scale is a view of another object: reading it reads two numbers and a selector there, writing it writes one number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import status
from octarbiter.cluster.apiserver.catalogue import Scaling
from octarbiter.cluster.apiserver.registry import Call, Registry, Written
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation.problems import Problem

_MOST = 2**31 - 1
_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def of(obj: Json, scaling: Scaling) -> Json:
    """As it is shown; a custom object may not say how many replicas it wants."""
    if _at(obj, scaling.replicas) is None:
        raise status.bad_request(f'the spec replicas field ".{".".join(scaling.replicas)}" does not exist')
    return _view(obj, scaling)


def _view(obj: Json, scaling: Scaling) -> Json:
    metadata = obj["metadata"]
    replicas = _at(obj, scaling.replicas)
    scale: Json = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _COPIED if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": _at(obj, scaling.status_replicas) or 0},
    }
    if selector := _selector(_at(obj, scaling.selector) if scaling.selector else None):
        scale["status"]["selector"] = selector
    return scale


async def write(registry: Registry, call: Call, change: Callable[[Json], Json]) -> Written:
    """`change` makes a new Scale of the present one."""
    scaling = call.served.scaling
    assert scaling is not None
    resource = call.served.resource

    def produce(old: Json | None) -> Json:
        assert old is not None
        scale = change(_view(old, scaling))
        metadata = scale.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") != call.name:
            given = metadata.get("name", "") if isinstance(metadata, dict) else ""
            raise status.bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({call.name})"
            )
        if metadata.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
            raise status.conflict(resource, call.name)
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        if replicas < 0 and not resource.custom:
            what = f"Invalid value: {replicas}: must be greater than or equal to 0"
            problem = Problem("FieldValueInvalid", "spec.replicas", what)
            raise status.invalid_scale(call.name, [problem])
        _put(old, scaling.replicas, replicas)
        return old

    # The object as a whole changes through its main door; only the owner of the field is told by which one.
    return await registry.modify(call, produce)


def problems(obj: Json, scaling: Scaling, *, only_status: bool = False) -> list[Problem]:
    """Of the fields of a custom object that a Scale shows."""
    found: list[Problem] = []
    for path in (scaling.status_replicas,) if only_status else (scaling.replicas, scaling.status_replicas):
        shown, number, wrong = f".{'.'.join(path)}", 0, _unreadable(obj, path, int, "int64")
        if not wrong and (number := _at(obj, path) or 0) < 0:
            wrong = "should be a non-negative integer"
        elif not wrong and number > _MOST:
            wrong = f"should be less than or equal to {_MOST}"
        if wrong:
            found.append(wording.invalid(shown, number, wrong))
    if scaling.selector and (wrong := _unreadable(obj, scaling.selector, str, "string")):
        found.append(wording.invalid(f".{'.'.join(scaling.selector)}", "", wrong))
    return found


def _unreadable(obj: Any, path: tuple[str, ...], type_: type, called: str) -> str:
    """Why there can be no such value there."""
    for depth, part in enumerate(path):
        if obj is None:
            return ""
        if not isinstance(obj, dict):
            return (
                f".{'.'.join(path[: depth + 1])} accessor error: {_described(obj)}, expected map[string]interface{{}}"
            )
        obj = obj.get(part)
    if obj is None or (isinstance(obj, type_) and not isinstance(obj, bool)):
        return ""
    return f".{'.'.join(path)} accessor error: {_described(obj)}, expected {called}"


def _described(value: object) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    shown = value if isinstance(value, str) else wording.shown(value)
    return f"{shown} is of the type {names.get(type(value), 'map[string]interface {}')}"


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj


def _put(obj: Json, path: tuple[str, ...], value: int) -> None:
    for part in path[:-1]:
        below = obj.get(part)
        if not isinstance(below, dict):
            below = obj[part] = {}
        obj = below
    obj[path[-1]] = value


def _selector(selector: Any) -> str:
    """As text: plain labels, or what a LabelSelector says."""
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    if not {"matchLabels", "matchExpressions"} & selector.keys():
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or []:
        key, values = each.get("key", ""), ",".join(sorted(each.get("values") or []))
        said = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append((key, said.get(each.get("operator", ""), "")))
    return ",".join(text for _, text in sorted(parts))
