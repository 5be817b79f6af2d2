"""The bed with a real node and no fake ones, one for all tests that ask for it; for `conftest.py` to import."""

import os
from collections.abc import Iterator

import pytest

from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.node import RealNode


@pytest.fixture(scope="session")
def real_bed(programs: None) -> Iterator[Testbed]:
    if problem := RealNode.unavailable():
        if os.environ.get("OCTARBITER_REQUIRE_KUBERNETES") == "1":
            pytest.fail(f"NO REAL NODE: {problem}", pytrace=False)
        pytest.skip(f"NO REAL NODE: {problem}")
    with Testbed(fake_nodes=0, real_node=True) as testbed:
        yield testbed
