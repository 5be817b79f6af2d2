"""A whole process on a real API server: how it starts, shows its state and ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from octarbiter.testing.kubernetes import connection
from octarbiter.testing.kubernetes.bed import Testbed

PROCESS = '''
import asyncio, sys
from octarbiter.api.scheme import CONFIGMAPS
from octarbiter.runtime import controller, informer, kubeconfig, manager, settings

file, namespace, seconds, *flags = sys.argv[1:]

def assemble(whole):
    async def reconcile(key):
        """Takes its time, then writes."""
        await whole.client.create(CONFIGMAPS, namespace, {"metadata": {"name": "begun"}})
        await asyncio.sleep(float(seconds))
        async with whole.gate.slot(key):
            await whole.client.create(CONFIGMAPS, namespace, {"metadata": {"name": "ended"}})

    one = controller.Controller("one", reconcile, workers=whole.settings.workers, metrics=whole.metrics)
    one.queue.add("key")
    whole.controllers.append(one)
    whole.informers.append(informer.Informer(whole.client, CONFIGMAPS, namespace=namespace))

given = dict(flag.split("=") for flag in flags)
chosen = settings.parse({"lease_namespace": namespace, "health_address": "127.0.0.1:0", **given}, {})
sys.exit(manager.main(chosen, kubeconfig.load(file), assemble))
'''


class Bench:
    def __init__(self, bed: Testbed, namespace: str, log: Path) -> None:
        self.bed = bed
        self.namespace = namespace
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, seconds: float, *flags: str) -> subprocess.Popen[bytes]:
        file = str(self.bed.control_plane.kubeconfig)
        with self.log.open("wb") as log:
            argv = [sys.executable, "-c", PROCESS, file, self.namespace, str(seconds), *flags]
            self.process = subprocess.Popen(argv, stderr=log)
        return self.process

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def said(self, message: str) -> bool:
        return any(line["message"] == message for line in self.lines())

    def exists(self, path: str) -> bool:
        try:
            self.bed.control_plane.request("GET", path)
        except connection.ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def wrote(self, name: str) -> bool:
        return self.exists(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}")

    def wait(self, what: Callable[[], Any]) -> None:
        start = time.monotonic()
        while not what():
            assert time.monotonic() - start < 30, self.log.read_text()
            time.sleep(0.05)

    def get(self, path: str) -> tuple[int, str]:
        (serving,) = [line for line in self.lines() if line["message"] == "serving health and metrics"]
        ((host, port),) = serving["addresses"]
        assert host == "127.0.0.1"
        try:
            with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture
def bench(bed: Testbed, namespace: str, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(bed, namespace, tmp_path / "log")
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.wait()


def test_a_process_that_works_is_ready_and_tells_its_figures(bench: Bench) -> None:
    bench.start(0)
    bench.wait(lambda: bench.wrote("ended"))
    assert bench.get("/readyz") == (200, "ok")
    assert bench.get("/livez") == (200, "ok")
    status, text = bench.get("/metrics")
    assert status == 200
    for line in (
        f'octarbiter_leader{{lease="{bench.namespace}/octarbiter-controller"}} 1.0',
        'octarbiter_requests_total{code="201",resource="configmaps",verb="create"} 2.0',
        'octarbiter_reconcile_duration_seconds_count{controller="one",outcome="done"} 1.0',
        'octarbiter_queue_adds_total{queue="one"} 1.0',
        "octarbiter_writes_allowed 32.0",
        "process_resident_memory_bytes",
    ):
        assert line in text


def test_a_process_that_sees_nothing_is_alive_but_not_ready_and_does_not_act(bench: Bench, tmp_path: Path) -> None:
    away = tmp_path / "kubeconfig"
    away.write_text(
        json.dumps(
            {
                "current-context": "away",
                "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}],
                "contexts": [{"name": "away", "context": {"cluster": "away", "user": "nobody"}}],
                "users": [{"name": "nobody", "user": {}}],
            }
        )
    )
    with bench.log.open("wb") as log:
        argv = [sys.executable, "-c", PROCESS, str(away), bench.namespace, "0"]
        process = bench.process = subprocess.Popen(argv, stderr=log)
    bench.wait(lambda: bench.said("the watch broke, trying again"))
    assert bench.get("/readyz") == (503, "informer-configmaps failed\n")
    assert bench.get("/livez") == (200, "ok")
    process.terminate()
    assert process.wait(timeout=10) == 0


def test_a_first_signal_lets_work_in_progress_end(bench: Bench) -> None:
    process = bench.start(2)
    bench.wait(lambda: bench.wrote("begun"))
    process.terminate()
    assert process.wait(timeout=15) == 0
    assert bench.wrote("ended")
    assert bench.said("released the lease")


def test_a_second_signal_ends_the_process_at_once(bench: Bench) -> None:
    process = bench.start(3600)
    bench.wait(lambda: bench.wrote("begun"))
    process.send_signal(signal.SIGINT)
    bench.wait(lambda: bench.said("stopping; a second signal stops at once"))
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=5) == 1


def test_without_election_there_is_no_lease(bench: Bench) -> None:
    process = bench.start(0, "leader_elect=false")
    bench.wait(lambda: bench.wrote("ended"))
    process.terminate()
    assert process.wait(timeout=10) == 0
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{bench.namespace}/leases/octarbiter-controller"
    assert not bench.exists(lease)
