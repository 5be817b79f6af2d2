"""What is there when nothing was written?

Asked on every write and on every read: a default that a schema gains later is visible in objects that are older. A null
where the schema allows none counts as absent.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from octarbiter.cluster.apiserver.types import Type


def default(obj: Any, type: Type) -> None:
    """In place."""
    _drop_nulls(obj, type)
    _fill(obj, type)


def _fill(value: Any, type: Type | None) -> None:
    if type is None:
        return
    if isinstance(value, dict):
        for name, below in type.properties.items():
            if below.default is not msgspec.UNSET and (name not in value or _is_no_value(value[name], below)):
                value[name] = copy.deepcopy(below.default)
        for name, item in value.items():
            inner = type.field(name)
            if inner is not None and _is_no_value(item, inner) and inner.default is not msgspec.UNSET:
                value[name] = copy.deepcopy(inner.default)
            _fill(value[name], inner)
    elif isinstance(value, list) and type.element is not None:
        for index, item in enumerate(value):
            if _is_no_value(item, type.element) and type.element.default is not msgspec.UNSET:
                value[index] = copy.deepcopy(type.element.default)
            _fill(value[index], type.element)


def _drop_nulls(value: Any, type: Type | None) -> None:
    if isinstance(value, dict):
        for name, item in list(value.items()):
            below = type.field(name) if type is not None else None
            if below is not None and _is_no_value(item, below) and below.default is msgspec.UNSET:
                del value[name]
            else:
                _drop_nulls(item, below)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item, type.element if type is not None else None)


def _is_no_value(value: Any, type: Type) -> bool:
    return value is None and not type.nullable
