"""Fixtures for anybody's pytest: installed with the package, found by name, costs nothing until it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from octarbiter.testing.cluster import EmbeddedCluster


@pytest.fixture(scope="session")
def octarbiter_cluster() -> Iterator[EmbeddedCluster]:
    """An embedded cluster for the whole session; pods only pretend to run."""
    from octarbiter.testing.cluster import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def octarbiter_namespace(octarbiter_cluster: EmbeddedCluster) -> str:
    """A fresh namespace in it."""
    return octarbiter_cluster.create_namespace()
