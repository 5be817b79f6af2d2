"""How much a pod asks for: what runs together is added, what runs one after the other is not."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from octarbiter.api import codec, pod_requests
from octarbiter.api.workpod import WorkPod

Json = dict[str, Any]


def pod(requests: Json | None = None, **spec: Any) -> WorkPod:
    container = {"name": "main", "resources": {"requests": requests or {}}}
    return codec.from_json({"metadata": {"uid": "u"}, "spec": {"containers": [container], **spec}}, WorkPod)


def sidecar(**requests: str) -> Json:
    return {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": requests}}


def test_containers_are_added() -> None:
    containers = [{"name": f"c{n}", "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": 1}}} for n in range(3)]

    assert pod_requests.requests(pod(containers=containers).spec) == {"cpu": 1500, "nvidia.com/gpu": 3}


def test_the_first_init_container_may_need_more_than_all_that_run_later() -> None:
    big = {"name": "big", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
    wanting = pod({"cpu": "1"}, initContainers=[sidecar(cpu="500m"), big], overhead={"cpu": "100m"})

    assert pod_requests.requests(wanting.spec) == {"cpu": 3600, "memory": 2**30}


def test_sidecars_run_beside_the_containers() -> None:
    assert pod_requests.requests(pod({"cpu": "1"}, initContainers=[sidecar(cpu="500m")]).spec) == {"cpu": 1500}


def test_what_a_pod_asks_for_as_a_whole_counts_instead_of_what_its_containers_ask_for() -> None:
    whole = {"requests": {"cpu": "2"}}

    assert pod_requests.requests(pod({"cpu": "1", "memory": "1"}, resources=whole).spec) == {"cpu": 2000, "memory": 1}


def test_exact_sums_are_rounded_up_once_and_zeros_left_out() -> None:
    halves = [{"name": f"c{n}", "resources": {"requests": {"cpu": "0.5m", "memory": "0"}}} for n in range(3)]

    assert pod_requests.requests(pod(containers=halves).spec) == {"cpu": 2}
    assert pod_requests.exact_requests(pod(containers=halves).spec) == {"cpu": 1_500_000, "memory": 0}


def test_limits_are_summed_like_requests() -> None:
    containers = [{"name": f"c{n}", "resources": {"limits": {"cpu": 2}}} for n in range(2)]

    assert pod_requests.exact_limits(pod(containers=containers).spec) == {"cpu": 4 * 10**9}


@given(st.text(max_size=20) | st.integers() | st.floats(allow_nan=False))
def test_what_is_no_quantity_counts_for_nothing_and_stops_nobody(value: str | int | float) -> None:
    assert pod_requests.requests(pod({"cpu": value, "memory": "1Gi"}).spec)["memory"] == 2**30


def test_a_pod_is_gated_terminating_or_over() -> None:
    gated = pod(schedulingGates=[{"name": "arbitrator.incubator.k8s.io/queue"}])
    going = codec.from_json({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, WorkPod)
    over = codec.from_json({"status": {"phase": "Failed"}}, WorkPod)

    assert [each.is_gated for each in (gated, going, over)] == [True, False, False]
    assert [each.is_terminating for each in (gated, going, over)] == [False, True, False]
    assert [each.is_terminal for each in (gated, going, over)] == [False, False, True]
