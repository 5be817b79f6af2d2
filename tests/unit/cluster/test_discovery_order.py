"""In which order clients see the groups: of two kinds with one name they take the first."""

from __future__ import annotations

from itertools import permutations

import pytest

from octarbiter.cluster.apiserver import models
from octarbiter.cluster.apiserver.catalogue import Catalogue, Model, Served
from octarbiter.cluster.apiserver.resources import Resource

GROUPS = ("arbitrator.incubator.k8s.io", "example.org", "octopus.openi.pcl.cn")


def served(group: str, model: Model) -> Served:
    resource = Resource(
        group=group,
        version="v1",
        plural="tasksets",
        singular="taskset",
        kind="TaskSet",
        list_kind="TaskSetList",
        namespaced=True,
    )
    return Served(resource=resource, model=model)


@pytest.mark.parametrize("order", list(permutations(GROUPS)))
def test_the_usual_taskset_comes_before_the_older_one_however_they_were_defined(order: tuple[str, ...]) -> None:
    catalogue = Catalogue(models.built_in({}))
    built_in = [group.name for group in catalogue.groups()]
    model = catalogue.all()[0].model

    for group in order:
        catalogue.define(f"tasksets.{group}", [served(group, model)])

    found = [group.name for group in catalogue.groups()]
    assert found == [*built_in, "octopus.openi.pcl.cn", "arbitrator.incubator.k8s.io", "example.org"]
