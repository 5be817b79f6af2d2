"""What is a document after a merge patch (RFC 7386)?

One difference from the RFC, as kube-apiserver has it: where a patch brings something new, nulls are left out of objects
inside lists, too.
"""

from __future__ import annotations

from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.patching import errors, values


def apply(doc: Json, patch: Any) -> Json:
    if not isinstance(patch, dict):
        raise errors.bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type "
            "map[string]interface {}"
        )
    result = values.copied(doc)
    _merge(result, values.copied(patch))
    return result  # type: ignore[no-any-return]


def _merge(doc: Json, patch: Json) -> None:
    for key, value in patch.items():
        current = doc.get(key)
        if value is None:
            doc.pop(key, None)
        elif isinstance(current, dict) and isinstance(value, dict):
            _merge(current, value)
        else:
            doc[key] = _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def json_kind(value: Any) -> str:
    """The JSON word for a value, as decoding errors have it."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"
