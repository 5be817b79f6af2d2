"""What the documents say is true: each is done from top to bottom on a cluster, as a reader would do it."""

import dataclasses
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from terminal import Terminal

from documents import ROOT, Block, blocks
from octarbiter.testing.kubernetes import build
from octarbiter.testing.kubernetes.bed import Testbed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a reader would be: a directory with the examples, in which nothing of the checkout can be hurt."""
    place = tmp_path / "reader"
    shutil.copytree(ROOT / "examples", place / "examples")
    return place


@pytest.fixture
def shell(programs: None) -> dict[str, str]:
    """The environment of somebody who has installed us, and has kubectl."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OCTO_", "PYTEST_"))}
    kubectl = build.ensure(["kubectl"])["kubectl"]
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:{kubectl.parent}"}


@pytest.fixture
def env(shell: dict[str, str], bed: Testbed, namespace: str, tmp_path: Path) -> dict[str, str]:
    """With a cluster, a namespace of their own in it, and settings that keep a controller to that."""
    config = yaml.safe_load(bed.control_plane.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch(0o600)
    kubeconfig.write_text(yaml.safe_dump(config))
    return shell | {
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


# The README is to be read, so it has no comments for us. What of it is not run, and why:
README_LEFT_OUT = {
    "make demo": "it starts a cluster of its own",
    "make test": "it runs these tests",
    "pip install .": "the tests have it installed",
    "octo run": "it is for those who have no cluster; the guide to the embedded one runs it",
    "octo install --apply": "the nodes of the test have no image of the controller",
}


def follow(place: Path, env: Mapping[str, str], steps: list[Block], spelled: Mapping[str, str] | None = None) -> None:
    with Terminal(place, env, spelled) as terminal:
        for block in steps:
            if block.language == "sh":
                terminal.do(block)


def without(block: Block, commands: Iterable[str]) -> Block:
    lines = block.text.splitlines(keepends=True)
    return dataclasses.replace(block, text="".join(line for line in lines if not line.startswith(tuple(commands))))


def test_the_tutorial_shows_what_a_reader_sees(place: Path, env: dict[str, str]) -> None:
    follow(place, env, blocks("docs/tutorial.md"))


def test_the_readme_shows_commands_that_work(place: Path, env: dict[str, str], controller: None) -> None:
    for example in (place / "examples").glob("*.yaml"):
        # Enough to see that it works, and ten times faster.
        example.write_text(example.read_text().replace("sleep 30", "sleep 3"))

    follow(place, env, [without(block, README_LEFT_OUT) for block in blocks("README.md")])


def test_the_guide_to_the_embedded_cluster_shows_what_a_reader_sees(
    place: Path, shell: dict[str, str], tmp_path: Path
) -> None:
    env = {name: value for name, value in shell.items() if name != "KUBECONFIG"} | {"OCTO_HOME": str(tmp_path / "home")}
    follow(place, env, blocks("docs/guides/embedded.md"))


def test_the_guide_to_operating_shows_what_a_reader_sees(place: Path, env: dict[str, str], bed: Testbed) -> None:
    spelled = {f"127.0.0.1:{port}": f"127.0.0.1:{free_port()}" for port in (8080, 8081)}

    spelled["kube-system"] = env["OCTO_LEASE_NAMESPACE"]

    try:
        follow(place, env, blocks("docs/guides/operating.md"), spelled)
    finally:
        bed.control_plane.kubectl("delete", "namespace", "vision", "--ignore-not-found", "--wait=false")


def test_the_guide_to_testing_shows_what_a_reader_sees(place: Path, shell: dict[str, str]) -> None:
    follow(place, shell, blocks("docs/guides/testing.md"))
