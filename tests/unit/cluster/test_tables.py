"""Tables: every cell as the real server draws it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.api import kinds
from octarbiter.cluster.apiserver import tables
from octarbiter.cluster.apiserver.tables import ages

RECORDED = json.loads((Path(__file__).parent / "golden" / "tables.json").read_text())
NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)
Json = dict[str, Any]

DEFINITION = next(table for table in RECORDED if table["kind"] == "CustomResourceDefinition")["rows"][0]["object"]
PRINTED = DEFINITION["spec"]["versions"][0]["additionalPrinterColumns"]


def kind_of(table: Json) -> tuple[str, str, list[Json] | None]:
    group = table["apiVersion"].rpartition("/")[0]
    return group, table["kind"], PRINTED if group == "example.org" else None


KINDS = [table["kind"] for table in RECORDED]


@pytest.mark.parametrize("table", RECORDED, ids=KINDS)
def test_columns_are_those_of_the_real_server(table: Json) -> None:
    group, kind, printed = kind_of(table)

    ours = [msgspec.to_builtins(column) for column in tables.columns(group, kind, printed)]

    assert all(column.pop("description") is not None for column in ours)
    assert ours == table["columns"]


ROWS = [(table, row) for table in RECORDED for row in table["rows"]]


@pytest.mark.parametrize(
    ("table", "row"), ROWS, ids=[f"{table['kind']}-{row['object']['metadata']['name']}" for table, row in ROWS]
)
def test_cells_are_those_of_the_real_server(table: Json, row: Json) -> None:
    group, kind, printed = kind_of(table)
    drawn = [
        tables.render(group, kind, [row["object"]], datetime.fromisoformat(table[moment]), columns=printed)["rows"][0]
        for moment in ("before", "after")
    ]

    # The server's clock stood somewhere between the two.
    at_some_time = [
        ours if ours == theirs else later
        for ours, later, theirs in zip(drawn[0]["cells"], drawn[1]["cells"], row["cells"], strict=True)
    ]
    assert at_some_time == row["cells"]
    assert drawn[0].get("conditions") == row.get("conditions")


POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "creationTimestamp": "2024-02-29T11:59:00Z"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("None", None),
        ("Object", POD),
        (
            "Metadata",
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": POD["metadata"]},
        ),
    ],
)
def test_a_row_carries_as_much_of_its_object_as_was_asked_for(include: tables.Include, expected: Json | None) -> None:
    table = tables.render("", "Pod", [POD], NOW, include=include, list_meta={"resourceVersion": "5"})

    assert table["rows"][0]["object"] == expected
    assert table["metadata"] == {"resourceVersion": "5"}
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")


def test_later_tables_of_a_watch_need_no_columns() -> None:
    assert tables.render("", "Pod", [POD], NOW, headers=False)["columnDefinitions"] is None


def test_a_custom_kind_without_columns_shows_its_age() -> None:
    table = tables.render("example.org", "X", [POD], NOW, columns=[])

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["p", "60s"]


def test_a_kind_without_a_layout_shows_when_it_was_created() -> None:
    table = tables.render("example.org", "X", [POD], NOW)

    assert table["rows"][0]["cells"] == ["p", "2024-02-29T11:59:00Z"]


def test_our_own_columns_can_be_drawn() -> None:
    taskset = {
        "metadata": {"name": "t"},
        "spec": {"queue": "q"},
        "status": {"state": "Running", "totalRetriedCount": 2},
    }

    cells = tables.render("x", "TaskSet", [taskset], NOW, columns=kinds.TASKSET.columns)["rows"][0]["cells"]

    assert cells == ["t", "Running", None, 2, None, "q"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400 - 1, "729d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_durations_are_rounded_as_kubectl_users_know_them(seconds: float, expected: str) -> None:
    assert ages.human(seconds) == expected


def test_ages_follow_the_clock_that_is_given() -> None:
    assert ages.since("2024-02-29T11:00:00Z", NOW + timedelta(hours=1)) == "120m"


NAMES = st.sampled_from(
    [
        *(
            "metadata",
            "name",
            "spec",
            "status",
            "conditions",
            "type",
            "containers",
            "containerStatuses",
            "state",
            "ports",
        ),
        *(
            "initContainers",
            "terminated",
            "waiting",
            "labels",
            "selector",
            "metrics",
            "subsets",
            "rules",
            "creationTimestamp",
        ),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(sorted({kind_of(table)[:2] for table in RECORDED})), st.dictionaries(NAMES, JSON, max_size=4))
def test_no_object_breaks_a_table(kind: tuple[str, str], obj: Json) -> None:
    table = tables.render(*kind, [obj], NOW)

    assert len(table["rows"][0]["cells"]) >= len(table["columnDefinitions"])
