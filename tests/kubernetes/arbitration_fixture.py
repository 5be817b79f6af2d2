"""The stage of arbitration tests as fixtures, on a real Kubernetes and on the embedded cluster; for `conftest.py`."""

import json
from collections.abc import Iterator

import pytest
from arbitration_stage import Arbitrator, Stage, install, webhook_is_there
from embedded_bed import EmbeddedBed
from eventual import eventually

from octarbiter.testing.kubernetes.bed import Testbed

SIZE = {"cpu": "9", "memory": "32Gi"}


@pytest.fixture(scope="session")
def small_bed(programs: None) -> Iterator[Testbed]:
    """One node of 9 CPU and 32Gi."""
    with Testbed(fake_nodes=1, resources=SIZE) as testbed:
        yield testbed


@pytest.fixture(scope="session")
def small_embedded_bed(programs: None) -> Iterator[EmbeddedBed]:
    with EmbeddedBed(fake_nodes=1, resources=SIZE) as made:
        yield made


@pytest.fixture(scope="module", params=["kubernetes", "embedded"])
def arbitrated_bed(request: pytest.FixtureRequest) -> Testbed:
    fixtures = {"kubernetes": "small_bed", "embedded": "small_embedded_bed"}
    found: Testbed = request.getfixturevalue(fixtures[request.param])
    install(found)
    return found


@pytest.fixture(scope="module")
def arbitrator(arbitrated_bed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arbitrator]:
    made = Arbitrator(arbitrated_bed, tmp_path_factory.mktemp("arbitrator"))
    made.start()
    try:
        eventually(lambda: webhook_is_there(arbitrated_bed), "the webhook to be configured")
        yield made
    finally:
        made.stop()


@pytest.fixture
def stage(arbitrated_bed: Testbed, arbitrator: Arbitrator) -> Iterator[Stage]:
    made, since = Stage(arbitrated_bed, arbitrator), arbitrator.log_size
    try:
        yield made
        assert [line for line in arbitrator.lines(since) if line.get("exception")] == []
    finally:
        # Shown where the test has failed, and only then.
        print("--- what the arbitrator said", *map(json.dumps, arbitrator.lines(since)), sep="\n")
        made.clear()
