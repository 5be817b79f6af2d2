"""How many pods can one process pretend to run?

    python benchmarks/pretend.py [--tasksets 20] [--replicas 500] [--nodes 100] [--json FILE]

A whole cluster, as `octo up --pretend` starts it: API server with its file, scheduler, controllers, nodes. First all
TaskSets run at once, without an end: seconds until every pod runs, and until all are gone after the TaskSets were
deleted. Then as many whose pods last a second: seconds until all have succeeded and are cleared away. CPU seconds and
peak memory are those of the one process. Twice the pods should cost about twice as much: `--replicas 250` tells.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from octarbiter.api import errors, scheme
from octarbiter.runtime import client as clients
from octarbiter.runtime import kubeconfig, requests

LOOK_S = 1.0
PATIENCE_S = 3600.0


def taskset(name: str, replicas: int, command: str) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "command": ["sh", "-c", command]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    role = {"name": "worker", "replicas": replicas, "template": {"spec": spec}}
    return {
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
        "kind": "TaskSet",
        "metadata": {"name": name},
        "spec": {"roles": [role]},
    }


async def until(is_true: Callable[[], Awaitable[bool]]) -> float:
    """Seconds."""
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE_S:
        with contextlib.suppress(errors.Retry):  # a busy server may not answer in time
            if await is_true():
                return round(time.monotonic() - start, 1)
        await asyncio.sleep(LOOK_S)
    raise TimeoutError("it takes too long")


async def measure(config: Path, tasksets: int, replicas: int) -> dict[str, float]:
    async with clients.Client(kubeconfig.load(str(config))) as client:

        async def submit(prefix: str, command: str) -> None:
            for number in range(tasksets):
                body = taskset(f"{prefix}-{number}", replicas, command)
                await client.send(requests.create(scheme.TASKSETS, "default", body), bytes)

        async def running() -> bool:
            found = await client.list(scheme.TASKSETS, "default")
            return (
                sum(role.active for each in found for role in each.status.role_status) == tasksets * replicas
                and all(each.status.state == "Running" for each in found)
                and await phases(client, b'"phase":"Running"') == tasksets * replicas
            )

        async def gone() -> bool:
            found = await client.list(scheme.TASKSETS, "default")
            return not found and not await phases(client, b'"phase":')

        async def succeeded() -> bool:
            found = await client.list(scheme.TASKSETS, "default")
            return all(each.status.state == "Succeeded" for each in found) and not await phases(client, b'"phase":')

        await submit("endless", "serve")
        figures = {"running_s": await until(running)}
        for number in range(tasksets):
            await client.delete(scheme.TASKSETS, "default", f"endless-{number}")
        figures["gone_s"] = await until(gone)
        await submit("short", "sleep 1")
        figures["succeeded_s"] = await until(succeeded)
        return figures


async def phases(client: clients.Client, word: bytes) -> int:
    body: bytes = await client.send(requests.list_(scheme.PODS, "default"), bytes)
    return body.count(word)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return round(int(match[1]) / 1024) if match else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasksets", type=int, default=20)
    parser.add_argument("--replicas", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    octo = [sys.executable, "-m", "octarbiter"]
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "OCTO_HOME": home}
        cluster = Path(home) / "cluster"
        subprocess.run([*octo, "up", "--pretend", f"--nodes={args.nodes}"], env=env, check=True, capture_output=True)
        try:
            pid = json.loads((cluster / "process.json").read_text())["pid"]
            figures: dict[str, float] = {"pods": args.tasksets * args.replicas, "nodes": args.nodes}
            figures |= asyncio.run(measure(cluster / "kubeconfig", args.tasksets, args.replicas))
            figures |= {"cpu_s": round(cpu_s(pid), 1), "peak_mb": memory_mb(pid)}
            figures["state_mb"] = round(sum(file.stat().st_size for file in cluster.glob("state.db*")) / 2**20)
        finally:
            subprocess.run([*octo, "down", "--delete"], env=env, check=False, capture_output=True)
    for name, value in figures.items():
        print(f"{name:<14}{value:>10}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
