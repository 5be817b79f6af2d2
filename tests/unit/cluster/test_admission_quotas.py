"""What an object takes of a quota, and when there is no room."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from octarbiter.api.quantity import NANO, Quantity
from octarbiter.cluster.apiserver import kinds
from octarbiter.cluster.apiserver.admission import amounts, quotas

Json = dict[str, Any]
SERVICES = next(row for row in kinds.BUILT_IN if row.plural == "services")
JOBS = next(row for row in kinds.BUILT_IN if row.plural == "jobs")


def shown(found: amounts.Amounts) -> dict[str, str]:
    return {name: str(value) for name, value in sorted(found.items())}


def container(name: str, cpu: str, **more: Any) -> Json:
    return {"name": name, "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}, **more}


def quota(hard: dict[str, str], used: dict[str, str] | None = None) -> Json:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used or {}}}


def test_a_pod_takes_what_its_containers_take_together_or_one_init_container_alone() -> None:
    spec = {
        "initContainers": [container("first", "3"), container("beside", "1", restartPolicy="Always")],
        "containers": [container("a", "500m"), container("b", "250m")],
    }

    assert shown(quotas.needs(kinds.PODS, {"spec": spec})) == {
        "count/pods": "1",
        "cpu": "3",
        "limits.cpu": "3",
        "pods": "1",
        "requests.cpu": "3",
    }
    spec["initContainers"].pop(0)
    assert str(quotas.needs(kinds.PODS, {"spec": spec})["cpu"]) == "1750m"


def test_other_objects_take_their_number_and_what_is_special_about_them() -> None:
    balanced = {"spec": {"type": "LoadBalancer", "ports": [{"port": 1, "nodePort": 30000}, {"port": 2}]}}

    assert shown(quotas.needs(JOBS, {})) == {"count/jobs.batch": "1"}
    assert shown(quotas.needs(SERVICES, balanced)) == {
        "count/services": "1",
        "services": "1",
        "services.loadbalancers": "1",
        "services.nodeports": "1",
    }


def test_a_quota_nobody_has_counted_yet_lets_nothing_in() -> None:
    assert quotas.excess(quota({"pods": "1"}), {"pods": Quantity(NANO)}) == (
        "status unknown for quota: q, resources: pods"
    )


def test_a_quota_is_not_concerned_with_what_it_does_not_limit() -> None:
    assert quotas.excess(quota({"secrets": "0"}, {"secrets": "0"}), {"pods": Quantity(NANO)}) == ""


def test_a_count_that_is_lowered_keeps_what_it_cannot_know_of_yet() -> None:
    new, old = quota({}, {"pods": "2", "secrets": "1"}), quota({}, {"pods": "5", "secrets": "4"})
    quotas.keep(new, old, {"pods": Quantity(2 * NANO)})

    assert new["status"]["used"] == {"pods": "4", "secrets": "1"}


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(0, 12))
def test_nobody_ever_gets_more_than_there_is(wishes: list[int], limit: int) -> None:
    held = quota({"requests.cpu": str(limit)}, {"requests.cpu": "0"})
    granted = 0
    for wish in wishes:
        wanted = {"requests.cpu": Quantity(wish * NANO)}
        if not quotas.excess(held, wanted):
            quotas.charged(held, wanted)
            granted += wish

    assert granted <= limit
    assert amounts.parsed(held["status"]["used"])["requests.cpu"].nano == granted * NANO
