"""A whole cluster inside a test: no Kubernetes, no containers, up in a second.

    with EmbeddedCluster(resources={"nvidia.com/gpu": "4"}) as cluster:
        namespace = cluster.create_namespace()
        cluster.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {...})
        subprocess.run(["kubectl", "get", "pods"], env={"KUBECONFIG": str(cluster.kubeconfig)})

It runs in a thread of its own with an event loop of its own, so tests may block. Pods pretend to run (see
`octarbiter.testing.kubernetes.fakepods` for the annotations that say how they end) unless `programs` is set: then their
commands are started, as processes of this user.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from octarbiter.embedded.cluster import Cluster, Options
from octarbiter.testing.kubernetes import connection

START_TIMEOUT_S = 60.0


class EmbeddedCluster:
    def __init__(
        self,
        *,
        nodes: int = 1,
        resources: Mapping[str, str] | None = None,
        programs: bool = False,
        services: bool = True,
        scheduler_name: str = "default-scheduler",
        directory: Path | None = None,
    ) -> None:
        """`services`: also our own controllers. `scheduler_name`: of our scheduler; pods that ask for another one wait
        for that. `directory`: state is kept there, and found again."""
        self._own = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="octo-test-"))
        self._options = Options(
            directory=self.directory,
            nodes=nodes,
            resources=dict(resources or {}),
            pretend=not programs,
            services=services,
            scheduler_name=scheduler_name,
            in_memory=self._own,
        )
        self._thread = threading.Thread(target=self._run, name="embedded-cluster", daemon=True)
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._problem: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the embedded cluster does not answer after {START_TIMEOUT_S:.0f} s")
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._own:
            shutil.rmtree(self.directory, ignore_errors=True)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """One API call: the decoded answer, or `octarbiter.testing.kubernetes.connection.ApiError`."""
        return self._connection.request(method, path, body, content_type)

    def create_namespace(self, prefix: str = "test-") -> str:
        made = self.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": prefix}})
        return str(made["metadata"]["name"])

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as problem:
            self._problem = problem
        finally:
            self._started.set()

    async def _serve(self) -> None:
        async with Cluster(self._options) as cluster:
            self._loop = asyncio.get_running_loop()
            self.kubeconfig, self.url = cluster.kubeconfig, cluster.url
            self.token, self.ca_pem = cluster.token, cluster.ca_pem
            self._connection = connection.Connection(cluster.url, cluster.ca_pem, cluster.token)
            self._started.set()
            await self._stop.wait()
            self._connection.close()
