"""Two servers a session: Kubernetes' own and the embedded one. Without Kubernetes there is nothing to compare with:
the suite is skipped and says why; with OCTARBITER_REQUIRE_KUBERNETES=1 it fails instead."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from furniture import furnish
from harness import Server

from octarbiter.cluster.apiserver.server import ApiServer
from octarbiter.cluster.store.store import Store
from octarbiter.testing.kubernetes import build
from octarbiter.testing.kubernetes.controlplane import ControlPlane

_PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
_PROBLEM = pytest.StashKey[str]()
_START_S = 60.0


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test: it takes longer than any one test may."""
    needed = any("real" in getattr(item, "fixturenames", ()) for item in session.items)
    if not needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            build.ensure(_PROGRAMS, stream=sys.stderr)
    except build.Unavailable as problem:
        session.config.stash[_PROBLEM] = f"NO REAL KUBERNETES: {problem}"


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest) -> Iterator[Server]:
    if problem := request.config.stash.get(_PROBLEM, None):
        if os.environ.get("OCTARBITER_REQUIRE_KUBERNETES") == "1":
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    with _WithAccounts(controller_manager=False, scheduler=False) as plane:
        server = Server(plane.url, plane.authority.pem, plane.admin_token)
        furnish(server)
        yield server
        server.close()


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = _Embedded(tmp_path_factory.mktemp("embedded"))
    running.start()
    try:
        server = Server(running.server.url, running.server.ca_pem, running.server.token)
        furnish(server)
        yield server
        server.close()
    finally:
        running.stop()


class _WithAccounts(ControlPlane):
    """Pods need accounts there, too: the cases' namespaces have one."""

    def _flags_of_apiserver(self, port: int) -> list[str]:
        return [
            flag for flag in super()._flags_of_apiserver(port) if flag != "--disable-admission-plugins=ServiceAccount"
        ]


class _Embedded:
    """The embedded server in a thread with a loop of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="embedded", daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(_START_S), "the embedded server does not start"
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(_START_S)

    def _work(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as problem:
            self._problem = problem
            self._started.set()

    async def _serve(self) -> None:
        store = await Store.open(None)
        async with ApiServer(store, directory=self._directory) as self.server:
            self._started.set()
            await self._end.wait()
        await store.close()
