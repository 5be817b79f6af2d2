"""Events as a real API server keeps and kubectl shows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from octarbiter.api.core_kinds import ObjectReference
from octarbiter.runtime import client as clients
from octarbiter.runtime import events, kubeconfig, telemetry
from octarbiter.testing.kubernetes.bed import Testbed


class Bench:
    def __init__(self, bed: Testbed, namespace: str, client: clients.Client) -> None:
        self.bed = bed
        self.namespace = namespace
        self.metrics = telemetry.Metrics()
        self.recorder = events.Recorder(client, component="octarbiter-test", instance="i-1", metrics=self.metrics)
        self.recorder.start()
        made = bed.control_plane.request(
            "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "job"}}
        )
        self.job = ObjectReference(
            api_version="v1", kind="ConfigMap", namespace=namespace, name="job", uid=made["metadata"]["uid"]
        )

    def stored(self, namespace: str | None = None) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{namespace or self.namespace}/events"
        items: list[dict[str, Any]] = self.bed.control_plane.request("GET", path)["items"]
        return [item for item in items if item["source"].get("component") == "octarbiter-test"]

    def counted(self, outcome: str) -> float:
        return self.metrics.registry.get_sample_value("octarbiter_events_total", {"outcome": outcome}) or 0.0


async def until(what: Callable[[], bool]) -> None:
    for _ in range(1000):
        if what():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


@pytest.fixture
async def bench(bed: Testbed, namespace: str) -> AsyncIterator[Bench]:
    connection = kubeconfig.load(str(bed.control_plane.kubeconfig))
    async with clients.Client(connection) as client:
        made = Bench(bed, namespace, client)
        yield made
        await made.recorder.stop()


async def test_kubectl_shows_an_event_with_its_count(bench: Bench) -> None:
    bench.recorder.record(bench.job, "Warning", "QuotaExceeded", "2 of 4 pods refused")
    await until(lambda: bench.counted("created") == 1)
    for _ in range(3):
        bench.recorder.record(bench.job, "Warning", "QuotaExceeded", "2 of 4 pods refused")
    await until(lambda: bench.counted("updated") == 1)

    (event,) = bench.stored()
    assert event["count"] == 4
    assert event["metadata"]["name"].startswith("job.")
    assert event["reportingComponent"] == "octarbiter-test"
    assert event["reportingInstance"] == "i-1"
    assert event["firstTimestamp"] <= event["lastTimestamp"]
    kubectl = bench.bed.control_plane.kubectl
    assert "2 of 4 pods refused" in kubectl("-n", bench.namespace, "describe", "configmap", "job").stdout
    assert "(x4 over" in kubectl("-n", bench.namespace, "events", "--for", "configmap/job").stdout


async def test_similar_events_are_combined_on_the_server(bench: Bench) -> None:
    for number in range(13):
        bench.recorder.record(bench.job, "Normal", "Created", f"created pod {number}")
        await until(lambda number=number: bench.counted("created") + bench.counted("updated") == number + 1)
    stored = bench.stored()
    assert len(stored) == 11
    (combined,) = [event for event in stored if event["message"].startswith("(combined")]
    assert combined["message"] == "(combined from similar events): created pod 12"
    assert combined["count"] == 3


async def test_an_event_somebody_deleted_is_written_anew(bench: Bench) -> None:
    bench.recorder.record(bench.job, "Normal", "Created", "created")
    await until(lambda: bench.counted("created") == 1)
    bench.bed.control_plane.kubectl("-n", bench.namespace, "delete", "events", "--all")
    assert bench.stored() == []
    bench.recorder.record(bench.job, "Normal", "Created", "created")
    await until(lambda: bench.counted("created") == 2)
    assert [event["count"] for event in bench.stored()] == [2]


async def test_events_of_cluster_wide_objects_lie_in_the_default_namespace(bench: Bench) -> None:
    node = ObjectReference(api_version="v1", kind="Node", name="fake-0", uid=f"uid-{bench.namespace}")
    bench.recorder.record(node, "Normal", "Seen", "seen")
    await until(lambda: bench.counted("created") == 1)
    (event,) = [item for item in bench.stored("default") if item["involvedObject"]["uid"] == node.uid]
    assert "namespace" not in event["involvedObject"]


async def test_an_event_in_a_namespace_that_is_gone_is_counted_as_failed_and_stops_nothing(bench: Bench) -> None:
    gone = ObjectReference(api_version="v1", kind="ConfigMap", namespace="no-such-namespace", name="x", uid="u")
    bench.recorder.record(gone, "Normal", "Created", "created")
    bench.recorder.record(bench.job, "Normal", "Created", "created")
    await until(lambda: bench.counted("created") == 1)
    assert bench.counted("failed") == 1


async def test_stopping_writes_everything_that_waits(bench: Bench) -> None:
    for number in range(20):
        bench.recorder.record(bench.job, "Normal", f"Reason{number}", "x" * 5000)
    await bench.recorder.stop(timeout_s=10)
    assert len(bench.stored()) == 20
