"""What does kubectl show? Tables (meta.k8s.io/v1), made by the server so that every client shows the same.

`render` makes one of the objects of a kind: built-in kinds have a layout of their own, custom ones that of their
definition, all others a name and a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables import (
    access,
    cluster,
    custom,
    devices,
    network,
    pods,
    policies,
    storage,
    workloads,
)
from octarbiter.cluster.apiserver.tables.layout import Column, Layout
from octarbiter.cluster.apiserver.tables.layout import columns as _columns
from octarbiter.cluster.apiserver.tables.reading import text

Include = Literal["None", "Metadata", "Object"]

_LAYOUTS: dict[tuple[str, str], Layout] = {
    **pods.LAYOUTS,
    **cluster.LAYOUTS,
    **workloads.LAYOUTS,
    **network.LAYOUTS,
    **storage.LAYOUTS,
    **access.LAYOUTS,
    **policies.LAYOUTS,
    **devices.LAYOUTS,
}


def _plain_cells(obj: Json, now: datetime) -> list[Any]:
    return [text(obj, "metadata", "name"), text(obj, "metadata", "creationTimestamp") or "0001-01-01T00:00:00Z"]


_PLAIN = Layout(_columns("Name", "Created At:date"), _plain_cells)


def render(
    group: str,
    kind: str,
    objects: Iterable[Json],
    now: datetime,
    *,
    columns: Sequence[Json] | None = None,
    include: Include = "Metadata",
    list_meta: Json | None = None,
    headers: bool = True,
    version: str = "v1",
) -> Json:
    """`columns` are a custom kind's `additionalPrinterColumns`, an empty list where it has none; None for built-in
    kinds. `headers` is False for all events of a watch but the first: columns are told once. `version` is that of
    meta.k8s.io."""
    layout = _layout(group, kind, columns)
    table: Json = {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": list_meta or {},
        "columnDefinitions": [msgspec.to_builtins(column) for column in layout.columns] if headers else None,
        "rows": [_row(layout, obj, now, include, version) for obj in objects],
    }
    return table


def columns(group: str, kind: str, declared: Sequence[Json] | None = None) -> tuple[Column, ...]:
    return _layout(group, kind, declared).columns


def _layout(group: str, kind: str, declared: Sequence[Json] | None) -> Layout:
    if declared is not None:
        return custom.layout(declared)
    return _LAYOUTS.get((group, kind), _PLAIN)


def _row(layout: Layout, obj: Json, now: datetime, include: Include, version: str) -> Json:
    row: Json = {"cells": layout.cells(obj, now)}
    if layout.conditions is not None and (conditions := layout.conditions(obj)):
        row["conditions"] = conditions
    row["object"] = _included(obj, include, version)
    return row


def _included(obj: Json, include: Include, version: str) -> Json | None:
    if include == "Object":
        return obj
    if include == "None":
        return None
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj.get("metadata") or {},
    }
