"""What is there before anybody has created anything?"""

from __future__ import annotations

import asyncio
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import default_roles, status
from octarbiter.cluster.apiserver.authn import ADMIN
from octarbiter.cluster.apiserver.catalogue import Catalogue
from octarbiter.cluster.apiserver.options import Write
from octarbiter.cluster.apiserver.registry import Call, Registry

NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_CLUSTER_IP: Final = "10.96.0.1"
_PRIORITIES: Final = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def furniture(port: int) -> list[tuple[str, str, str, str, Json]]:
    """(group, version, plural, namespace, object) of everything, in the order in which it can be made."""
    found: list[tuple[str, str, str, str, Json]] = [
        ("", "v1", "namespaces", "", {"metadata": {"name": name}}) for name in NAMESPACES
    ]
    for name, value, description in _PRIORITIES:
        priority = {"metadata": {"name": name}, "value": value, "description": description}
        found.append(("scheduling.k8s.io", "v1", "priorityclasses", "", priority))
    service: Json = {
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": _CLUSTER_IP,
            "clusterIPs": [_CLUSTER_IP],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
        },
    }
    found.append(("", "v1", "services", "default", service))
    for plural, roles in (
        ("clusterroles", default_roles.cluster_roles()),
        ("clusterrolebindings", default_roles.cluster_bindings()),
    ):
        found += [(default_roles.GROUP, "v1", plural, "", each) for each in roles]
    return found


async def furnish(registry: Registry, catalogue: Catalogue, port: int) -> None:
    """Makes what is missing; what is there stays as it is."""

    async def put(group: str, version: str, plural: str, namespace: str, obj: Json) -> None:
        served = catalogue.find(group, version, plural)
        assert served is not None
        obj |= {"kind": served.resource.kind, "apiVersion": served.resource.api_version}
        call = Call(served=served, namespace=namespace, user=ADMIN, write=Write(manager="kube-apiserver"), warnings=[])
        try:
            await registry.create(call, obj)
        except status.Failure as failure:
            if failure.reason != "AlreadyExists":
                raise

    found = furniture(port)
    # Together, to wait for the disk only twice: the namespaces, and then what is in them.
    for is_namespace in (True, False):
        await asyncio.gather(*(put(*each) for each in found if (each[2] == "namespaces") == is_namespace))
