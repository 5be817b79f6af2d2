"""Write the table of what built-in Kubernetes objects look like, from a real API server and Kubernetes' own sources.

`python -m tools.kubernetes_schemas` starts the API server of the test bed, reads the OpenAPI documents of the groups
that the embedded server knows, joins them with what only the Go structs say, and writes one compressed file.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tools import go_structs

from octarbiter.testing.kubernetes import controlplane, versions

Json = dict[str, Any]

FILE = Path(__file__).resolve().parent.parent / "src/octarbiter/cluster/apiserver/schemas/kubernetes.json.gz"
GROUP_VERSIONS = (
    "api/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apiregistration.k8s.io/v1",
    "apis/apps/v1",
    "apis/authentication.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/autoscaling/v1",
    "apis/autoscaling/v2",
    "apis/batch/v1",
    "apis/certificates.k8s.io/v1",
    "apis/coordination.k8s.io/v1",
    "apis/discovery.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/node.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/resource.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
    "apis/storage.k8s.io/v1",
)


def table(documents: Iterable[Json]) -> Json:
    """`kinds` name a component each, `schemas` are as published, `structs` hold the Go side of the same components."""
    schemas: Json = {}
    for document in documents:
        schemas |= document["components"]["schemas"]
    return {
        "version": versions.KUBERNETES,
        "kinds": {key: name for name, schema in sorted(schemas.items()) for key in _kinds(schema)},
        "schemas": schemas,
        "structs": _structs(schemas),
    }


def _kinds(schema: Json) -> Iterator[str]:
    for kind in schema.get("x-kubernetes-group-version-kind", ()):
        yield f"{kind['group']}/{kind['version']}/{kind['kind']}"


def _structs(components: Iterable[str]) -> Json:
    """Each a list of [name in JSON, Go type, number in protobuf, presence]; see `go_structs.Field`."""
    structs: Json = {}
    waiting = list(components)
    while waiting:
        component = waiting.pop()
        fields = None if component in structs else go_structs.fields_of(component)
        if fields:
            structs[component] = [[f.name, f.go, f.number, f.presence] for f in fields]
            # A struct whose fields are written where it stands has no schema of its own.
            waiting += [field.go for field in fields if field.presence == "inline"]
    return structs


def packed(value: Json) -> bytes:
    """The same bytes for the same table, always."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def main() -> int:
    with controlplane.ControlPlane(controller_manager=False, scheduler=False, stream=sys.stderr) as plane:
        documents = [plane.request("GET", f"/openapi/v3/{path}") for path in GROUP_VERSIONS]
    FILE.write_bytes(packed(table(documents)))
    print(f"wrote {FILE.name}: {FILE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
