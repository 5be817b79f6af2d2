"""What we publish tells nothing of the machine it was written on, nor where that machine gets its packages."""

import re
import subprocess

import pytest

from documents import ROOT

# In pieces, so that this file does not hold what it looks for.
HOSTS = [
    *(f"{name}.org" for name in ("py" + "pi", "python" + "hosted", "deb.debian", "proxy.golang", "sum.golang")),
    *(f"registry.{name}" for name in ("npmjs", "k8s")),
]
PLACES = ["/" + "work/", "/" + "root/", "/" + "Users/", "/" + "home/(?!ada/)"]
"""Ada is whoever reads the examples."""
FORBIDDEN = re.compile("|".join([*map(re.escape, HOSTS), *(rf"(?<![\w$}}.-]){place}" for place in PLACES)]))


def tracked() -> list[str]:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_package_registry_or_a_place_on_somebodys_machine() -> None:
    found = []
    for name in tracked():
        text = (ROOT / name).read_bytes().decode(errors="replace")
        lines = enumerate(text.splitlines(), 1)
        found += [f"{name}:{number}: {hit[0]}" for number, line in lines if (hit := FORBIDDEN.search(line))]

    assert found == []


@pytest.mark.parametrize("line", [f"cd {PLACES[0]}main", f"see https://{HOSTS[0]}/x", f"'{PLACES[1]}.cache'"])
def test_such_a_line_is_seen(line: str) -> None:
    assert FORBIDDEN.search(line)


@pytest.mark.parametrize("line", ["$layer/" + "work/x", "tests/" + "work/x", "/" + "home/ada/.kube/config"])
def test_a_path_inside_a_project_is_none(line: str) -> None:
    assert not FORBIDDEN.search(line)
