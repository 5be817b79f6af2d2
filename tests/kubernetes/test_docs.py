"""What the documents say is true: each is done from top to bottom on a cluster, as a reader would do it."""

import dataclasses
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from documents import ROOT, blocks
from terminal import Terminal

from octarbiter.testing.kubernetes import build
from octarbiter.testing.kubernetes.bed import Testbed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a reader would be: a directory with the examples, in which nothing of the checkout can be hurt."""
    place = tmp_path / "reader"
    shutil.copytree(ROOT / "examples", place / "examples")
    return place


@pytest.fixture
def env(bed: Testbed, namespace: str, tmp_path: Path) -> dict[str, str]:
    """The reader's: a namespace of their own, and a controller that keeps to it."""
    config = yaml.safe_load(bed.control_plane.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    kubeconfig.chmod(0o600)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OCTO_", "PYTEST_"))}
    kubectl = build.ensure(["kubectl"])["kubectl"]
    return kept | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:{kubectl.parent}",
        "KUBECONFIG": str(kubeconfig),
        "OCTO_NAMESPACE": namespace,
        "OCTO_LEASE_NAMESPACE": namespace,
        "OCTO_HEALTH_ADDRESS": f"127.0.0.1:{free_port()}",
        "OCTO_LOG_FORMAT": "text",
    }


@pytest.fixture
def controller(place: Path, env: dict[str, str]) -> Iterator[None]:
    """What a cluster has in which somebody has installed it."""
    subprocess.run(["octo", "install", "--crds-only", "--apply"], env=env, check=True)
    with (place.parent / "controller.log").open("wb") as log:
        process = subprocess.Popen(["octo", "controller"], env=env, stdout=log, stderr=log)
    yield
    process.terminate()
    assert process.wait(30) == 0, log.name


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


README_LEFT_OUT = {
    "make demo": "it starts a cluster of its own",
    "make test": "it runs these tests",
    "pip install .": "the tests have it installed",
    "octo install --apply": "the nodes of the test have no image of the controller",
}


def follow(
    document: str,
    place: Path,
    env: Mapping[str, str],
    spelled: Mapping[str, str] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> None:
    """`left_out`: commands that are not run, and why; added to what the document itself leaves out."""
    with Terminal(place, env, spelled) as terminal:
        for block in blocks(document):
            if left_out and not (block.reason and not block.without):
                reason = block.reason or "; ".join(left_out.values())
                block = dataclasses.replace(block, reason=reason, without=(*block.without, *left_out))
            if block.language == "sh":
                terminal.do(block)


def test_the_tutorial_shows_what_a_reader_sees(place: Path, env: dict[str, str]) -> None:
    follow("docs/tutorial.md", place, env)


def test_the_readme_shows_commands_that_work(place: Path, env: dict[str, str], controller: None) -> None:
    for example in (place / "examples").glob("*.yaml"):
        # Enough to see that it works, and ten times faster.
        example.write_text(example.read_text().replace("sleep 30", "sleep 3"))

    follow("README.md", place, env, left_out=README_LEFT_OUT)


def test_the_guide_to_operating_shows_what_a_reader_sees(place: Path, env: dict[str, str]) -> None:
    spelled = {f"127.0.0.1:{port}": f"127.0.0.1:{free_port()}" for port in (8080, 8081)}

    follow("docs/guides/operating.md", place, env, spelled | {"kube-system": env["OCTO_LEASE_NAMESPACE"]})


def test_the_guide_to_testing_shows_what_a_reader_sees(place: Path, env: dict[str, str]) -> None:
    follow("docs/guides/testing.md", place, env)
