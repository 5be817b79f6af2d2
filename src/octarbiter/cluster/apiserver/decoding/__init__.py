"""From bytes to an object, and whether it fits its kind.

`decode` reads the bytes, `check` says what is wrong with the object in the words of a real server, `prune` brings it
into the form in which it is kept.
"""

from __future__ import annotations

from typing import Any

from octarbiter.cluster.apiserver.decoding import json_text, yaml_text
from octarbiter.cluster.apiserver.decoding.checking import Checked, check
from octarbiter.cluster.apiserver.decoding.errors import Unreadable
from octarbiter.cluster.apiserver.schemas import protobuf
from octarbiter.cluster.apiserver.schemas.forms import prune

__all__ = ["Checked", "Unreadable", "check", "decode", "prune"]

Json = dict[str, Any]

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_ENVELOPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def decode(body: bytes, content_type: str, *, is_untyped: bool = False) -> tuple[Json, list[str]]:
    """The object, and the paths of keys that stood twice. What is neither YAML nor protobuf is taken for JSON.
    `is_untyped`: no type says which numbers are whole."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == _PROTOBUF:
        try:
            api_version, kind, found = protobuf.decode(body)
        except protobuf.Malformed as problem:
            raise Unreadable(str(problem)) from None
        return {"apiVersion": api_version, "kind": kind, **found}, []
    is_yaml = media_type.endswith("yaml")
    value, duplicates = yaml_text.read(body) if is_yaml else json_text.read(body, is_untyped=is_untyped)
    if value is None:
        # To Go, null is an object of which nothing is said.
        return {}, duplicates
    if not isinstance(value, dict):
        said = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        wrong = f"json: cannot unmarshal {said} into Go value of type {_ENVELOPE}"
        raise Unreadable(f"couldn't get version/kind; json parse error: {wrong}")
    return value, duplicates
