"""Do lists that are sets hold everything once, and keyed lists every key once?"""

from __future__ import annotations

from typing import Any

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.types import ListType, Shape, Type
from octarbiter.cluster.apiserver.validation.problems import Problem


def check(value: Any, type: Type, path: str = "") -> list[Problem]:
    problems: list[Problem] = []
    if isinstance(value, dict):
        for name, item in value.items():
            below = type.field(name)
            if below is not None:
                here = wording.key(path, name) if type.shape is Shape.MAP else wording.child(path, name)
                problems += check(item, below, here)
    elif isinstance(value, list):
        if type.list_type is ListType.SET:
            problems += [wording.duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value)]
        elif type.list_type is ListType.MAP:
            problems += _keyed(value, type, path)
        if type.element is not None:
            for index, item in enumerate(value):
                problems += check(item, type.element, f"{path}[{index}]")
    return problems


def _keyed(items: list[Any], type: Type, path: str) -> list[Problem]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return [wording.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    keys = [{name: item[name] for name in type.list_keys if name in item} if item else {} for item in items]
    return [wording.duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys)]


def _repeated(values: list[Any]) -> list[int]:
    """Where a value stands for the second time."""
    times: dict[str, int] = {}
    repeated = []
    for index, value in enumerate(values):
        written = wording.compact(value)
        times[written] = times.get(written, 0) + 1
        if times[written] == 2:
            repeated.append(index)
    return repeated
