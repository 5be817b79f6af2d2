"""`octo queue` and `octo queuejob`: what they make of their options and how they list, without a cluster."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.api import validation
from octarbiter.cli import arguments, columns, queue_fields, why
from octarbiter.cli.exits import Exit

Octo = Callable[..., Result]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def made(octo: Octo, *words: str) -> dict[str, Any]:
    said = octo(*words, "--dry-run=client", "-o", "yaml")
    assert said.exit_code == Exit.OK, said.output
    body: dict[str, Any] = yaml.safe_load(said.stdout)
    assert validation.validate(body) == []
    return body


def test_every_field_of_a_queue_has_an_option(octo: Octo) -> None:
    options = {
        "--weight": "3",
        "--request": "cpu=4,memory=8Gi",
        "--guarantee": "cpu=1",
        "--deserved": "cpu=2",
        "--capability": "cpu=8,nvidia.com/gpu=2",
        "--parent": "top/all",
        "--policy": "proportion",
        "--priority": "-1",
        "--namespaces": "team=vision,env=prod",
        "--oversubscription": "cpu=1.5",
    }
    body = made(octo, "queue", "create", "q", "--no-reclaimable", *(word for pair in options.items() for word in pair))

    assert body["spec"] == {
        "weight": 3,
        "request": {"resources": {"cpu": "4", "memory": "8Gi"}},
        "guarantee": {"resources": {"cpu": "1"}},
        "deserved": {"resources": {"cpu": "2"}},
        "capability": {"resources": {"cpu": "8", "nvidia.com/gpu": "2"}},
        "parent": "top/all",
        "policy": "proportion",
        "priority": -1,
        "reclaimable": False,
        "namespaceSelector": {"matchLabels": {"team": "vision", "env": "prod"}},
        "oversubscription": {"cpu": "1.5"},
    }


def test_a_queue_without_options_says_nothing_of_itself(octo: Octo) -> None:
    assert made(octo, "queue", "create", "q")["spec"] == {}


def test_all_mistakes_are_told_at_once_and_nothing_is_sent(octo: Octo) -> None:
    said = octo("queue", "create", "q", "--weight", "0", "--request", "cpu=many", "--parent", "q")

    assert all(path in said.stderr for path in ("spec.weight", "spec.request.resources[cpu]", "spec.parent"))
    assert said.exit_code == Exit.INVALID


@pytest.mark.parametrize("written", ["cpu", "cpu=", "=4", "cpu=1,cpu=2", "cpu:4"])
def test_amounts_are_written_as_name_and_value(octo: Octo, written: str) -> None:
    said = octo("queue", "create", "q", "--request", written)

    assert "--request" in said.stderr
    assert said.exit_code == Exit.INVALID


def test_nothing_to_change_is_a_mistake(octo: Octo) -> None:
    said = octo("queue", "set", "q")

    assert "say what to change" in said.stderr
    assert said.exit_code == Exit.INVALID


def test_an_empty_value_takes_a_field_away_and_the_others_stay() -> None:
    spec = {"weight": 2, "guarantee": {"resources": {"cpu": "1"}}, "parent": "top"}

    assert queue_fields.changed(spec, {"guarantee": "", "parent": "", "weight": None}) == {"weight": 2}


names = st.sampled_from("abc")
specs = st.dictionaries(names, st.integers(0, 2) | st.dictionaries(names, st.integers(0, 2)), max_size=3)


@given(specs, specs)
def test_the_patch_leads_from_what_is_to_what_shall_be(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert merged(before, queue_fields.patch(before, after)) == after


def merged(target: Any, patch: Any) -> Any:
    """As RFC 7386 says."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@pytest.mark.parametrize(
    ("written", "reference"),
    [
        ("taskset/a", ("octopus.openi.pcl.cn/v1alpha1", "TaskSet", "a")),
        ("Job/a", ("batch/v1", "Job", "a")),
        ("kubeflow.org/v1/MPIJob/a", ("kubeflow.org/v1", "MPIJob", "a")),
        ("v1/Thing/a", ("v1", "Thing", "a")),
    ],
)
def test_a_workload_is_named_as_people_name_it(octo: Octo, written: str, reference: tuple[str, ...]) -> None:
    body = made(octo, "queuejob", "create", "j", "--queue", "q", "--unit", "cpu=1", "--workload", written)

    assert tuple(body["spec"]["workloadRef"][part] for part in ("apiVersion", "kind", "name")) == reference


@pytest.mark.parametrize("written", ["a", "deployment/a", "job/", "/a"])
def test_a_workload_that_is_none_is_told_how_to_write_it(octo: Octo, written: str) -> None:
    said = octo("queuejob", "create", "j", "--queue", "q", "--unit", "cpu=1", "--workload", written)

    assert "taskset/NAME" in said.stderr
    assert said.exit_code == Exit.INVALID


def test_units_reach_the_claim(octo: Octo) -> None:
    words = ["--queue", "q", "--unit", "cpu=1,memory=4Gi", "--units", "6", "--min-units", "2", "--priority", "5"]

    assert made(octo, "queuejob", "create", "train", *words)["spec"] == {
        "queue": "q",
        "resourceunit": {"resources": {"cpu": "1", "memory": "4Gi"}},
        "resourceno": 6,
        "minResourceno": 2,
        "priority": 5,
    }


def test_a_queue_may_be_called_like_the_kind() -> None:
    assert arguments.names_of(arguments.QUEUE, ["q", "queue", "queue/r", "queues.arbitrator.incubator.k8s.io/s"]) == [
        *["q", "queue", "r", "s"],
    ]


def test_a_cluster_is_not_started_with_a_policy_that_nobody_knows(octo: Octo) -> None:
    said = octo("up", "--policy", "nonsense")

    assert "--policy must be one of" in said.stderr
    assert said.exit_code == Exit.INVALID


@pytest.mark.parametrize(
    ("typed", "offered"), [("octo queue ", {"list", "describe", "create", "set", "delete"}), ("octo wh", {"why"})]
)
def test_a_shell_completes_the_commands_of_a_group(octo: Octo, typed: str, offered: set[str]) -> None:
    words = {"_OCTO_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}

    assert {line.partition(",")[2] for line in octo(env=words).stdout.split()} == offered


# --- lists


def queue(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "q", "namespace": "here", "creationTimestamp": "2026-01-01T11:59:00Z"},
        "spec": {"weight": 3, "parent": "top"},
        "status": status,
    }


def test_the_figures_of_a_queue_stand_in_the_order_of_its_resources() -> None:
    seen = queue(
        demand={"resources": {"nvidia.com/gpu": "2", "memory": "8Gi", "cpu": "4"}},
        deserved={"resources": {"cpu": "3"}},
        share="50.0% cpu",
        conditions=[{"type": "Satisfied", "status": "False", "message": "q waits"}],
    )

    assert columns.QUEUES.row(seen, NOW, wide=True, with_namespace=True) == [
        *["here", "q", "3", "50.0% cpu", "cpu,memory,nvidia.com/gpu", "4,8Gi,2", "3,0,0", "0,0,0", "0,0,0", "0,0,0"],
        *["1m", "top", "<none>", "q waits"],
    ]
    assert len(columns.QUEUES.columns(wide=True, with_namespace=True)) == 14


def test_while_something_is_taken_back_that_is_what_a_queue_tells() -> None:
    satisfied = {"type": "Satisfied", "status": "True", "message": "q has all it asks for"}
    giving = {"type": "Reclaiming", "status": "True", "message": "q gives back 2 CPU"}

    assert columns.explanation({"conditions": [satisfied, giving]}) == "q gives back 2 CPU"
    assert columns.explanation({"conditions": [satisfied, giving | {"status": "False"}]}) == "q has all it asks for"


@pytest.mark.parametrize(
    "odd",
    [{}, {"metadata": None, "spec": 3, "status": []}, {"status": {"conditions": [None], "demand": {"resources": 1}}}],
)
@pytest.mark.parametrize("listed", [columns.QUEUES, columns.QUEUEJOBS])
def test_an_object_that_nobody_understands_is_listed_all_the_same(listed: Any, odd: dict[str, Any]) -> None:
    row = listed.row(odd, NOW, wide=True, with_namespace=True)

    assert len(row) == len(listed.columns(wide=True, with_namespace=True))


@pytest.mark.parametrize(
    ("conditions", "reference", "state"),
    [
        ({}, False, "Waiting"),
        ({"Allocated": "False"}, True, "Waiting"),
        ({"Allocated": "True"}, False, "Allocated"),
        ({"Allocated": "True", "Started": "True"}, True, "Started"),
        ({"Allocated": "False", "Finished": "True"}, True, "Finished"),
    ],
)
def test_one_word_says_what_has_become_of_a_claim(conditions: dict[str, str], reference: bool, state: str) -> None:
    listed = [{"type": type_, "status": status} for type_, status in conditions.items()]
    spec = {"workloadRef": {"kind": "Job", "name": "j"}} if reference else {}

    assert columns.claim_state({"spec": spec, "status": {"conditions": listed}}) == state


# --- whom `octo why` is asked about


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        (("x",), None, "x"),
        (("queue/x",), "Queue", "x"),
        (("queue", "x"), "Queue", "x"),
        (("qj/x",), "QueueJob", "x"),
        (("queuejobs.arbitrator.incubator.k8s.io/x",), "QueueJob", "x"),
        (("ts", "x"), "TaskSet", "x"),
        (("queue",), None, "queue"),
    ],
)
def test_the_kind_is_said_as_elsewhere_or_not_at_all(words: tuple[str, ...], kind: str | None, name: str) -> None:
    called, found = why.meant(words)

    assert (called.kind if called is not None else None, found) == (kind, name)


@pytest.mark.parametrize("words", [("pod/x",), ("pod", "x"), ("a", "b", "c")])
def test_of_others_nothing_can_be_said(octo: Octo, words: tuple[str, ...]) -> None:
    assert octo("why", *words).exit_code == Exit.INVALID
