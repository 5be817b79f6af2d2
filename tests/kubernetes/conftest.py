"""Tests on a real Kubernetes share one bed a session. Where none can be had they are skipped, and say why;
with OCTARBITER_REQUIRE_KUBERNETES=1 they fail instead."""

import os
import sys
from collections.abc import Iterator

import pytest
from arbitration_fixture import arbitrated_bed as arbitrated_bed
from arbitration_fixture import arbitrator as arbitrator
from arbitration_fixture import small_bed as small_bed
from arbitration_fixture import small_embedded_bed as small_embedded_bed
from arbitration_fixture import stage as stage
from real_node_fixture import real_bed as real_bed
from taskset_fixture import any_bed as any_bed
from taskset_fixture import controller as controller
from taskset_fixture import embedded_bed as embedded_bed
from taskset_fixture import interruptible_bed as interruptible_bed
from taskset_fixture import observer as observer
from taskset_fixture import real_controller as real_controller
from taskset_fixture import real_observer as real_observer
from taskset_fixture import real_tasksets as real_tasksets
from taskset_fixture import tasksets as tasksets

from octarbiter.testing.kubernetes import build
from octarbiter.testing.kubernetes.bed import Testbed

_PROBLEM = pytest.StashKey[str]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test: it takes longer than any one test may."""
    beds = {"any_bed", "arbitrated_bed", "bed", "programs", "real_bed"}
    needed = any(beds & set(getattr(item, "fixturenames", ())) for item in session.items)
    if not needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            build.ensure(stream=sys.stderr)
    except build.Unavailable as problem:
        session.config.stash[_PROBLEM] = f"NO REAL KUBERNETES: {problem}"


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> None:
    """All programs of a control plane are there."""
    if problem := request.config.stash.get(_PROBLEM, None):
        if os.environ.get("OCTARBITER_REQUIRE_KUBERNETES") == "1":
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)


@pytest.fixture(scope="session")
def bed(programs: None) -> Iterator[Testbed]:
    with Testbed(fake_nodes=5, resources={"nvidia.com/gpu": "8"}) as testbed:
        yield testbed


@pytest.fixture
def namespace(bed: Testbed) -> Iterator[str]:
    name = bed.control_plane.create_namespace()
    yield name
    bed.control_plane.request("DELETE", f"/api/v1/namespaces/{name}")
