"""Which cells does a definition's `additionalPrinterColumns` ask for?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import jsonpath
from octarbiter.cluster.apiserver.tables import ages
from octarbiter.cluster.apiserver.tables.layout import Cells, Column, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import text

_AGE: Json = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": columns("Age")[0].description,
}


def layout(declared: Sequence[Json]) -> Layout:
    shown = list(declared) or [_AGE]

    def cells(obj: Json, now: datetime) -> Cells:
        return [text(obj, "metadata", "name"), *(_cell(obj, column, now) for column in shown)]

    return Layout((*columns("Name"), *(_column(column) for column in shown)), cells)


def _column(declared: Json) -> Column:
    path = text(declared, "jsonPath")
    return Column(
        name=text(declared, "name"),
        type=text(declared, "type"),
        format=text(declared, "format"),
        description=text(declared, "description") or f"Custom resource definition column (in JSONPath format): {path}",
        priority=int(declared.get("priority") or 0),
    )


def _cell(obj: Json, column: Json, now: datetime) -> Any:
    try:
        value = jsonpath.first(obj, text(column, "jsonPath"))
    except jsonpath.BadPath:
        return None
    type = column.get("type")
    if type == "string":
        return jsonpath.printed(value)
    if type == "boolean":
        return value if isinstance(value, bool) else None
    if type == "date":
        return _age(value, now) if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if type == "integer" else value


def _age(value: str, now: datetime) -> str:
    if not value:
        return ages.UNKNOWN
    return "<invalid>" if ages.moment(value) is None else ages.since(value, now)
