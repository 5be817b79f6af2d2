"""Our own definitions: objects get the answer here that a real server gives, offline and for every known case."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from octarbiter.api import crd, defaults, kinds
from octarbiter.cluster.apiserver import structural
from octarbiter.testing import arbitrator_cases, taskset_cases
from octarbiter.testing.cases import Bad, Change
from octarbiter.testing.taskset_cases import job, role

TYPES = {
    kind.definition: structural.parse(crd.render(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for kind in kinds.ALL
}
Json = dict[str, Any]

# What is said when rules were skipped because a type was wrong or a field missing.
SKIPPED = "<nil>"


def written(obj: Json, old: Json | None = None) -> tuple[Json, list[str], set[str]]:
    """As stored, the unknown fields, and the fields that are to blame."""
    new = copy.deepcopy(obj)
    kind = kinds.meant(obj)
    assert kind is not None
    type_ = TYPES[kind.definition]
    unknown = structural.prune(new, type_)
    structural.default(new, type_)
    blamed = {problem.field for problem in structural.problems_of(new, type_, old)}
    return new, unknown, blamed - {SKIPPED}


# Whether a name is a name is asked of every kind, not of schemas.
BAD = [bad for bad in (*taskset_cases.BAD, *arbitrator_cases.BAD) if bad.obj["metadata"]["name"].islower()]
GOOD = taskset_cases.GOOD | arbitrator_cases.GOOD
CHANGES = [*taskset_cases.CHANGES, *arbitrator_cases.CHANGES]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.sentence)
def test_a_bad_object_is_refused_with_each_field_named(bad: Bad) -> None:
    _, unknown, blamed = written(bad.obj)

    assert (set(unknown) if bad.is_strict else blamed) == set(bad.server_fields)


@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD.keys())
def test_a_good_object_is_stored_with_the_defaults_we_would_write(good: Json) -> None:
    stored, unknown, blamed = written(good)

    assert (unknown, blamed) == ([], set())
    assert stored["spec"] == defaults.with_defaults(good)["spec"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.sentence)
def test_a_change_is_refused_with_the_fields_that_must_not_change_or_else_accepted(
    change: Change,
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
