"""A cluster on one machine, in one process: who starts whom?

The store, the API server on it, and then everybody who would be a client of it anywhere else: the cluster's own
controllers, the nodes, our own services. They speak HTTPS with the server like any other client, so what works
here works on a real cluster, and the other way round.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from octarbiter.api import crd, errors, kinds, scheme, taskset
from octarbiter.cluster.apiserver.server import ApiServer
from octarbiter.cluster.controllers import assembly as own_controllers
from octarbiter.cluster.store import retention
from octarbiter.cluster.store.store import Store
from octarbiter.embedded import kubelet, nodes, ours
from octarbiter.runtime import client as clients
from octarbiter.runtime import kubeconfig, manager, settings

log = logging.getLogger(__name__)

STATE = "state.db"
MANUALS_GROUP = f"tasksets.{taskset.GROUP}"
"""As the manual prints the paths of TaskSets."""
UNATTENDED = (
    *("CronJob", "DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"),
    "pods/ephemeralcontainers",
)
"""What a larger cluster has controllers for, or kubelets, and this one has not."""
CONTROLLER_MANAGER = ("system:kube-controller-manager", ("system:masters",))
"""As the cluster's own controllers are known, so that webhooks can tell them from people."""
NODE_GRACE_S = 40.0
"""A node that is silent for so long is lost."""
DRAIN_S = 10
"""Pods get so long to end, or less if they ask for less, when the cluster goes down."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    directory: Path
    """State, certificates, kubeconfig, logs of pods; nobody else may read it."""
    nodes: int = 1
    resources: dict[str, str] = {}
    """What each node pretends to have beside what the machine has."""
    pretend: bool = False
    """Pods run no programs."""
    port: int = 0
    services: bool = True
    """Also our own controllers, and not only the cluster."""
    policy: str = "drf"
    """How queues without a parent share the cluster."""
    scheduler_name: str = "default-scheduler"
    """The scheduler we are: pods that ask for another one wait for that."""
    in_memory: bool = False
    """Nothing is written to the disk: for tests."""


class Cluster:
    """`async with Cluster(options) as cluster:` - it answers from then on, and is gone after."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._store: Store | None = None
        self._server: ApiServer | None = None
        self._managers: list[manager.Manager] = []
        self._working: set[asyncio.Task[int]] = set()
        self._serving = AsyncExitStack()
        self._client: clients.Client | None = None
        self._nodes: asyncio.Task[None] | None = None
        self._forgetting: asyncio.Task[None] | None = None

    @property
    def kubeconfig(self) -> Path:
        assert self._server is not None
        return self._server.kubeconfig

    @property
    def token(self) -> str:
        assert self._server is not None
        return self._server.token

    @property
    def ca_pem(self) -> bytes:
        assert self._server is not None
        return self._server.ca_pem

    @property
    def url(self) -> str:
        assert self._server is not None
        return self._server.url

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def ended(self) -> None:
        """Waits until a part of it has failed."""
        assert self._nodes is not None
        parts = {*self._working, self._nodes}
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in parts:
            if part.done():
                log.error("a part of the cluster ended", extra={"part": part.get_name(), "result": str(part)})

    async def _start(self) -> None:
        options = self._options
        options.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._store = await Store.open(None if options.in_memory else options.directory / STATE)
        self._forgetting = asyncio.create_task(retention.keep(self._store, retention.Retention()), name="compaction")
        agent_kubelet = kubelet.AgentKubelet()
        server = ApiServer(
            self._store,
            directory=options.directory,
            port=options.port,
            kubelet=agent_kubelet,
            aliases={MANUALS_GROUP: taskset.GROUP},
            unattended=UNATTENDED,
        )
        self._server = await server.__aenter__()
        connection = kubeconfig.load(str(server.kubeconfig))
        self._client = await clients.Client(connection).__aenter__()
        await _teach(self._client)
        runtime = nodes.runtime(self._client, options.directory, options.pretend)
        agent_kubelet.runtime = runtime
        agent = nodes.agent(self._client, runtime, options.directory, options.nodes, options.resources)
        self._nodes = asyncio.create_task(agent.run(), name="nodes")
        as_manager = ours.acting_as(connection, server, *CONTROLLER_MANAGER)
        own = manager.Manager(settings.Settings(leader_elect=False, health_address=""), as_manager)
        wiring = own_controllers.Options(
            scheduler_name=options.scheduler_name,
            root_ca=server.ca_pem.decode(),
            # One agent speaks for all nodes: the more of them, the longer the last one may have to wait for its turn.
            node_grace_s=NODE_GRACE_S + options.nodes,
        )
        own_controllers.add_all(own, wiring)
        self._work("controllers", own)
        if options.services:
            made = ours.services(server, connection, self._client, options.policy)
            self._work("services", await self._serving.enter_async_context(made))
        await asyncio.wait({asyncio.create_task(agent.ready.wait()), self._nodes}, return_when=asyncio.FIRST_COMPLETED)
        if self._nodes.done():
            self._nodes.result()

    def _work(self, name: str, made: manager.Manager) -> None:
        self._managers.append(made)
        self._working.add(asyncio.create_task(made.serve(), name=name))

    async def _stop(self) -> None:
        for each in self._managers:
            each.stop()
        if self._working:
            await asyncio.wait(self._working)
        await self._serving.aclose()
        if self._client is not None and self._nodes is not None:
            if not self._options.pretend:  # of those that are pretended nothing runs, and there may be thousands
                # Nobody makes new ones any more. To their owners they are lost, as on a node that is drained.
                await nodes.drain(self._client, DRAIN_S)
            self._nodes.cancel()
            await asyncio.gather(self._nodes, return_exceptions=True)
        if self._client is not None:
            await self._client.__aexit__(None, None, None)
        if self._server is not None:
            await self._server.__aexit__(None, None, None)
        if self._forgetting is not None:
            self._forgetting.cancel()
            await asyncio.gather(self._forgetting, return_exceptions=True)
        if self._store is not None:
            await self._store.close()


async def _teach(client: clients.Client) -> None:
    """Our kinds, as this version of us knows them."""
    await asyncio.gather(*(_teach_one(client, kind) for kind in kinds.ALL))


async def _teach_one(client: clients.Client, kind: kinds.Kind) -> None:
    body = crd.render(kind)
    try:
        await client.create(scheme.CRDS, "", body)
    except errors.AlreadyExists:
        await client.merge_patch(scheme.CRDS, "", kind.definition, {"spec": body["spec"]})
