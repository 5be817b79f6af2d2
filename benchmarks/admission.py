"""How much longer does it take to create a pod where the webhook is asked?

    python benchmarks/admission.py [--json FILE] [--pods N]

On a real API server (etcd waits for the disk), the webhook in a process of its own, as on a cluster. Pods are created
in turn in three namespaces: one that is not managed, one of mode `deny`, one of mode `gate`; whatever else happens on
the machine meets all three alike. Printed are the milliseconds of a create at the 50th, 95th and 99th percentile, what
the webhook adds to each, what the API server itself says about the calls, and what they cost the webhook's process. The
goal: less than 5 ms at the 99th, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from octarbiter.api import arbitrator, errors, scheme
from octarbiter.api.meta import ObjectMeta
from octarbiter.api.queue import Queue
from octarbiter.core.quota import admission, names
from octarbiter.runtime import client as clients
from octarbiter.runtime import kubeconfig, manager, requests, settings
from octarbiter.services.webhook import configuration, serving
from octarbiter.testing.kubernetes import controlplane

PODS = 1000
WARM_UP = 100
QUEUES = 1000
PERCENTILES = (50, 95, 99)
GOAL_MS = 5.0


class View(msgspec.Struct):
    """As much to look through as an ordinary installation has; every namespace has its queue."""

    us: str
    policies: tuple[str, ...] = ("drf",)
    known: Mapping[str, Queue] = {}

    def place(self, namespace: str) -> admission.Place:
        return admission.Place(name=namespace, queue=f"{namespace}/q")

    def queues(self) -> Mapping[str, Queue]:
        return self.known

    def has_claim(self, namespace: str, api_version: str, kind: str, name: str) -> bool:
        return False


async def serve(config: str, port: int) -> None:
    whole = manager.Manager(settings.Settings(leader_elect=False, health_address=""), kubeconfig.load(config))
    known = {f"n{n}/q": Queue(metadata=ObjectMeta(namespace=f"n{n}", name="q")) for n in range(QUEUES)}
    view = View(us=await serving.who_we_are(whole.client), known=known)
    reach = configuration.Reach(url=f"https://127.0.0.1:{port}")
    async with serving.Webhook(whole, serving.Options(address=f"127.0.0.1:{port}", reach=reach), view):
        await whole.serve()


def pod() -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1"], "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-"},
        "spec": {"automountServiceAccountToken": False, "restartPolicy": "Never", "containers": [container]},
    }


async def namespace(client: clients.Client, mode: str) -> str:
    metadata = {"generateName": "bench-", "labels": {arbitrator.MODE: mode} if mode else {}}
    made = await client.create(scheme.NAMESPACES, "", {"metadata": metadata})
    account = requests.Request(
        method="POST",
        path=f"/api/v1/namespaces/{made.metadata.name}/serviceaccounts",
        body=b'{"metadata": {"name": "default"}}',
        content_type=requests.JSON,
    )
    await client.send(account, bytes)
    return made.metadata.name


async def measure(config: Path, pods: int, webhook: int) -> dict[str, Any]:
    """`webhook`: its process."""
    async with clients.Client(kubeconfig.load(str(config))) as client:
        places = {mode or "unmanaged": await namespace(client, mode) for mode in ("", "deny", "gate")}
        await until_asked(client, places["gate"])
        taken: dict[str, list[float]] = {name: [] for name in places}
        before_s = 0.0
        for turn in range(-WARM_UP, pods):
            if turn == 0:
                before_s = cpu_s(webhook)
            for name, place in places.items():
                start = time.monotonic()
                await client.create(scheme.PODS, place, pod())
                if turn >= 0:
                    taken[name].append(time.monotonic() - start)
        used_s = cpu_s(webhook) - before_s
        metrics = await client.send(requests.Request(method="GET", path="/metrics", accept="text/plain"), bytes)
    rows: dict[str, Any] = {name: percentiles(times) for name, times in taken.items()}
    for name in ("deny", "gate"):
        added = {key: round(rows[name][key] - rows["unmanaged"][key], 2) for key in rows[name]}
        rows[f"added by {name}"] = added
    rows["calls"] = calls(metrics.decode())
    rows["cpu_ms_per_call"] = round(1000 * used_s / (2 * pods), 2)
    return rows


async def until_asked(client: clients.Client, place: str) -> None:
    """Until the API server has noticed the configuration, and the webhook answers."""
    for _ in range(600):
        try:
            made = await client.send(requests.create(scheme.PODS, place, pod()), dict)
            if made["spec"].get("schedulingGates"):
                return
        except errors.ApiError:
            pass
        await asyncio.sleep(0.1)
    raise TimeoutError("the API server does not ask the webhook")


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {f"p{p}": round(1000 * ordered[min(len(ordered) - 1, len(ordered) * p // 100)], 2) for p in PERCENTILES}


def calls(metrics: str) -> dict[str, Any]:
    """How many calls of our pods' webhooks the API server counted, and how many of them took at most 5 ms."""
    found = {}
    for part in ("deny-pods", "gate-pods"):
        own = f'apiserver_admission_webhook_admission_duration_seconds_{{}}{{{{name="{part}.{configuration.DOMAIN}"'
        count = sum(
            float(value) for value in re.findall(rf"^{re.escape(own.format('count'))}.*}} (\S+)$", metrics, re.M)
        )
        within = sum(
            float(value)
            for value in re.findall(rf'^{re.escape(own.format("bucket"))}.*le="0.005"}} (\S+)$', metrics, re.M)
        )
        found[part] = {"calls": int(count), "within_5_ms_percent": round(100 * within / count, 2) if count else None}
    return found


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--pods", type=int, default=PODS, help="pods in each namespace")
    parser.add_argument("--serve", nargs=2, metavar=("KUBECONFIG", "PORT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args.serve[0], int(args.serve[1])))
        return
    with controlplane.ControlPlane(controller_manager=False, scheduler=False, fsync=True) as plane:
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": names.OWN_NAMESPACE}})
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with subprocess.Popen([sys.executable, __file__, "--serve", str(plane.kubeconfig), str(port)]) as webhook:
            try:
                rows = asyncio.run(measure(plane.kubeconfig, args.pods, webhook.pid))
            finally:
                webhook.terminate()
    print(f"{'ms':<16}" + "".join(f"{f'p{p}':>8}" for p in PERCENTILES))
    for name, row in rows.items():
        if isinstance(row, dict) and name != "calls":
            print(f"{name:<16}" + "".join(f"{row[f'p{p}']:>8}" for p in PERCENTILES))
    print(f"what the API server says: {json.dumps(rows['calls'])}")
    print(f"CPU of the webhook's process: {rows['cpu_ms_per_call']} ms a call")
    worst = max(rows[f"added by {name}"]["p99"] for name in ("deny", "gate"))
    print(f"added at the 99th percentile: {worst} ms (goal: less than {GOAL_MS})")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
