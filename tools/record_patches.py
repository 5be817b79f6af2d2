"""Ask a real kube-apiserver what patches do, and write it down for the tests.

`python -m tools.record_patches` carries out the scenarios of its neighbours on a control plane of its own and
writes `tests/unit/cluster/patching_scenarios.json`. It takes some minutes: owners are dated to the second, so each step
gets a second of its own.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from octarbiter.testing.kubernetes.controlplane import ControlPlane

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # called as `python tools/record_patches.py`, it would not find its neighbours

from tools import apply_scenarios, patch_cases, patch_scenarios  # noqa: E402
from tools.patch_cases import Scenario, Step  # noqa: E402

FILE = ROOT / "tests" / "unit" / "cluster" / "patching_scenarios.json"
Json = dict[str, Any]


class Server:
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        parts = urlsplit(plane.url)
        context = ssl.create_default_context(cadata=base64.b64decode(plane.ca_data).decode())
        self._http = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=context)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Json]:
        headers = {"Authorization": f"Bearer {self._plane.admin_token}", "Content-Type": content_type}
        payload = None if body is None else json.dumps(body)
        self._http.request(method, path, payload, headers)
        response = self._http.getresponse()
        answer = response.read()
        # A path the server does not know yet is answered in plain text.
        return response.status, json.loads(answer) if answer.startswith(b"{") else {}


def scenarios() -> Iterator[Scenario]:
    yield from patch_scenarios.json_patches()
    yield from patch_scenarios.merge_patches()
    yield from patch_scenarios.strategic_patches()
    yield from apply_scenarios.applies()
    yield from apply_scenarios.custom_applies()
    yield from apply_scenarios.owners()


def record(server: Server, scenario: Scenario) -> Json:
    """The scenario with what the server made of it."""
    path = patch_cases.path_of(scenario)
    tidy = Tidy()
    recorded: Json = {"name": scenario.name, "kind": scenario.kind, "start": None, "steps": []}
    if scenario.start is not None:
        tidy.next_second()
        collection, _, _ = path.rpartition("/")
        code, start = server.ask("POST", f"{collection}?fieldManager=creator", scenario.start)
        if code != 201:
            raise SystemExit(f"{scenario.name}: {start}")
        recorded["start"] = tidy.object(start)
    for step in scenario.steps:
        recorded["steps"].append(_carried_out(server, path, step, tidy))
    server.ask("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    server.ask("DELETE", f"{path}?gracePeriodSeconds=0")
    return recorded


def _carried_out(server: Server, path: str, step: Step, tidy: Tidy) -> Json:
    now = tidy.next_second()
    query: Json = {"fieldManager": step.manager} if step.manager else {}
    if step.force:
        query["force"] = "true"
    address = f"{path}/{step.subresource}" if step.subresource else path
    body = step.body
    if step.how == "update":
        _, body = server.ask("GET", path)
        step.body(body)
    method, content_type = patch_cases.METHODS[step.how]
    code, answer = server.ask(method, f"{address}?{urlencode(query)}", body, content_type)
    shown = {"how": step.how, "manager": step.manager, "subresource": step.subresource, "force": step.force}
    return {
        **{name: value for name, value in shown.items() if value},
        "body": tidy.object(body) if step.how == "update" else body,
        "now": now,
        "code": code,
        "result": tidy.object(answer) if code < 300 else _status(answer),
    }


def _status(answer: Json) -> Json:
    return {name: answer[name] for name in ("reason", "message", "details") if name in answer}


class Tidy:
    """What differs from run to run becomes what does not: times in the order in which they occur, one uid."""

    def __init__(self) -> None:
        self._seconds: list[str] = []

    def next_second(self) -> str:
        now = time.time()
        time.sleep(1.02 - now % 1)
        return self._time(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

    def object(self, obj: Json) -> Json:
        obj = json.loads(json.dumps(obj))
        metadata = obj["metadata"]
        for name, value in (("uid", "00000000-0000-0000-0000-000000000001"), ("resourceVersion", "1")):
            if name in metadata:
                metadata[name] = value
        if "creationTimestamp" in metadata:
            metadata["creationTimestamp"] = self._time(metadata["creationTimestamp"])
        for entry in metadata.get("managedFields") or []:
            if "time" in entry:
                entry["time"] = self._time(entry["time"])
        return dict(obj)

    def _time(self, moment: str) -> str:
        if moment not in self._seconds:
            self._seconds.append(moment)
        return f"2026-01-01T00:00:{self._seconds.index(moment):02}Z"


def main() -> None:
    with ControlPlane(controller_manager=False, scheduler=False) as plane:
        server = Server(plane)
        for definition in patch_cases.definitions():
            code, answer = server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
            if code != 201:
                raise SystemExit(str(answer))
        for path in patch_cases.custom_collections():
            while server.ask("GET", path)[0] != 200:
                time.sleep(0.2)
        recorded = [record(server, scenario) for scenario in scenarios()]
    FILE.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for scenario in recorded:
        steps = ",\n  ".join(json.dumps(step) for step in scenario.pop("steps"))
        lines.append(json.dumps(scenario)[:-1] + f', "steps": [\n  {steps}\n]}}')
    gadgets = json.dumps(patch_cases.GADGETS)
    FILE.write_text(f'{{"gadgets": {gadgets},\n"scenarios": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
