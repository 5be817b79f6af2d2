"""What is known about built-in kinds, as it was generated.

One compressed file, opened when something is first asked. Single components stay undecoded until somebody needs them:
a server that sees pods and jobs never pays for the other five hundred.
"""

from __future__ import annotations

import functools
import gzip
from importlib import resources
from typing import Any

import msgspec

_FILE = "kubernetes.json.gz"


class StructField(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A field of a Go struct; see `tools/go_structs.py`."""

    name: str
    go: str
    number: int
    presence: str


class _Table(msgspec.Struct, frozen=True):
    version: str
    kinds: dict[str, str]
    schemas: dict[str, msgspec.Raw]
    structs: dict[str, msgspec.Raw]


@functools.cache
def _table() -> _Table:
    packed = resources.files(__package__).joinpath(_FILE).read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=_Table)


def version() -> str:
    """Of the Kubernetes that the table describes."""
    return _table().version


def kinds() -> list[tuple[str, str, str]]:
    """Group, version and kind of everything in the table; lists and options included."""
    found = (key.split("/") for key in _table().kinds)
    return [(group, version, kind) for group, version, kind in found]


def component_of(group: str, version: str, kind: str) -> str | None:
    """The name under which OpenAPI knows a kind, such as `io.k8s.api.core.v1.Pod`."""
    return _table().kinds.get(f"{group}/{version}/{kind}")


def schema(component: str) -> dict[str, Any]:
    """As a real server publishes it."""
    found: dict[str, Any] = msgspec.json.decode(_table().schemas[component])
    return found


_FIELDS = msgspec.json.Decoder(list[StructField])


@functools.cache
def own_fields(component: str) -> tuple[StructField, ...]:
    """Of the Go struct, in its order; one with an empty name stands for the fields of the struct `go` names."""
    raw = _table().structs.get(component)
    return () if raw is None else tuple(_FIELDS.decode(raw))


def fields(component: str) -> dict[str, tuple[str, StructField]]:
    """All fields as JSON has them; those of nameless structs with the names of these before them."""
    found: dict[str, tuple[str, StructField]] = {}
    for field in own_fields(component):
        if field.name:
            found[field.name] = ("", field)
            continue
        short = field.go.rpartition(".")[2]
        found |= {name: (f"{short}.{way}".rstrip("."), inner) for name, (way, inner) in fields(field.go).items()}
    return found
