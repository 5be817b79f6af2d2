"""How long do 15,000 claims take from creation to their end, through a real API server, beside Kueue?

    python benchmarks/claims.py [--scale 1.0] [--no-peer] [--json FILE]

Kueue's baseline: 30 queues, each with 350 small claims (1 CPU, 200 ms, one every 100 ms, priority 50), 100 medium ones
(5 CPU, 500 ms, every 500 ms, 100) and 50 large ones (20 CPU, 1 s, every 1.2 s, 200); 20 CPU are each queue's own, and
it may have up to 100. A claim that is allocated runs for its time and is then deleted (Kueue's runner marks it
finished); one that loses its units to a claim of higher priority begins anew. No schedule can be faster than the work
divided by the CPUs, 66 s.

Ours: `octo arbitrator` and the client that creates the claims, beside kube-apiserver and etcd. Then Kueue's own runner
with its minimal manager, on an API server of its own. CPU seconds and peak memory of each process are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

import peers
from octarbiter.api import crd, kinds, scheme
from octarbiter.runtime import client as clients
from octarbiter.runtime import informer, kubeconfig
from octarbiter.testing.kubernetes import build, controlplane

QUEUES = 30
CPU_PER_QUEUE = 20
MOST_PER_QUEUE = 100
CONNECTIONS = 48


class Kind(msgspec.Struct, frozen=True):
    name: str
    count: int
    every_s: float
    runs_s: float
    cpu: int
    priority: int


KINDS = (
    Kind("small", 350, 0.1, 0.2, 1, 50),
    Kind("medium", 100, 0.5, 0.5, 5, 100),
    Kind("large", 50, 1.2, 1.0, 20, 200),
)


def claim(name: str, queue: str, kind: Kind) -> dict[str, Any]:
    return {
        "apiVersion": scheme.QUEUEJOBS.api_version,
        "kind": "QueueJob",
        "metadata": {"name": name},
        "spec": {
            "queue": queue,
            "priority": kind.priority,
            "resourceunit": {"resources": {"cpu": str(kind.cpu)}},
            "resourceno": 1,
        },
    }


def queue(name: str) -> dict[str, Any]:
    return {
        "apiVersion": scheme.QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            "weight": 1,
            "guarantee": {"resources": {"cpu": str(CPU_PER_QUEUE)}},
            "capability": {"resources": {"cpu": str(MOST_PER_QUEUE)}},
        },
    }


def node() -> dict[str, Any]:
    room = {"cpu": str(QUEUES * CPU_PER_QUEUE), "memory": "1Ti", "pods": "1000"}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}, "status": status}


class Life(msgspec.Struct):
    kind: Kind
    created: float = 0.0
    allocated: float | None = None
    is_over: bool = False
    lost: int = 0


class Users:
    """Create claims, let them run when they are allocated, delete them."""

    def __init__(self, client: clients.Client, scale: float) -> None:
        self._client, self._scale = client, scale
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self.lives: dict[str, Life] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._all_ended = asyncio.Event()
        self.planned = QUEUES * sum(self._count(kind) for kind in KINDS)
        self._ended = 0

    def _count(self, kind: Kind) -> int:
        return max(1, round(kind.count * self._scale))

    async def work(self) -> float:
        watched = informer.Informer(self._client, scheme.QUEUEJOBS, on_change=self._changed)
        watching = asyncio.create_task(watched.run())
        await watched.synced.wait()
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(QUEUES):
                for kind in KINDS:
                    group.create_task(self._create(number, kind))
            showing = asyncio.create_task(self._show(began))
            await self._all_ended.wait()
        showing.cancel()
        watching.cancel()
        await asyncio.gather(watching, showing, return_exceptions=True)
        return time.monotonic() - began

    async def _create(self, number: int, kind: Kind) -> None:
        began = time.monotonic()
        for index in range(self._count(kind)):
            # By the clock, not by pauses: a slow server must not thin out the load.
            await asyncio.sleep(max(0.0, began + index * kind.every_s - time.monotonic()))
            name, namespace = f"{kind.name}-{index}", f"queue-{number}"
            async with self._slots:
                self.lives[f"{namespace}/{name}"] = Life(kind, time.monotonic())
                await self._client.create(scheme.QUEUEJOBS, namespace, claim(name, namespace, kind))

    def _changed(self, key: str, _old: Any, new: Any) -> None:
        life, running = self.lives[key], self._running.get(key)
        has_all = new is not None and new.status.allocated_no >= 1
        if has_all and running is None:
            life.allocated = life.allocated or time.monotonic()
            self._running[key] = asyncio.create_task(self._run(key, life))
        elif not has_all and running is not None and not life.is_over:
            self._running.pop(key).cancel()
            life.lost += 1

    async def _run(self, key: str, life: Life) -> None:
        await asyncio.sleep(life.kind.runs_s)
        life.is_over = True
        namespace, _, name = key.partition("/")
        async with self._slots:
            await self._client.delete(scheme.QUEUEJOBS, namespace, name)
        self._ended += 1
        if self._ended == self.planned:
            self._all_ended.set()

    async def _show(self, began: float) -> None:
        while True:
            await asyncio.sleep(10.0)
            print(f"  {time.monotonic() - began:.0f} s: {self._ended} of {self.planned} have ended", flush=True)


@contextmanager
def arbitrator(config: Path, log: Path) -> Iterator[int]:
    argv = [sys.executable, "-m", "octarbiter.cli.main", "arbitrator", "--kubeconfig", str(config)]
    argv += ["--health-address=", "--log-format=json"]
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


async def begun(client: clients.Client) -> None:
    """The arbitrator has looked at all queues once."""
    waiting = {f"queue-{number}/queue-{number}" for number in range(QUEUES)}
    seen = asyncio.Event()

    def changed(key: str, _old: Any, new: Any) -> None:
        if new is not None and new.status.conditions:
            waiting.discard(key)
        if not waiting:
            seen.set()

    watching = asyncio.create_task(informer.Informer(client, scheme.QUEUES, on_change=changed).run())
    await seen.wait()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def ours(plane: controlplane.ControlPlane, scale: float) -> dict[str, Any]:
    async with clients.Client(kubeconfig.load(str(plane.kubeconfig)), concurrency=CONNECTIONS) as client:
        await client.create(scheme.NODES, "", node())
        await client.merge_patch(scheme.NODES, "", "node", {"spec": {"taints": None}})
        for number in range(QUEUES):
            name = f"queue-{number}"
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await client.create(scheme.NAMESPACES, "", body)
            await client.create(scheme.QUEUES, name, queue(name))
        users = Users(client, scale)
        with arbitrator(plane.kubeconfig, plane.directory / "octo-arbitrator.log") as pid:
            await begun(client)
            pids = {**plane.pids, "octo arbitrator": pid, "users": os.getpid()}
            cpu = {name: cpu_s(number) for name, number in pids.items()}
            wall = await users.work()
            spent = {name: round(cpu_s(number) - cpu[name], 1) for name, number in pids.items()}
            memory = {name: round(peak_mb(number)) for name, number in pids.items()}
    work = sum(life.kind.cpu * life.kind.runs_s for life in users.lives.values())
    waits = {
        kind.name: [
            life.allocated - life.created for life in users.lives.values() if life.kind is kind and life.allocated
        ]
        for kind in KINDS
    }
    return {
        "wall_s": round(wall, 1),
        "bound_s": round(work / (QUEUES * CPU_PER_QUEUE), 1),
        "quota_used": round(work / (QUEUES * CPU_PER_QUEUE) / wall, 3),
        "waits_s": {
            name: {
                "mean": round(sum(found) / max(1, len(found)), 2),
                "p50": round(percentile(found, 0.5), 2),
                "p95": round(percentile(found, 0.95), 2),
            }
            for name, found in waits.items()
        },
        "lost": sum(life.lost for life in users.lives.values()),
        "cpu_s": spent,
        "peak_mb": memory,
    }


def kueues(scale: float) -> dict[str, Any]:
    peer = peers.kueue()
    assets = build.ensure(("etcd", "kube-apiserver", "kubectl"))["etcd"].parent
    with tempfile.TemporaryDirectory() as directory:
        generator = Path(directory) / "generator.yaml"
        plan = yaml.safe_load((peer.source / peer.generator).read_text())
        for cohort in plan["cohorts"]:
            for queues in cohort["queuesSets"]:
                for claims in queues["workloadsSets"]:
                    claims["count"] = max(1, round(claims["count"] * scale))
        generator.write_text(yaml.safe_dump(plan))
        argv = [str(peer.runner), "--o", directory, "--crds=config/components/crd/bases"]
        argv += [f"--generatorConfig={generator}", f"--minimalKueue={peer.minimal}", "--timeout=20m"]
        log = Path(directory) / "log"
        with log.open("wb") as output:
            environment = os.environ | {"KUBEBUILDER_ASSETS": str(assets)}
            done = subprocess.run(argv, cwd=peer.source, env=environment, stdout=output, stderr=output)
        if done.returncode:
            raise SystemExit(f"Kueue's runner failed:\n{log.read_text()[-3000:]}")
        summary = yaml.safe_load((Path(directory) / "summary.yaml").read_text())
        process = yaml.safe_load((Path(directory) / "minimalkueue.stats.yaml").read_text())
    (queues,) = summary["clusterQueueClasses"].values()
    return {
        "wall_s": round(process["wallMs"] / 1000, 1),
        "quota_used": round(queues["cpuAverageUsage"] / queues["nominalQuota"], 3),
        "waits_s": {
            name: {"mean": round(kind["averageTimeToAdmissionMs"] / 1000, 2)}
            for name, kind in summary["workloadClasses"].items()
        },
        "lost": sum(kind["totalEvictions"] for kind in summary["workloadClasses"].values()),
        "cpu_s": {"minimalkueue": round((process["userMs"] + process["sysMs"]) / 1000, 1)},
        "peak_mb": {"minimalkueue": round(process["maxrss"] / 1024)},
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    lines = [
        f"{'':<12}{'wall s':>8}{'quota':>8}{'lost':>8}"
        + "".join(f"{kind.name + ' mean/p50/p95 s':>28}" for kind in KINDS)
    ]
    for name, row in rows.items():
        waits = [row["waits_s"].get(kind.name, {}) for kind in KINDS]
        cells = [
            "/".join(f"{wait[part]:.1f}" if part in wait else "-" for part in ("mean", "p50", "p95")) for wait in waits
        ]
        lines.append(
            f"{name:<12}{row['wall_s']:>8}{row['quota_used']:>8.0%}{row['lost']:>8}"
            + "".join(f"{cell:>28}" for cell in cells)
        )
        lines += [
            f"  {process}: {row['cpu_s'][process]} CPU s, {row['peak_mb'][process]} MB" for process in row["cpu_s"]
        ]
    mine = rows["octarbiter"]
    lines.append(f"octarbiter took {mine['wall_s'] / mine['bound_s']:.2f} times the bound of {mine['bound_s']} s")
    if "kueue" in rows:
        lines.append(f"and {mine['wall_s'] / rows['kueue']['wall_s']:.2f} times the time of Kueue {peers.KUEUE}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the claims, for a quick look")
    parser.add_argument("--no-peer", action="store_true", help="without Kueue")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    with controlplane.ControlPlane(controller_manager=False, scheduler=False) as plane:
        for kind in kinds.INSTALLED:
            plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(crd.render(kind)))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
        print("octo arbitrator ...", flush=True)
        rows["octarbiter"] = asyncio.run(ours(plane, args.scale))
    if not args.no_peer:
        print("Kueue ...", flush=True)
        rows["kueue"] = kueues(args.scale)
    print(table(rows))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
