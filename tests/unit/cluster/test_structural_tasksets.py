"""Our own definition: TaskSets get the answer here that a real server gives, offline and for every known case."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from octarbiter.api import crd, defaults
from octarbiter.cluster.apiserver import structural
from octarbiter.testing import taskset_cases
from octarbiter.testing.taskset_cases import job, role

TYPE = structural.parse(crd.render()["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
Json = dict[str, Any]

# What is said when rules were skipped because a type was wrong or a field missing.
SKIPPED = "<nil>"


def written(obj: Json, old: Json | None = None) -> tuple[Json, list[str], set[str]]:
    """As stored, the unknown fields, and the fields that are to blame."""
    new = copy.deepcopy(obj)
    unknown = structural.prune(new, TYPE)
    structural.default(new, TYPE)
    blamed = {problem.field for problem in structural.problems_of(new, TYPE, old)}
    return new, unknown, blamed - {SKIPPED}


# Whether a name is a name is asked of every kind, not of schemas.
BAD = [bad for bad in taskset_cases.BAD if bad.taskset["metadata"]["name"].islower()]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.sentence)
def test_a_bad_taskset_is_refused_with_each_field_named(bad: taskset_cases.Bad) -> None:
    _, unknown, blamed = written(bad.taskset)

    assert (set(unknown) if bad.is_strict else blamed) == set(bad.server_fields)


@pytest.mark.parametrize("good", taskset_cases.GOOD.values(), ids=taskset_cases.GOOD.keys())
def test_a_good_taskset_is_stored_with_the_defaults_we_would_write(good: Json) -> None:
    stored, unknown, blamed = written(good)

    assert (unknown, blamed) == ([], set())
    assert stored["spec"] == defaults.with_defaults(good)["spec"]


@pytest.mark.parametrize("change", taskset_cases.CHANGES, ids=lambda change: change.sentence)
def test_a_change_is_refused_with_the_fields_that_must_not_change_or_else_accepted(
    change: taskset_cases.Change,
) -> None:
    before, _, _ = written(change.before)
    # The status is not part of such a write: it stays what it was.
    status = {"status": change.status} if change.status else {}

    _, _, blamed = written({**change.after, **status}, {**before, **status})

    assert blamed == set(change.server_fields)


def test_the_largest_taskset_stays_within_the_budget_of_its_rules() -> None:
    names = [f"role-{number}" for number in range(32)]
    roles = [role(name, replicas=3, dependsOn=names[:index][-8:]) for index, name in enumerate(names)]

    _, _, blamed = written(job(*roles))

    assert blamed == set()
