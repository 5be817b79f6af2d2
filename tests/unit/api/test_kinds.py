"""Which kind is meant, and what our own kinds make of what users wrote."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from octarbiter.api import arbitrator, codec, facts, kinds, queue, queuejob, resources, selectors, validation
from octarbiter.api.kinds import Kind
from octarbiter.testing import arbitrator_cases as cases


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        ("octopus.openi.pcl.cn/v1alpha1", "TaskSet", kinds.TASKSET),
        ("octopus.openi.pcl.cn/v1", "taskset", kinds.TASKSET),
        ("arbitrator.incubator.k8s.io/v1", "TaskSet", kinds.OLDER_TASKSET),
        ("v1", "TaskSet", kinds.TASKSET),
        ("arbitrator.incubator.k8s.io/v1", "Queue", kinds.QUEUE),
        ("arbitrator.incubator.k8s.io/v2", "queueJob", kinds.QUEUEJOB),
        ("scheduling.volcano.sh/v1beta1", "Queue", None),
        ("v1", "Pod", None),
        (None, None, None),
    ],
)
def test_a_kind_is_known_by_its_group_and_a_taskset_also_without(group: Any, kind: Any, expected: Kind | None) -> None:
    assert kinds.meant({"apiVersion": group, "kind": kind}) is expected


@pytest.mark.parametrize("unit", [{"resources": {"cpu": "1500m", "x.io/y": 2}}, {"cpu": "1500m", "x.io/y": 2}])
def test_both_ways_of_writing_a_unit_mean_the_same(unit: dict[str, Any]) -> None:
    job = codec.decode(codec.encode(cases.queuejob(resourceunit=unit)), queuejob.QueueJob)

    assert job.spec.unit == {"cpu": 1500, "x.io/y": 2}


def test_an_absent_minimum_is_one_unit() -> None:
    stated = (cases.queuejob(), cases.queuejob(resourceno=5, minResourceno=3))
    jobs = [codec.decode(codec.encode(each), queuejob.QueueJob) for each in stated]

    assert [job.spec.least for job in jobs] == [1, 3]


@pytest.mark.parametrize(
    ("parent", "key"), [("", ""), ("research", "team/research"), ("other/research", "other/research")]
)
def test_a_parent_is_looked_up_in_the_same_namespace_unless_it_names_one(parent: str, key: str) -> None:
    body = cases.queue(parent=parent)
    body["metadata"]["namespace"] = "team"

    assert codec.from_json(body, queue.Queue).parent_key == key


def test_factors_are_exact_and_1_where_none_is_stated() -> None:
    spec = codec.from_json({"oversubscription": {"cpu": "1.1", "memory": 2}}, queue.QueueSpec)

    assert [spec.quota_factor(name) for name in ("cpu", "memory", "pods")] == [Fraction(11, 10), 2, 1]


def test_amounts_are_canonical() -> None:
    listed = codec.from_json({"resources": {"cpu": "1.5", "memory": "1Ki", "x.io/y": 3}}, arbitrator.ResourceList)

    assert listed.amounts == {"cpu": 1500, "memory": 1024, "x.io/y": 3}
    assert resources.written(listed.amounts) == {"cpu": "1500m", "memory": "1Ki", "x.io/y": "3"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"matchLabels": {"team": "vision"}}, True),
        ({"matchLabels": {"team": "speech"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["vision", "speech"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["vision"]}]}, False),
        ({"matchExpressions": [{"key": "old", "operator": "NotIn", "values": ["yes"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"team": "vision"}, "matchExpressions": [{"key": "old", "operator": "Exists"}]}, False),
    ],
)
def test_a_selector_matches_when_all_its_parts_do(selector: dict[str, Any], expected: bool) -> None:
    found = codec.from_json(selector, selectors.LabelSelector)

    assert selectors.matches(found, {"team": "vision"}) is expected


_suffixes = [
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-2",
    "e27",
    "B",
]
_written = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "+", "-"]),
        st.integers(0, 2**70).map(str) | st.decimals(0, 10**9, places=3).map(str) | st.text("0123456789.", max_size=25),
        st.sampled_from(_suffixes),
    ),
)


@settings(deadline=None)
@given(_written | st.text(max_size=8) | st.integers(-(2**70), 2**70))
def test_an_amount_is_either_accepted_and_exact_or_refused_with_its_field(value: str | int) -> None:
    obj = cases.queue(request={"resources": {"cpu": value}})
    problems = validation.validate(obj)

    if problems:
        assert [problem.path for problem in problems] == ["spec.request.resources[cpu]"]
        return
    assert 0 <= codec.from_json(obj, queue.Queue).spec.request.amounts["cpu"] <= (2**63 - 1) * 1000
    # What we accept a server with our CRD accepts as well; it sees the pattern only.
    form = facts.QUANTITY.form
    assert form is not None
    assert isinstance(value, int) or re.search(form.pattern, value, re.ASCII)
