"""Clients that know nothing of us, on the embedded cluster: one of pretended pods, one that runs their programs.

The programs of Kubernetes come from the test bed. Where they cannot be had those tests are skipped, and say why; with
OCTARBITER_REQUIRE_KUBERNETES=1 they fail instead.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubectl_runner import Kubectl

from octarbiter.testing.cluster import EmbeddedCluster
from octarbiter.testing.kubernetes import build

PROGRAMS = ("kubectl", "kube-scheduler")
_PROBLEM = pytest.StashKey[str]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test: it takes longer than any one test may."""
    needed = any("programs" in getattr(item, "fixturenames", ()) for item in session.items)
    if not needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            build.ensure(PROGRAMS, stream=sys.stderr)
    except build.Unavailable as problem:
        session.config.stash[_PROBLEM] = f"NO PROGRAMS OF KUBERNETES: {problem}"


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> dict[str, Path]:
    """kubectl and kube-scheduler, as their authors wrote them."""
    if problem := request.config.stash.get(_PROBLEM, None):
        if os.environ.get("OCTARBITER_REQUIRE_KUBERNETES") == "1":
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    return build.ensure(PROGRAMS)


@pytest.fixture(scope="session")
def cluster() -> Iterator[EmbeddedCluster]:
    """Its pods pretend to run, on two nodes."""
    with EmbeddedCluster(nodes=2) as made:
        yield made


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[EmbeddedCluster]:
    """Its pods run their commands."""
    with EmbeddedCluster(programs=True) as made:
        yield made


@pytest.fixture
def namespace(cluster: EmbeddedCluster) -> str:
    return cluster.create_namespace()


@pytest.fixture
def running_namespace(running_cluster: EmbeddedCluster) -> str:
    return running_cluster.create_namespace()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(programs: dict[str, Path], cluster: EmbeddedCluster, home: Path, namespace: str) -> Kubectl:
    return Kubectl(programs["kubectl"], cluster.kubeconfig, home, namespace)


@pytest.fixture
def running_kubectl(
    programs: dict[str, Path], running_cluster: EmbeddedCluster, home: Path, running_namespace: str
) -> Kubectl:
    return Kubectl(programs["kubectl"], running_cluster.kubeconfig, home, running_namespace)
