"""What the guides to queues say is true: each is done from top to bottom on a cluster of this machine."""

import subprocess
from pathlib import Path

import pytest
import test_docs

from documents import blocks

place, shell = test_docs.place, test_docs.shell


@pytest.mark.parametrize("name", ["sharing", "drf", "arbitration"])
def test_a_guide_to_queues_shows_what_a_reader_sees(
    place: Path, shell: dict[str, str], tmp_path: Path, name: str
) -> None:
    # As somebody who has no cluster, and not even a kubeconfig.
    env = {key: value for key, value in shell.items() if key != "KUBECONFIG"}
    env |= {"OCTO_HOME": str(tmp_path / "octo"), "HOME": str(tmp_path / "home")}
    try:
        test_docs.follow(place, env, blocks(f"docs/guides/{name}.md"))
    finally:
        subprocess.run(["octo", "down", "--delete"], env=env, check=False)
