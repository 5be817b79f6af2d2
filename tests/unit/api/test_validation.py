"""The validator: every mistake, each with its field, in words that help; and no more than that."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octarbiter.api import codec, defaults, facts, kinds, rules, taskset, validation
from octarbiter.api.meta import Json
from octarbiter.core.lifecycle import phases
from octarbiter.runtime import manifest
from octarbiter.testing import arbitrator_cases, taskset_cases
from octarbiter.testing.arbitrator_cases import queue, queuejob
from octarbiter.testing.cases import Bad, Change
from octarbiter.testing.taskset_cases import job, role

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def said(obj: Any) -> list[str]:
    return [str(problem) for problem in validation.validate(obj)]


BAD = [*taskset_cases.BAD, *arbitrator_cases.BAD]
GOOD = taskset_cases.GOOD | arbitrator_cases.GOOD
CHANGES = [*taskset_cases.CHANGES, *arbitrator_cases.CHANGES]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.sentence)
def test_a_bad_object_is_refused_with_each_field_and_no_other(bad: Bad) -> None:
    named = {problem.path for problem in validation.validate(bad.obj)}

    assert named == set(bad.fields)


@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD.keys())
def test_a_good_object_is_accepted(good: Json) -> None:
    assert said(good) == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.sentence)
def test_a_change_is_refused_with_the_fields_that_must_not_change_or_else_accepted(
    change: Change,
) -> None:
    found = validation.validate_update(change.before, change.after, change.status)

    assert {problem.path for problem in found} == set(change.fields)


@pytest.mark.parametrize("name", ["manual-1-tensorflowdemo", "manual-2-kube-batch", "readme-tensorflowdemo"])
def test_the_manuals_examples_are_valid(name: str) -> None:
    *_, obj = manifest.read((EXAMPLES / f"{name}.yaml").read_bytes())

    assert said(obj) == []


@pytest.mark.parametrize(
    ("obj", "sentence"),
    [
        (
            job(role("ps", eventPolicy=[{"event": "RoleFaild", "action": "NoAction"}])),
            "spec.roles[0].eventPolicy[0].event: must be one of RoleFailed, RoleSucceeded, RoleCompleted, "
            'is "RoleFaild"; did you mean RoleFailed?',
        ),
        (job(role("ps", replica=2)), "spec.roles[0].replica: unknown field; did you mean replicas?"),
        (job(role("worker"), role("ps", dependsOn=["wroker"])), 'no role is called "wroker"; did you mean worker?'),
        (job(role("ps", completionPolicy={"maxFailed": 0})), "-1 never by count"),
        (job(role("ps", completionPolicy={"minSucceeded": 2})), "must be at most replicas, 1, or the role could never"),
        (job(role("ps", replicas="3")), 'spec.roles[0].replicas: must be a whole number, is "3"'),
        (job(role("ps", replicas=True)), "spec.roles[0].replicas: must be a whole number, is true"),
        (job(role("ps", replicas=10**5000)), "must be between 1 and 10000, is a number of more than 64 bits"),
        (job(role("a", dependsOn=["b"]), role("b", dependsOn=["a"])), "roles wait for each other: a -> b -> a"),
        (job(name="x" * 70), "must have at most 61 characters, because it is also a label and a Service name; has 70"),
        (job(role("x" * 70)), "the host name <name>-0 must have at most 63 characters, would have 72"),
        ({**job(), "apiVersion": "v1"}, 'apiVersion: must be octopus.openi.pcl.cn/v1alpha1, is "v1"'),
        ({**job(), "spce": {}}, "spce: unknown field; did you mean spec?"),
        ({**job(), "metadata": {"name": "a", "lables": {}}}, "metadata.lables: unknown field; did you mean labels?"),
        ({**job(), "metadata": {"name": "a", "labels": {"n": 1}}}, "metadata.labels.n: must be a string, is 1"),
        ({**job(), "metadata": {}}, "metadata.name: is required"),
        ({**job(), "metadata": {"generateName": "a" * 57}}, "metadata.generateName: must have at most 56 characters"),
        ({**job(), "metadata": {"generateName": "a.b-"}}, "no dots, because it is also a host name"),
        ([], "must be an object, is a list"),
        (queue(request={"resources": {"cpu": "1.5.5"}}), 'spec.request.resources[cpu]: "1.5.5" is not a quantity'),
        (queue(request={"resources": {"memory": "1GB"}}), "which is no suffix of quantities"),
        (queue(request={"resources": {"cpu": -1}}), "spec.request.resources[cpu]: must be at least 0, is -1"),
        (queue(request={"resources": {"cpu": "-1m"}}), 'spec.request.resources[cpu]: must be at least 0, is "-1m"'),
        (queue(request={"resources": {"cpu": 10**5000}}), "is a number of more than 64 bits"),
        (queue(request={"resources": {"cpu": 0.5}}), "must be a whole number or a string, is 0.5"),
        (queue(request={"resource": {"cpu": 1}}), "spec.request.resource: unknown field; did you mean resources?"),
        (
            queue(guarantee={"resources": {"cpu": 2}}, capability={"resources": {"cpu": "1500m"}}),
            "spec.guarantee.resources[cpu]: must be at most capability, 1500m; is 2",
        ),
        (queue(oversubscription={"cpu": "0.5"}), "must be a number from 1 to 100 with at most three decimals"),
        (queue("q" * 70), "metadata.name: must have at most 63 characters, because it is also a label; has 70"),
        (
            {**queue(parent="team/q"), "metadata": {"name": "q", "namespace": "team"}},
            "spec.parent: a queue cannot be its own parent",
        ),
        (queuejob(resourceno=2, minResourceno=3), "must be at most resourceno, 2, or the job could never start; is 3"),
        (queuejob(resourceunit={"nvidia.com/gpu": "-1"}), "spec.resourceunit[nvidia.com/gpu]: must be at least 0"),
        (
            {**queue(), "apiVersion": "arbitrator.incubator.k8s.io/v2"},
            'apiVersion: must be arbitrator.incubator.k8s.io/v1, is "arbitrator.incubator.k8s.io/v2"',
        ),
        ({**queue(), "kind": "Qeueu"}, "kind: must be one of TaskSet of octopus.openi.pcl.cn/v1alpha1, Queue of"),
    ],
)
def test_a_message_says_what_is_wrong_and_what_would_be_right(obj: Any, sentence: str) -> None:
    (problem,) = said(obj)

    assert sentence in problem


def test_a_name_may_be_left_to_the_server() -> None:
    assert said({**job(), "metadata": {"generateName": "run-"}}) == []


def test_nulls_in_the_metadata_count_as_absent() -> None:
    assert said({**job(), "metadata": {"name": "a", "labels": None, "creationTimestamp": None}}) == []


def test_a_change_reports_the_mistakes_of_the_new_object_as_well() -> None:
    after = job(role("ps", replicas=0), queue="b")

    found = validation.validate_update(job(role("ps"), queue="a"), after, None)

    assert {problem.path for problem in found} == {"spec.roles[0].replicas", "spec.queue"}


def test_the_longest_pod_name_is_a_legal_one() -> None:
    number = facts.INT32_MAX
    longest = f"{'t' * taskset.MAX_NAME}-{'r' * 58}-{number}-{number}-{taskset.MAX_REPLICAS - 1}"

    assert said(job(role("r" * 58, replicas=taskset.MAX_REPLICAS), name="t" * taskset.MAX_NAME)) == []
    assert len(longest) <= 253


def test_a_role_has_finished_in_the_phases_without_a_way_back() -> None:
    moves = phases.ROLE_MOVES
    final = {phase for phase in moves if moves[phase] <= {phases.RolePhase.COMPLETED}}

    assert set(rules.FINISHED_PHASES) == final


def test_defaults_leave_the_argument_and_what_was_stated_alone() -> None:
    given_ = job(role("ps", replicas=2, eventPolicy=[]), role("worker", completionPolicy={"minSucceeded": 1}))
    before = copy.deepcopy(given_)

    first, second = defaults.with_defaults(given_)["spec"]["roles"]

    assert given_ == before
    assert (first["replicas"], first["eventPolicy"]) == (2, [])
    assert second["completionPolicy"] == {"minSucceeded": 1, "maxFailed": 1}
    assert second["eventPolicy"] == [
        {"event": "RoleFailed", "action": "TaskSetFailed"},
        {"event": "RoleSucceeded", "action": "NoAction"},
    ]
    assert second["retryPolicy"] == {"retry": False, "maxRetryCount": 0, "delay": 0}
    assert "restartPolicy" not in second["template"]["spec"]


# Any JSON at all, but with the words of our kinds in it, so that the search gets beyond the first check.
_words = sorted(
    {part for key in facts.FACTS for part in re.split(r"[.\[\]{}]+", key)} | {"spec", "status", "metadata", "name"}
)
_keys = st.sampled_from(_words) | st.text(max_size=5)
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.sampled_from(_words)
any_json = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=6), max_leaves=30
)


_small = [obj for obj in GOOD.values() if len(obj.get("spec", {}).get("roles", ())) < 5]


@st.composite
def broken(draw: st.DrawFn) -> Json:
    """Something good in which one place was overwritten with anything."""
    obj = copy.deepcopy(draw(st.sampled_from(_small)))
    target: Any = obj
    while True:
        places = list(target) if isinstance(target, dict) else list(range(len(target)))
        place = draw(st.sampled_from(places))
        below = target[place]
        if not isinstance(below, dict | list) or not below or draw(st.booleans()):
            target[place] = draw(any_json)
            return obj
        target = below


@settings(max_examples=100, deadline=None)
@given(any_json, broken(), broken(), any_json)
def test_no_json_makes_the_validator_fail(anything: Any, first: Json, second: Json, status: Any) -> None:
    for obj in (anything, first):
        assert all(isinstance(problem.message, str) for problem in validation.validate(obj))
        validation.validate_update(obj, second, status)
        validation.validate_update(second, obj, status)


@settings(max_examples=100, deadline=None)
@given(broken())
def test_what_the_validator_accepts_can_be_read_by_the_controller(obj: Json) -> None:
    kind = kinds.meant(obj)
    if kind is not None and not validation.validate(obj):
        codec.decode(codec.encode({**defaults.with_defaults(obj), "status": {}}), kind.resource.type)


_names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?", fullmatch=True)
_counts = st.integers(0, facts.INT32_MAX)
_retry = st.fixed_dictionaries({}, optional={"retry": st.booleans(), "maxRetryCount": _counts, "delay": _counts})
_events = st.lists(
    st.fixed_dictionaries(
        {"event": st.sampled_from(list(taskset.RoleEvent)), "action": st.sampled_from(list(taskset.Action))}
    ),
    unique_by=lambda policy: policy["event"],
)
_rule = st.fixed_dictionaries(
    {"action": st.sampled_from(["Fail", "Ignore"]), "exitCodes": st.lists(st.integers(1, 255), min_size=1, max_size=5)}
) | st.fixed_dictionaries(
    {
        "action": st.sampled_from(["Fail", "Ignore"]),
        "podReasons": st.lists(st.text(max_size=20), min_size=1, max_size=5),
    }
)


@st.composite
def good_roles(draw: st.DrawFn) -> list[Json]:
    names = draw(st.lists(_names, min_size=1, max_size=6, unique=True))
    roles = []
    for index, name in enumerate(names):
        replicas = draw(st.integers(1, taskset.MAX_REPLICAS))
        completion = {"minSucceeded": st.integers(1, replicas), "maxFailed": st.just(-1) | st.integers(1, replicas)}
        optional: dict[str, st.SearchStrategy[Any]] = {
            "completionPolicy": st.fixed_dictionaries({}, optional=completion),
            "retryPolicy": _retry,
            "eventPolicy": _events,
            "failurePolicy": st.fixed_dictionaries({"rules": st.lists(_rule, max_size=3)}),
            "deletionTimeoutSeconds": _counts,
            # Only on earlier ones: no circle.
            "dependsOn": st.lists(st.sampled_from(names[:index]), max_size=4) if index else st.just([]),
        }
        made = draw(st.fixed_dictionaries({}, optional=optional))
        roles.append(role(name, replicas=replicas, **made))
    return draw(st.permutations(roles))


@st.composite
def good_tasksets(draw: st.DrawFn) -> Json:
    roles = draw(good_roles())
    optional: dict[str, st.SearchStrategy[Any]] = {
        "retryPolicy": _retry,
        "suspend": st.booleans(),
        "queue": st.text(max_size=20),
        "priorityClassName": st.text(max_size=20),
        "minAvailable": st.integers(1, sum(role["replicas"] for role in roles)),
        "activeDeadlineSeconds": st.integers(1, facts.INT32_MAX),
        "ttlSecondsAfterFinished": _counts,
        "podRetention": st.sampled_from(["All", "Failed", "None"]),
    }
    return job(*roles, name=draw(_names), **draw(st.fixed_dictionaries({}, optional=optional)))


@settings(max_examples=50, deadline=None)
@given(good_tasksets())
def test_every_taskset_within_the_rules_is_accepted_and_may_stay_as_it_is(obj: Json) -> None:
    assert said(obj) == []
    assert validation.validate_update(obj, defaults.with_defaults(obj), None) == []
