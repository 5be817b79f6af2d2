"""How fast do TaskSets go from created to finished, beside the raw limit of the same API server?

    python benchmarks/lifecycle.py [--only 1x5000] [--json FILE]

On one bed (real control plane, kube-scheduler, fake nodes) each size is run three times: *raw*, by a bare client that
creates the same pods and deletes each when it has finished; *least*, by a bare client that makes also the other objects
a TaskSet is promised to have (itself, control unit, Service, one status), knows everything in advance and decides
nothing; and by `octo controller` from TaskSets. Printed: replicas per second of all and the ratio to both limits, the
controller's writes per replica, CPU seconds and peak memory of every process. The last run submits 200 small TaskSets
behind one of 5,000 replicas and tells when they finish.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from octarbiter.api import crd, kinds, scheme
from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import names, objects
from octarbiter.runtime import client as clients
from octarbiter.runtime import informer, kubeconfig
from octarbiter.testing.kubernetes import controlplane, fakenodes, fakepods

SIZES = ((1, 5000), (100, 50), (1000, 2))
NODES, PODS_PER_NODE = 30, 250
DURATION = "1s"
CONNECTIONS = 32
WRITES = ("create", "update", "patch", "delete", "deletecollection")
TIMEOUT_S = 900.0


def template() -> dict[str, Any]:
    return {
        "metadata": {"annotations": {fakepods.DURATION: DURATION}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }


def taskset(name: str, replicas: int) -> dict[str, Any]:
    role = {"name": "worker", "replicas": replicas, "template": template()}
    return {
        "apiVersion": scheme.TASKSETS.api_version,
        "kind": "TaskSet",
        "metadata": {"name": name},
        "spec": {"roles": [role]},
    }


# --- the two ways


async def raw(client: clients.Client, namespace: str, count: int) -> float:
    """Seconds from the first create to the last pod's end, with nothing else to do."""
    gone = asyncio.Event()
    alive: set[str] = set()
    finished: asyncio.Queue[str] = asyncio.Queue()

    def changed(key: str, old: Any, new: Any) -> None:
        if new is None:
            alive.discard(key)
            if not alive and created == count:
                gone.set()
        elif new.status.phase in ("Succeeded", "Failed") and (old is None or old.status.phase != new.status.phase):
            finished.put_nowait(new.metadata.name)
        if new is not None:
            alive.add(key)

    created = 0
    numbers = iter(range(count))

    async def create() -> None:
        nonlocal created
        for number in numbers:
            body = {"apiVersion": "v1", "kind": "Pod", **template()}
            body["metadata"] = {**body["metadata"], "name": f"raw-{number}", "labels": {"raw": "yes"}}
            await client.create(scheme.PODS, namespace, body)
            created += 1

    async def delete() -> None:
        while True:
            await client.delete(scheme.PODS, namespace, await finished.get())

    pods = informer.Informer(client, scheme.PODS, namespace=namespace, label_selector="raw", on_change=changed)
    watching = asyncio.create_task(pods.run())
    await pods.synced.wait()
    start = time.monotonic()
    deleting = [asyncio.create_task(delete()) for _ in range(CONNECTIONS // 2)]
    await asyncio.gather(*(create() for _ in range(CONNECTIONS // 2)))
    async with asyncio.timeout(TIMEOUT_S):
        await gone.wait()
    elapsed = time.monotonic() - start
    for task in (watching, *deleting):
        task.cancel()
    return elapsed


async def least(client: clients.Client, namespace: str, many: int, replicas: int) -> float:
    """Seconds from the first create to the end of the last pod, when all that must be written is written once."""
    gone, finished = asyncio.Event(), asyncio.Queue[str]()
    left: dict[str, int] = {}
    alive: set[str] = set()
    made: dict[str, Any] = {}
    completed = 0

    def changed(key: str, old: Any, new: Any) -> None:
        if new is None:
            alive.discard(key)
            if completed == many and not alive:
                gone.set()
            return
        alive.add(key)
        if new.status.phase == "Succeeded" and (old is None or old.status.phase != new.status.phase):
            uid = new.metadata.labels[names.UID_LABEL]
            left[uid] -= 1
            if not left[uid]:
                finished.put_nowait(uid)

    numbers = iter(range(many))

    async def create() -> None:
        for number in numbers:
            told = await client.create(scheme.TASKSETS, namespace, taskset(f"least-{number}", replicas))
            unit = await client.create(scheme.CONFIGMAPS, namespace, objects.control_unit(told, 0))
            status = api.TaskSetStatus(control_unit_uid=unit.metadata.uid)
            told = made[told.metadata.uid] = msgspec.structs.replace(told, status=status)
            left[told.metadata.uid] = replicas
            await client.create(scheme.SERVICES, namespace, objects.service(told))
            bodies = (objects.pod(told, told.spec.roles[0], index, 0) for index in range(replicas))
            await asyncio.gather(*(client.create(scheme.PODS, namespace, body) for body in bodies))

    async def complete() -> None:
        nonlocal completed
        while True:
            told = made[await finished.get()]
            replica = {"phase": "TaskRoleReplicaCompleted", "podName": told.metadata.name, "podIP": "10.0.0.1"}
            told_of = [{"index": index, "name": f"worker-{index}", **replica} for index in range(min(replicas, 500))]
            role = {"name": "worker", "phase": "TaskRoleCompleted", "state": "Succeeded", "replicaStatus": told_of}
            status = {"phase": "TaskSetCompleted", "state": "Succeeded", "totalRetriedCount": 0, "roleStatus": [role]}
            patch = [{"op": "add", "path": "/status", "value": status}]
            await client.json_patch(scheme.TASKSETS, namespace, told.metadata.name, patch, subresource="status")
            unit = names.control_unit(told.metadata.name, 0)
            await client.delete(scheme.CONFIGMAPS, namespace, unit, propagation="Background")
            completed += 1

    pods = informer.Informer(
        client, scheme.PODS, namespace=namespace, label_selector=names.UID_LABEL, on_change=changed
    )
    watching = asyncio.create_task(pods.run())
    await pods.synced.wait()
    start = time.monotonic()
    completing = [asyncio.create_task(complete()) for _ in range(CONNECTIONS // 2)]
    await asyncio.gather(*(create() for _ in range(CONNECTIONS // 2)))
    async with asyncio.timeout(TIMEOUT_S):
        await gone.wait()
    elapsed = time.monotonic() - start
    for task in (watching, *completing):
        task.cancel()
    return elapsed


async def tasksets(client: clients.Client, namespace: str, groups: Sequence[tuple[str, int, int]]) -> dict[str, float]:
    """Seconds from the first create to the end of each group (name prefix, number of TaskSets, replicas)."""
    ends: dict[str, float] = {}
    wrong: list[str] = []
    done = asyncio.Event()
    total = sum(number for _, number, _ in groups)

    def changed(key: str, old: Any, new: Any) -> None:
        if new is not None and new.status.phase == "TaskSetCompleted" and key not in ends:
            ends[key] = time.monotonic() - start
            if new.status.state != "Succeeded":
                wrong.append(f"{key}: {new.status.state_message}")
            if len(ends) == total:
                done.set()

    watch = informer.Informer(client, scheme.TASKSETS, namespace=namespace, on_change=changed)
    watching = asyncio.create_task(watch.run())
    await watch.synced.wait()
    wanted = iter([(f"{prefix}-{number}", replicas) for prefix, many, replicas in groups for number in range(many)])

    async def create() -> None:
        for name, replicas in wanted:
            await client.create(scheme.TASKSETS, namespace, taskset(name, replicas))

    start = time.monotonic()
    await asyncio.gather(*(create() for _ in range(8)))
    async with asyncio.timeout(TIMEOUT_S):
        await done.wait()
    watching.cancel()
    if wrong:
        raise SystemExit(f"{len(wrong)} TaskSets did not succeed: {wrong[:3]}")
    return {
        prefix: max(end for key, end in ends.items() if key.split("/")[1].rpartition("-")[0] == prefix)
        for prefix, _, _ in groups
    }


# --- measuring


@contextmanager
def controller(kubeconfig_path: Path, port: int, log: Path) -> Iterator[int]:
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "octarbiter", "controller", "--health-address", f"127.0.0.1:{port}"],
            env={**os.environ, "KUBECONFIG": str(kubeconfig_path)},
            stderr=stream,
        )
        try:
            wait_until_leading(port, process, log)
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)


def wait_until_leading(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the controller ended:\n{log.read_text()[-2000:]}")
        try:
            if re.search(r"^octarbiter_leader\{.*\} 1", metrics(port), re.M):
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit("the controller does not lead after 60 s")


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def writes(port: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in metrics(port).splitlines():
        match = re.match(r'octarbiter_requests_total\{code="\d+",resource="([^"]+)",verb="([^"]+)"\} (\S+)', line)
        if match and match[2] in WRITES and match[1] != "leases":
            key = f"{match[2]} {match[1]}"
            found[key] = found.get(key, 0) + int(float(match[3]))
    return found


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- the run


async def measure(args: argparse.Namespace, plane: controlplane.ControlPlane) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    connection = kubeconfig.load(str(plane.kubeconfig))
    async with clients.Client(connection, concurrency=CONNECTIONS) as client:
        raws: dict[int, float] = {}
        for many, replicas in args.sizes:
            count = many * replicas
            if count not in raws:
                print(f"raw client, {count} pods ...", flush=True)
                raws[count] = await raw(client, plane.create_namespace("raw-"), count)
                print(f"  {raws[count]:.1f} s, {count / raws[count]:.0f} pods/s", flush=True)
            print(f"the least, {many}x{replicas} ...", flush=True)
            least_s = await least(client, plane.create_namespace("least-"), many, replicas)
            print(f"  {least_s:.1f} s, {count / least_s:.0f} replicas/s", flush=True)
            limits = (raws[count], least_s)
            rows.append(await one(client, plane, f"{many}x{replicas}", [("t", many, replicas)], limits))
        if args.fairness:
            rows.append(await one(client, plane, "5000 then 200x2", [("big", 1, 5000), ("small", 200, 2)]))
    return rows


async def one(
    client: clients.Client,
    plane: controlplane.ControlPlane,
    name: str,
    groups: Sequence[tuple[str, int, int]],
    limits: tuple[float, float] | None = None,
) -> dict[str, Any]:
    print(f"octo controller, {name} ...", flush=True)
    count = sum(many * replicas for _, many, replicas in groups)
    namespace = await asyncio.to_thread(plane.create_namespace, "run-")
    port = free_port()
    pids = dict(plane.pids)
    with controller(plane.kubeconfig, port, plane.directory / "octo-controller.log") as pid:
        pids["octo controller"] = pid
        cpu = {process: cpu_s(number) for process, number in pids.items()}
        before = await asyncio.to_thread(writes, port)
        ends = await tasksets(client, namespace, groups)
        after = await asyncio.to_thread(writes, port)
        elapsed = max(ends.values())
        done = {verb: number - before.get(verb, 0) for verb, number in after.items() if number != before.get(verb, 0)}
        row = {
            "run": name,
            "seconds": round(elapsed, 2),
            "replicas_per_s": round(count / elapsed, 1),
            "raw_per_s": round(count / limits[0], 1) if limits else None,
            "least_per_s": round(count / limits[1], 1) if limits else None,
            "of_raw": round(limits[0] / elapsed, 3) if limits else None,
            "of_least": round(limits[1] / elapsed, 3) if limits else None,
            "writes_per_replica": round(sum(done.values()) / count, 2),
            "writes": done,
            "ends": {prefix: round(end, 2) for prefix, end in ends.items()},
            "peak_mb": {process: round(peak_mb(number)) for process, number in pids.items()},
            "cpu_s": {process: round(cpu_s(number) - cpu[process], 1) for process, number in pids.items()},
        }
    print(f"  {json.dumps(row)}", flush=True)
    return row


def table(rows: Sequence[dict[str, Any]]) -> str:
    titles = {"s": 8, "replicas/s": 12, "raw/s": 8, "least/s": 9, "of raw": 8, "of least": 10, "writes": 8, "MB": 6}
    lines = [f"{'run':<18}" + "".join(f"{title:>{width}}" for title, width in {**titles, "CPU s": 8}.items())]
    for row in rows:
        figures = [
            row["seconds"],
            row["replicas_per_s"],
            row["raw_per_s"] or "-",
            row["least_per_s"] or "-",
            f"{row['of_raw']:.0%}" if row["of_raw"] else "-",
            f"{row['of_least']:.0%}" if row["of_least"] else "-",
            row["writes_per_replica"],
            row["peak_mb"]["octo controller"],
        ]
        cells = [f"{figure:>{width}}" for figure, width in zip(figures, titles.values(), strict=True)]
        lines.append(f"{row['run']:<18}{''.join(cells)}{row['cpu_s']['octo controller']:>8}")
        if len(row["ends"]) > 1:
            lines.append("  ends after: " + ", ".join(f"{name} {end} s" for name, end in row["ends"].items()))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one size, TaskSets x replicas, e.g. 100x50; or fairness")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    args.sizes = SIZES
    if args.only is not None:
        many, is_size, replicas = args.only.partition("x")
        args.sizes = ((int(many), int(replicas)),) if is_size else ()
    args.fairness = args.only in (None, "fairness")
    with (
        controlplane.ControlPlane() as plane,
        fakenodes.FakeNodes(plane, NODES, cpu="1000", memory="4Ti", pods=PODS_PER_NODE) as _,
    ):
        plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(crd.render(kinds.TASKSET)))
        plane.kubectl("wait", "--for=condition=Established", f"crd/{scheme.TASKSETS.plural}.{scheme.TASKSETS.group}")
        rows = asyncio.run(measure(args, plane))
    print(table(rows))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
