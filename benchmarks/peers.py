"""Other projects' programs, for side-by-side runs: built from their published Go modules into the user's cache.

Nothing of theirs is part of this project: the module is downloaded, copied out of Go's cache and built in place.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from octarbiter.testing.kubernetes import build

KUEUE = "v0.19.0"


class Kueue:
    """Its own performance runner, and the small manager that the runner measures."""

    def __init__(self, home: Path) -> None:
        self.source = home / "source"
        self.runner = home / "runner"
        self.minimal = home / "minimalkueue"
        self.generator = "test/performance/scheduler/configs/baseline/generator.yaml"


def kueue() -> Kueue:
    home = build.cache_home() / "peers" / f"kueue-{KUEUE}"
    found = Kueue(home)
    if not (os.access(found.runner, os.X_OK) and os.access(found.minimal, os.X_OK)):
        source = _module("sigs.k8s.io/kueue", KUEUE, home)
        for program in (found.runner, found.minimal):
            _go(["build", "-o", str(program), f"./test/performance/scheduler/{program.name}"], source)
    return found


def _module(path: str, version: str, home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    told = json.loads(_go(["mod", "download", "-json", f"{path}@{version}"], home))
    shutil.rmtree(home / "source", ignore_errors=True)
    # Files of the module cache are read-only, and must stay so there.
    shutil.copytree(told["Dir"], home / "source", copy_function=shutil.copyfile)
    for directory, _, _ in os.walk(home / "source"):
        os.chmod(directory, 0o755)
    return home / "source"


def _go(arguments: list[str], directory: Path) -> str:
    print(f"go {' '.join(arguments)} ...", file=sys.stderr, flush=True)
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    done = subprocess.run(["go", *arguments], cwd=directory, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"go {' '.join(arguments)} failed with {done.returncode}")
    return done.stdout
