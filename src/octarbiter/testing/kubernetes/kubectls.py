"""Where are the kubectls of other versions than the test bed's, and if they are nowhere, how are they made?

All are one small program of ours over the published module `k8s.io/kubectl`, with a module file for each minor version
(`gomod/kubectl/v1.N.mod`). The cache keeps them, so a machine builds each once (a minute or two on two cores).
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from octarbiter.testing.kubernetes import build, versions

MINORS = {version.removeprefix("v").rpartition(".")[0]: version for version in versions.KUBECTLS}
"""The minor versions that can be had, such as 1.27, and which patch of each."""


def found() -> dict[str, Path]:
    """Those that are there already, by minor version; never builds."""
    places = {minor: _home(minor) / "kubectl" for minor in MINORS}
    return {minor: place for minor, place in places.items() if os.access(place, os.X_OK)}


def ensure(minors: Iterable[str], stream: TextIO | None = None) -> dict[str, Path]:
    """These, by minor version, after building those that are nowhere."""
    minors = tuple(minors)
    for minor in minors:
        if minor not in found():
            build.make({"kubectl": _program(minor)}, _home(minor), stream)
    return {minor: place for minor, place in found().items() if minor in minors}


def named(text: str) -> list[str]:
    """The minor versions in a list such as `1.27,1.30`, or in `all`; ValueError says which there are.

    That of the test bed is there anyway, and may be named, too.
    """
    asked = {each.strip() for each in text.split(",")} - {"", versions.MINOR}
    if unknown := sorted(asked - MINORS.keys() - {"all"}):
        raise ValueError(f"no kubectl {', '.join(unknown)}: there are {', '.join(MINORS)}, and all of them is `all`")
    return [minor for minor in MINORS if minor in asked or "all" in asked]


def _home(minor: str) -> Path:
    return build.cache_home() / "kubectl" / f"{MINORS[minor]}_{build.machine()}"


def _program(minor: str) -> build.Program:
    version = MINORS[minor]
    return build.Program("kubectl", ".", version, build.stamps_of(version), f"v{minor}.mod")
