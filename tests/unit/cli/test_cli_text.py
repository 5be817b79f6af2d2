"""Times, columns and objects in plain text."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cli import arguments, columns, text
from octarbiter.runtime import manifest

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (200, "3m20s"),
        (599, "9m59s"),
        (605, "10m"),
        (3600, "1h"),
        (19_200, "5h20m"),
        (37_000, "10h"),
        (273_600, "3d4h"),
        (30 * 86_400 + 7200, "30d"),
    ],
)
def test_a_duration_has_the_units_that_matter(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800), ("0", 0)]
)
def test_a_duration_can_be_written_in_units(written: str, seconds: int) -> None:
    assert arguments.duration(written) == seconds


def test_columns_are_aligned_and_never_narrower_than_before() -> None:
    assert text.columns([["A", "B"], ["long", "x"]]) == ["A      B", "long   x"]
    assert text.columns([["a", "b"]], least=[4, 1]) == ["a      b"]


def test_foreign_text_cannot_rule_the_terminal() -> None:
    assert text.line("a\x1b[31m\nb\tc\x07") == "a [31m b c"


def _seconds_ago(count: int) -> str:
    return (NOW - timedelta(seconds=count)).strftime("%Y-%m-%dT%H:%M:%SZ")


def taskset(**status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
        "kind": "TaskSet",
        "metadata": {"name": "demo", "namespace": "here", "creationTimestamp": _seconds_ago(200)},
        "spec": {"queue": "fast", "roles": [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 3}]},
        "status": status,
    }


def test_a_row_has_the_columns_of_the_table() -> None:
    running = taskset(state="Running", phase="TaskSetAttemptRunning", totalRetriedCount=2, stateMessage="waits\nfor it")
    running["status"]["roleStatus"] = [{"name": "worker", "succeeded": 2}]

    assert columns.TASKSETS.row(running, NOW, wide=False, with_namespace=False) == [
        "demo",
        "Running",
        "TaskSetAttemptRunning",
        "2",
        "3m20s",
    ]
    assert columns.TASKSETS.row(running, NOW, wide=True, with_namespace=True) == [
        *["here", "demo", "Running", "TaskSetAttemptRunning", "2", "3m20s"],
        *["fast", "ps:0/1,worker:2/3", "waits for it"],
    ]
    assert len(columns.TASKSETS.columns(wide=True, with_namespace=True)) == 9


@pytest.mark.parametrize("odd", [{}, {"metadata": None, "spec": 3, "status": []}, {"spec": {"roles": [None]}}])
def test_an_object_that_nobody_understands_is_listed_all_the_same(odd: dict[str, Any]) -> None:
    assert len(columns.TASKSETS.row(odd, NOW, wide=True, with_namespace=True)) == 9


def test_one_that_is_being_deleted_says_so() -> None:
    going = taskset(state="Running")
    going["metadata"]["deletionTimestamp"] = _seconds_ago(1)

    assert columns.TASKSETS.row(going, NOW, wide=False, with_namespace=False)[1] == "Terminating"


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1),
        st.one_of(
            st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])), st.integers(-9, 9), st.booleans()
        )
        | st.sampled_from(
            ["y", "no", "on", "1e3", "0x1f", "22:22", "2024-01-01", "~", "", "null", "1_000", ".inf", "a\nb\n"]
        ),
    )
)
def test_yaml_that_we_print_is_read_back_as_it_was(labels: dict[str, Any]) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": labels}

    assert manifest.read(text.to_yaml(body)) == [body]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["a"], ["a"]),
        (["ts", "a", "b", "a"], ["a", "b"]),
        (
            ["taskset/a", "ts/b", "tasksets.octopus.openi.pcl.cn/c", "taskset.octopus.openi.pcl.cn/d"],
            ["a", "b", "c", "d"],
        ),
        (["ts"], ["ts"]),
        (["ts", "ts"], ["ts"]),
    ],
)
def test_names_are_taken_as_kubectl_takes_them(words: list[str], names: list[str]) -> None:
    assert arguments.names(words) == names


def test_a_lone_kind_is_no_name_where_everything_can_be_listed() -> None:
    assert arguments.names(["tasksets"], kind_alone=True) == []
