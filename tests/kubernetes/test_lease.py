"""Leader election on a real API server: of processes that are killed, stopped and ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from octarbiter.runtime import client as clients
from octarbiter.runtime import kubeconfig, leader, telemetry
from octarbiter.testing.kubernetes.bed import Testbed

PROCESS = '''
import sys
from octarbiter.api.scheme import CONFIGMAPS
from octarbiter.runtime import controller, informer, kubeconfig, manager, settings

file, namespace, name = sys.argv[1:]

def assemble(whole):
    written = 0

    async def reconcile(key):
        """As long as it may, this process leaves numbered traces."""
        nonlocal written
        trace = {"metadata": {"name": f"{name}-{written}", "labels": {"by": name}}}
        async with whole.gate.slot(key):
            await whole.client.create(CONFIGMAPS, namespace, trace)
        written += 1
        return 0.05

    seen = informer.Informer(whole.client, CONFIGMAPS, namespace=namespace)
    traces = controller.Controller("traces", reconcile, workers=1, metrics=whole.metrics)
    traces.queue.add("trace")
    whole.informers.append(seen)
    whole.controllers.append(traces)

chosen = settings.parse({"lease_namespace": namespace, "health_address": "", "log_format": "json"}, {})
sys.exit(manager.main(chosen, kubeconfig.load(file), assemble))
'''


class Cluster:
    def __init__(self, bed: Testbed, namespace: str, directory: Path) -> None:
        self.bed = bed
        self.namespace = namespace
        self.directory = directory
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        with self.log(name).open("wb") as log:
            argv = [sys.executable, "-c", PROCESS, str(self.bed.control_plane.kubeconfig), self.namespace, name]
            self.processes[name] = subprocess.Popen(argv, stderr=log)
        return self.processes[name]

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def messages(self, name: str) -> list[str]:
        return [json.loads(line)["message"] for line in self.log(name).read_text().splitlines()]

    def traces(self, name: str) -> list[int]:
        """The revisions at which this process wrote."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps?labelSelector=by%3D{name}"
        items = self.bed.control_plane.request("GET", path)["items"]
        return sorted(int(item["metadata"]["resourceVersion"]) for item in items)

    def lease(self) -> dict[str, Any]:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/octarbiter-controller"
        spec: dict[str, Any] = self.bed.control_plane.request("GET", path)["spec"]
        return spec

    def wait(self, what: Callable[[], Any], seconds: float = 30.0) -> float:
        """How long it took."""
        start = time.monotonic()
        while not what():
            logs = {name: self.log(name).read_text() for name in self.processes}
            assert time.monotonic() - start < seconds, logs
            time.sleep(0.05)
        return time.monotonic() - start


@pytest.fixture
def cluster(bed: Testbed, namespace: str, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(bed, namespace, tmp_path)
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait()


def test_after_sigkill_of_the_leader_the_stand_by_takes_over_within_15_seconds(cluster: Cluster) -> None:
    one = cluster.start("one")
    cluster.wait(lambda: cluster.traces("one"))
    cluster.start("two")
    cluster.wait(lambda: "standing by" in cluster.messages("two"))

    one.kill()
    cluster.wait(lambda: cluster.traces("two"), seconds=15)
    assert max(cluster.traces("one")) < min(cluster.traces("two"))
    assert cluster.lease()["leaseTransitions"] == 1


def test_a_leader_that_is_asked_to_stop_hands_over_at_once(cluster: Cluster) -> None:
    one = cluster.start("one")
    cluster.wait(lambda: cluster.traces("one"))
    cluster.start("two")
    cluster.wait(lambda: "standing by" in cluster.messages("two"))

    one.terminate()
    assert one.wait(timeout=10) == 0
    cluster.wait(lambda: cluster.traces("two"), seconds=6)
    assert max(cluster.traces("one")) < min(cluster.traces("two"))
    assert "released the lease" in cluster.messages("one")


def test_a_leader_that_was_stalled_writes_nothing_more_and_exits(cluster: Cluster) -> None:
    one = cluster.start("one")
    cluster.wait(lambda: cluster.traces("one"))
    cluster.start("two")
    cluster.wait(lambda: "standing by" in cluster.messages("two"))

    os.kill(one.pid, signal.SIGSTOP)
    cluster.wait(lambda: cluster.traces("two"), seconds=15)
    os.kill(one.pid, signal.SIGCONT)
    assert one.wait(timeout=10) == 1
    assert max(cluster.traces("one")) < min(cluster.traces("two"))
    assert "lost the lease" in cluster.messages("one")


def test_a_stand_by_that_is_asked_to_stop_leaves_the_lease_alone(cluster: Cluster) -> None:
    cluster.start("one")
    cluster.wait(lambda: cluster.traces("one"))
    holder = cluster.lease()["holderIdentity"]
    two = cluster.start("two")
    cluster.wait(lambda: "standing by" in cluster.messages("two"))
    two.send_signal(signal.SIGINT)
    assert two.wait(timeout=10) == 0
    assert cluster.lease()["holderIdentity"] == holder
    assert cluster.traces("two") == []


async def test_of_many_candidates_on_a_real_server_one_leads_and_hands_over(bed: Testbed, namespace: str) -> None:
    connection = kubeconfig.load(str(bed.control_plane.kubeconfig))
    timing = leader.Timing(lease_duration_s=4.0, renew_deadline_s=3.0, retry_period_s=0.2)
    leading: list[str] = []
    history: list[str] = []
    turns = asyncio.Condition()

    async with clients.Client(connection) as client:

        async def candidate(name: str) -> None:
            finish = asyncio.Event()

            async def work() -> None:
                assert leading == []
                leading.append(name)
                async with turns:
                    history.append(name)
                    turns.notify_all()
                finishes[name] = finish
                await finish.wait()
                leading.remove(name)

            def lost() -> None:
                raise AssertionError(f"{name} lost the lease")

            elector = leader.Elector(
                client,
                namespace=namespace,
                name="race",
                timing=timing,
                metrics=telemetry.Metrics(),
                identity=name,
            )
            await elector.run(work, lost)

        finishes: dict[str, asyncio.Event] = {}
        names = [f"candidate-{number}" for number in range(5)]
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(candidate(name))
            for turn in range(5):
                async with turns:
                    await turns.wait_for(lambda turn=turn: len(history) == turn + 1)
                await asyncio.sleep(0.5)  # the others try meanwhile
                assert leading == [history[-1]]
                finishes[history[-1]].set()
    assert sorted(history) == names
