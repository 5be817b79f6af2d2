"""Clients that know nothing of us, on the embedded cluster: one of pretended pods, one that runs their programs.

The programs of Kubernetes come from the test bed. Where they cannot be had those tests are skipped, and say why; with
OCTARBITER_REQUIRE_KUBERNETES=1 they fail instead.

What is said of kubectl is tried with the one of the test bed. OCTARBITER_KUBECTLS=1.27,1.30 adds these, which are built
if need be, and `all` adds all (`make test-kubectls`).
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubectl_runner import Kubectl

from octarbiter.testing.cluster import EmbeddedCluster
from octarbiter.testing.kubernetes import build, kubectls, versions

PROGRAMS = ("kubectl", "kube-scheduler")
_PROBLEM = pytest.StashKey[str]()
_OTHERS = pytest.StashKey[list[str]]()

KubectlOf = Callable[[EmbeddedCluster, str], Kubectl]
"""For a cluster and a namespace."""


def pytest_configure(config: pytest.Config) -> None:
    try:
        config.stash[_OTHERS] = kubectls.named(os.environ.get("OCTARBITER_KUBECTLS", ""))
    except ValueError as problem:
        raise pytest.UsageError(f"OCTARBITER_KUBECTLS: {problem}") from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kubectl_minor" in metafunc.fixturenames:
        metafunc.parametrize("kubectl_minor", [versions.MINOR, *metafunc.config.stash[_OTHERS]], scope="session")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test: it takes longer than any one test may."""
    needed = any("programs" in getattr(item, "fixturenames", ()) for item in session.items)
    if not needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            build.ensure(PROGRAMS, stream=sys.stderr)
            kubectls.ensure(session.config.stash[_OTHERS], stream=sys.stderr)
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


@pytest.fixture(scope="session")
def kubectl_of(programs: dict[str, Path], kubectl_minor: str, tmp_path_factory: pytest.TempPathFactory) -> KubectlOf:
    """The version that is tried, with a memory of its own."""
    home = tmp_path_factory.mktemp("home")
    if kubectl_minor == versions.MINOR:
        program, version = programs["kubectl"], versions.KUBERNETES
    else:
        program, version = kubectls.found()[kubectl_minor], kubectls.MINORS[kubectl_minor]
    return lambda cluster, namespace: Kubectl(program, cluster.kubeconfig, home, namespace, version)


@pytest.fixture
def kubectl(kubectl_of: KubectlOf, cluster: EmbeddedCluster, namespace: str) -> Kubectl:
    return kubectl_of(cluster, namespace)


@pytest.fixture
def running_kubectl(kubectl_of: KubectlOf, running_cluster: EmbeddedCluster, running_namespace: str) -> Kubectl:
    return kubectl_of(running_cluster, running_namespace)
