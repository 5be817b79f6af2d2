"""How fast is the embedded API server, beside the real one on the same machine?

    python benchmarks/embedded.py [--json FILE]

Each in a process of its own and durable: ours with its SQLite file, kube-apiserver with an etcd that waits for the
disk. The same client asks both: creates per second, gets per second, the time to list 5,000 pods, the time until 2,000
changes have reached 200 watchers. Then the whole embedded cluster: seconds from the start of `octo up` to the first
running pod, and its memory when idle. CPU seconds and peak memory of every server process are printed, too.
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
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from octarbiter.api import scheme
from octarbiter.runtime import client as clients
from octarbiter.runtime import kubeconfig, requests
from octarbiter.testing.kubernetes import controlplane

CREATES = 4000
GETS = 8000
PODS = 5000
CHANGES = 2000
WATCHERS = 200
CONNECTIONS = 64
MEMORY_PAUSE_S = 5.0


def config_map(number: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c-{number}"}, "data": {"key": "x" * 200}}


def pod(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{number}", "labels": {"job": f"j-{number % 50}"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


# --- the work


async def many(count: int, deed: Callable[[int], Awaitable[Any]]) -> float:
    """Seconds for all of them, as many at once as there are connections."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await deed(number)

    start = time.monotonic()
    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return time.monotonic() - start


async def fan_out(connection: Any, writer: clients.Client, namespace: str) -> float:
    """Seconds until every watcher has seen every change."""
    begun = asyncio.Semaphore(0)

    async def watch(client: clients.Client, version: str) -> None:
        request = requests.watch(scheme.CONFIGMAPS, namespace, resource_version=version, timeout_s=600)
        seen = 0
        async with aclosing(client.stream_lines(request)) as lines:
            begun.release()
            async for line in lines:
                seen += line.count(b'"type":"ADDED"')
                if seen >= CHANGES:
                    return

    listed = await writer.send(requests.list_(scheme.CONFIGMAPS, namespace), dict)
    async with clients.Client(connection, concurrency=WATCHERS) as client:
        version = listed["metadata"]["resourceVersion"]
        watching = [asyncio.create_task(watch(client, version)) for _ in range(WATCHERS)]
        for _ in range(WATCHERS):
            await begun.acquire()
        start = time.monotonic()
        await many(CHANGES, lambda number: writer.create(scheme.CONFIGMAPS, namespace, config_map(number)))
        await asyncio.gather(*watching)
        return time.monotonic() - start


async def measure(config: Path) -> dict[str, float]:
    connection = kubeconfig.load(str(config))
    async with clients.Client(connection, concurrency=CONNECTIONS) as client:

        async def namespace() -> str:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "bench-"}}
            return (await client.create(scheme.NAMESPACES, "", body)).metadata.name

        first, second, third = await namespace(), await namespace(), await namespace()
        creates = await many(CREATES, lambda number: client.create(scheme.CONFIGMAPS, first, config_map(number)))
        gets = await many(GETS, lambda number: client.get(scheme.CONFIGMAPS, first, f"c-{number % CREATES}"))
        await many(PODS, lambda number: client.create(scheme.PODS, second, pod(number)))
        start = time.monotonic()
        body = await client.send(requests.list_(scheme.PODS, second), bytes)
        listing = time.monotonic() - start
        assert body.count(b'"phase":"Pending"') == PODS
        spread = await fan_out(connection, client, third)
    return {
        "creates_per_s": round(CREATES / creates),
        "gets_per_s": round(GETS / gets),
        "list_5000_pods_s": round(listing, 3),
        "fan_out_s": round(spread, 2),
    }


# --- the servers


@contextmanager
def embedded(directory: Path) -> Iterator[tuple[Path, dict[str, int]]]:
    with subprocess.Popen([sys.executable, __file__, "--serve", str(directory)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "the server did not start"
        try:
            yield directory / "kubeconfig", {"embedded": process.pid}
        finally:
            process.terminate()


@contextmanager
def real() -> Iterator[tuple[Path, dict[str, int]]]:
    with controlplane.ControlPlane(controller_manager=False, scheduler=False, fsync=True) as plane:
        yield plane.kubeconfig, plane.pids


async def serve(directory: Path) -> None:
    from octarbiter.cluster.apiserver.server import ApiServer
    from octarbiter.cluster.store.store import Store

    store = await Store.open(directory / "state.db")
    async with ApiServer(store, directory=directory):
        print("ready", flush=True)
        await asyncio.Event().wait()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, field: str = "VmHWM") -> float:
    match = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return round(int(match[1]) / 1024) if match else 0.0


def whole_cluster(directory: Path) -> dict[str, float]:
    env = {**os.environ, "OCTO_HOME": str(directory)}
    config = directory / "cluster" / "kubeconfig"
    octo = [sys.executable, "-m", "octarbiter"]
    start = time.monotonic()
    subprocess.run([*octo, "up"], env=env, check=True, capture_output=True)
    try:
        asyncio.run(first_pod(config))
        first = time.monotonic() - start
        pid = json.loads((directory / "cluster" / "process.json").read_text())["pid"]
        time.sleep(MEMORY_PAUSE_S)
        return {"first_running_pod_s": round(first, 2), "idle_mb": memory_mb(pid, "VmRSS")}
    finally:
        subprocess.run([*octo, "down", "--delete"], env=env, check=False, capture_output=True)


async def first_pod(config: Path) -> None:
    async with clients.Client(kubeconfig.load(str(config))) as client:
        await client.create(scheme.PODS, "default", pod(0))
        request = requests.watch(scheme.PODS, "default", timeout_s=60)
        async with aclosing(client.stream_lines(request)) as lines:
            async for line in lines:
                if b'"phase":"Running"' in line or b'"phase":"Succeeded"' in line:
                    return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args.serve))
        return
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "server"
        directory.mkdir(mode=0o700)
        for name, server in (("kube-apiserver + etcd", real()), ("embedded", embedded(directory))):
            print(f"{name} ...", flush=True)
            with server as (config, pids):
                rows[name] = dict(asyncio.run(measure(config)))
                rows[name]["cpu_s"] = {process: round(cpu_s(pid), 1) for process, pid in pids.items()}
                rows[name]["peak_mb"] = {process: memory_mb(pid) for process, pid in pids.items()}
            print(f"  {json.dumps(rows[name])}", flush=True)
        print("the whole embedded cluster ...", flush=True)
        rows["whole cluster"] = dict(whole_cluster(Path(place) / "home"))
        print(f"  {json.dumps(rows['whole cluster'])}", flush=True)
    ours, theirs = rows["embedded"], rows["kube-apiserver + etcd"]
    print(f"{'':<20}{'real':>10}{'embedded':>10}{'ratio':>8}")
    for figure in ("creates_per_s", "gets_per_s", "list_5000_pods_s", "fan_out_s"):
        ratio = ours[figure] / theirs[figure] if figure.endswith("per_s") else theirs[figure] / ours[figure]
        print(f"{figure:<20}{theirs[figure]:>10}{ours[figure]:>10}{ratio:>8.2f}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
