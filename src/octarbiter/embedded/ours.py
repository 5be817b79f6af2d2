"""Our own services in an embedded cluster: under a name and with the rights that they would have in any other.

So what they may not do elsewhere fails here, too; and quotas that nobody else may change can be told from those that
the person at the keyboard, who is the administrator, made.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from octarbiter.api import errors, scheme
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import Resource
from octarbiter.cluster.apiserver.server import ApiServer
from octarbiter.runtime import client as clients
from octarbiter.runtime import credentials, manager
from octarbiter.runtime.kubeconfig import Connection
from octarbiter.services import rights
from octarbiter.services.arbitrator import assembly as arbitration
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.services.controllers import assembly as controllers

NAME, NAMESPACE = "octarbiter", "octarbiter-system"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
_RBAC = "rbac.authorization.k8s.io"
_PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}
_PLURALS |= {"Role": "roles", "RoleBinding": "rolebindings"}


def acting_as(connection: Connection, server: ApiServer, name: str, groups: tuple[str, ...]) -> Connection:
    token = server.token_for(name, groups)
    return msgspec.structs.replace(connection, credentials=credentials.Direct(headers=credentials.bearer(token)))


@asynccontextmanager
async def services(
    server: ApiServer, connection: Connection, admin: clients.Client, policy: str
) -> AsyncIterator[manager.Manager]:
    """Ready to be run."""
    await _furnish(admin)
    port = _free_port()
    settings = ArbitratorSettings(
        leader_elect=False,
        health_address="",
        policy=policy,
        webhook_address=f"127.0.0.1:{port}",
        webhook_url=f"https://127.0.0.1:{port}",
        webhook_namespace=NAMESPACE,
    )
    made = manager.Manager(settings, acting_as(connection, server, USER, GROUPS))
    controllers.add_taskset_controller(made)
    async with arbitration.arbitration(made, settings):
        yield made


async def _furnish(admin: clients.Client) -> None:
    await _put(admin, scheme.NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
    account: Json = {"metadata": {"name": NAME}}
    wanted = [(_resource("", "ServiceAccount", "serviceaccounts"), NAMESPACE, account)]
    everywhere = [*rights.TASKSET_CONTROLLER, *rights.ARBITRATOR]
    for kind, namespace, rules in (
        ("ClusterRole", "", everywhere),
        ("Role", NAMESPACE, rights.ARBITRATOR_IN_ITS_NAMESPACE),
    ):
        wanted.append((_resource(_RBAC, kind), namespace, {"metadata": {"name": NAME}, "rules": rules}))
        binding: Json = {
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        }
        wanted.append((_resource(_RBAC, f"{kind}Binding"), namespace, binding))
    # Together, to wait for the disk once.
    await asyncio.gather(*(_put(admin, resource, namespace, body) for resource, namespace, body in wanted))


def _resource(group: str, kind: str, plural: str = "") -> Resource[Object]:
    return Resource(group, "v1", kind, plural or _PLURALS[kind], not kind.startswith("Cluster"), Object)


async def _put(admin: clients.Client, resource: Resource[Object], namespace: str, body: Json) -> None:
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    try:
        await admin.create(resource, namespace, whole)
    except errors.AlreadyExists:
        if "rules" in body:  # as this version of us needs them
            await admin.merge_patch(resource, namespace, body["metadata"]["name"], {"rules": body["rules"]})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
