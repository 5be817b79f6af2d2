"""How is a small program of ours started beside the agent? Without site-packages: it must be there at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import octarbiter

_PACKAGES: Final = str(Path(octarbiter.__file__).parents[1])
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from octarbiter.cluster.nodeagent.runtimes import {module}; {module}.main(*sys.argv[2:])"
)


def supervisor(directory: Path) -> Sequence[str]:
    return _line("supervisor", str(directory))


def namespaces() -> Sequence[str]:
    """Exits with 0 where mount namespaces can be had."""
    return _line("namespaces")


def entry(directory: Path, command: Sequence[str]) -> Sequence[str]:
    return _line("entry", str(directory), *command)


def _line(module: str, *arguments: str) -> Sequence[str]:
    return [sys.executable, "-I", "-S", "-c", _PROGRAM.format(module=module), _PACKAGES, *arguments]
