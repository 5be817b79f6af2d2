"""What tables does a real API server draw?

`python -m tools.record_tables` starts one, creates what `tests/unit/cluster/golden/table_objects.yaml` describes, asks
for every kind's table and writes objects, columns and cells to `tables.json`. No controller runs, so every status is
what the file says.
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from tools.asking import Asking

from octarbiter.testing.kubernetes.controlplane import ControlPlane

GOLDEN = Path(__file__).parents[1] / "tests" / "unit" / "cluster" / "golden"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

Json = dict[str, Any]

BUILT_IN = {
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ("apiregistration.k8s.io/v1", "APIService"): "/apis/apiregistration.k8s.io/v1/apiservices",
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): (
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    ),
    ("networking.k8s.io/v1", "ServiceCIDR"): "/apis/networking.k8s.io/v1/servicecidrs",
    ("networking.k8s.io/v1", "IPAddress"): "/apis/networking.k8s.io/v1/ipaddresses",
    ("events.k8s.io/v1", "Event"): "/apis/events.k8s.io/v1/namespaces/default/events",
}
"""What is there without our doing."""

COLUMNS = [
    {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
    {"name": "Whole", "type": "integer", "jsonPath": ".spec.whole", "description": "A number."},
    {"name": "Real", "type": "number", "jsonPath": ".spec.real", "priority": 1},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
    {"name": "Found", "type": "string", "jsonPath": '.spec.list[?(@.name=="b")].v'},
    {"name": "First", "type": "string", "jsonPath": ".spec.list[0].name"},
    {"name": "All", "type": "string", "jsonPath": ".spec.list[*].name"},
    {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
    {"name": "Number", "type": "string", "jsonPath": ".spec.real"},
    {"name": "Dotted", "type": "string", "jsonPath": r".spec.a\.b"},
    {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
    {"name": "Bad", "type": "date", "jsonPath": ".spec.bad"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": COLUMNS,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def main() -> None:
    with ControlPlane(controller_manager=False, scheduler=False) as plane:
        asking = Asking(plane)
        asking.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
        asking.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        while asking.ask("GET", "/apis/example.org/v1/widgets").get("kind") == "Status":
            time.sleep(0.05)
        kinds = _create_all(asking)
        tables = [_table(asking, api_version, kind, path) for (api_version, kind), path in kinds.items()]
    (GOLDEN / "tables.json").write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n")


def _create_all(asking: Asking) -> dict[tuple[str, str], str]:
    """The kinds of what was made, and where their lists are."""
    refusals: list[str] = []
    kinds = dict(BUILT_IN)
    for written in yaml.safe_load((GOLDEN / "table_objects.yaml").read_text()):
        obj = _dated(written)
        is_deleted, status = obj.pop("delete", False), obj.pop("status", None)
        path = _path(asking, obj)
        made = asking.ask("POST", path, obj)
        if made.get("kind") == "Status":
            refusals.append(f"{obj['kind']} {obj['metadata']['name']}: {made['message']}")
            continue
        own = f"{path}/{made['metadata']['name']}"
        if status is not None:
            answer = asking.ask("PUT", f"{own}/status", {**made, "status": status})
            if answer.get("kind") == "Status":
                refusals.append(f"the status of {own}: {answer['message']}")
        if is_deleted:
            asking.ask("DELETE", own, {"gracePeriodSeconds": 0})
        kinds[(obj["apiVersion"], obj["kind"])] = path
    if refusals:
        raise SystemExit("the server refuses " + "\n".join(refusals))
    return kinds


def _dated(written: Any) -> Any:
    text = re.sub(r"AGO\+(\d+)(\.\d+)?", _moment, json.dumps(written))
    return json.loads(text)


def _moment(match: re.Match[str]) -> str:
    moment = datetime.now(UTC) - timedelta(seconds=int(match[1]))
    return f"{moment:%Y-%m-%dT%H:%M:%S}{match[2] or ''}Z"


def _path(asking: Asking, obj: Json) -> str:
    version = obj["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resources = asking.ask("GET", base)["resources"]
    resource = next(each for each in resources if each["kind"] == obj["kind"] and "/" not in each["name"])
    return f"{base}/namespaces/default/{resource['name']}" if resource["namespaced"] else f"{base}/{resource['name']}"


def _table(asking: Asking, api_version: str, kind: str, path: str) -> Json:
    before = datetime.now(UTC)
    table = asking.ask("GET", f"{path}?includeObject=Object", accept=TABLE)
    rows = [
        {key: row[key] for key in ("cells", "conditions", "object") if key in row}
        for row in table["rows"]
        if "kubernetes.io/bootstrapping" not in row["object"]["metadata"].get("labels", {})
    ]
    if path in BUILT_IN.values():
        rows = rows[:2]
    for row in rows:
        row["object"]["metadata"].pop("managedFields", None)
    for column in table["columnDefinitions"]:
        # Ours are in our own words.
        del column["description"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "columns": table["columnDefinitions"],
        "before": before.isoformat(),
        "after": datetime.now(UTC).isoformat(),
        "rows": rows,
    }


if __name__ == "__main__":
    main()
