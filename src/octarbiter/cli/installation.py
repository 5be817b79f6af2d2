"""What does a cluster need so that TaskSets run in it and queues share it? The objects, built without a cluster.

Each process has an account of its own, whose rights are those of its requests and no more: a test asks a real API
server for every one of them, and for some that must not be there.
"""

from __future__ import annotations

import msgspec

from octarbiter.api import crd, kinds
from octarbiter.api.meta import Json
from octarbiter.cli import deployments
from octarbiter.cli.deployments import Part
from octarbiter.core.quota import names
from octarbiter.runtime import settings
from octarbiter.services import rights
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.services.webhook import configuration

NAMESPACE = names.OWN_NAMESPACE
WEBHOOK_PORT = 9443

ARBITRATOR_TASKSET_WARNING = (
    "Warning: a server lists groups by name, and of two kinds called TaskSet kubectl takes the first: `kubectl get "
    f"taskset` will mean {kinds.OLDER_TASKSET.definition}. Say `ts` or `{kinds.TASKSET.definition}` for the jobs."
)

CONTROLLER = Part(
    component="controller",
    rules=rights.TASKSET_CONTROLLER,
    rules_at_home=rights.lease(settings.Settings().lease_name),
)
ARBITRATOR = Part(
    component="arbitrator",
    rules=rights.ARBITRATOR,
    rules_at_home=[*rights.ARBITRATOR_IN_ITS_NAMESPACE, *rights.lease(ArbitratorSettings().lease_name)],
    ports={"webhook": WEBHOOK_PORT},
)


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may choose."""

    image: str
    namespace: str = NAMESPACE
    replicas: int = 2
    arbitrator: bool = True
    """Also what shares the cluster among queues."""
    mode: str = ""
    """How namespaces without the label are managed; empty: they are not."""
    policy: str = ""
    """How queues without a parent share; empty: as the arbitrator does by itself."""
    arbitrator_taskset: bool = False
    """Also the older name of QueueJob."""


def crds(*, arbitrator_taskset: bool = False) -> list[Json]:
    return [crd.render(kind) for kind in (kinds.ALL if arbitrator_taskset else kinds.INSTALLED)]


def objects(wishes: Wishes) -> list[Json]:
    """In the order in which they can be created."""
    namespace = wishes.namespace
    found = [
        *crds(arbitrator_taskset=wishes.arbitrator_taskset),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *deployments.objects(CONTROLLER, wishes.image, namespace, wishes.replicas),
    ]
    if not wishes.arbitrator:
        return found
    chosen = {"mode": wishes.mode, "policy": wishes.policy}
    flags = [
        f"--webhook-address=:{WEBHOOK_PORT}",
        f"--webhook-namespace={namespace}",
        *(f"--{name}={value}" for name, value in chosen.items() if value),
    ]
    return [
        *found,
        _webhook_service(namespace),
        *deployments.objects(ARBITRATOR, wishes.image, namespace, wishes.replicas, flags),
    ]


def _webhook_service(namespace: str) -> Json:
    """The webhook's certificates, and its configurations, the arbitrator makes itself."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": configuration.NAME, "namespace": namespace, "labels": ARBITRATOR.labels},
        "spec": {
            "selector": ARBITRATOR.labels,
            "ports": [{"name": "https", "port": configuration.PORT, "targetPort": "webhook"}],
        },
    }
