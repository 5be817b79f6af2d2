"""docs/dependencies.md names everything we depend on, as it is."""

import importlib.metadata
import re
import tomllib

import pytest

from documents import ROOT
from octarbiter.testing.kubernetes import node, versions

PAGE = (ROOT / "docs" / "dependencies.md").read_text()
LOCKED = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))


def declared() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    names = [re.match(r"[\w.-]+", requirement) for requirements in lists for requirement in requirements]
    return sorted({name[0] for name in names if name})


def lines() -> dict[str, list[str]]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    return {row[0]: row for row in rows}


def test_every_dependency_has_its_line_and_no_other() -> None:
    packages = [row[0] for row in lines().values() if len(row) == 7 and row[0] not in ("Package", "---")]

    assert sorted(packages) == declared()


@pytest.mark.parametrize("name", declared())
def test_a_line_says_what_the_package_says_of_itself(name: str) -> None:
    _, need, why, version, licence, status, python = lines()[name]

    assert need
    assert why
    assert version == LOCKED[name.lower()]
    about = importlib.metadata.metadata(name)
    if about["Version"] != version:
        pytest.skip(f"{name} {about['Version']} is installed, {version} is locked")
    classifiers = [classifier.split(" :: ") for classifier in about.get_all("Classifier") or []]
    licences = [parts[-1] for parts in classifiers if parts[0] == "License"]
    pythons = [
        parts[2] for parts in classifiers if re.fullmatch(r"Programming Language/Python/3\.\d+", "/".join(parts))
    ]
    statuses = [parts[1] for parts in classifiers if parts[0] == "Development Status"]
    newest = max(pythons, key=lambda version: int(version.split(".")[1]), default="-")
    assert licence == (about["License-Expression"] or about["License"] or licences[-1])
    assert [status] == (statuses or ["-"])
    assert python == newest


def test_the_programs_of_the_test_bed_have_their_versions() -> None:
    found = {name.partition(" ")[0]: row for name, row in lines().items()}

    assert found["Kubernetes"][2] == versions.KUBERNETES
    assert found["etcd"][2] == versions.ETCD
    assert found["kwok"][2] == versions.KWOK
    assert f"in version {versions.GO_FROM_PYPI}." in PAGE


def test_the_debian_packages_are_those_a_real_node_needs() -> None:
    ours = (ROOT / ".ci" / "run").read_text()
    listed = re.search(r"packages=\((.+)\)", ours)
    assert listed is not None

    assert set(listed[1].split()) | set(node._NEEDS.values()) <= lines().keys()
