"""Imports point towards the nouns: read from the source, so that no arrow can be drawn against it unseen."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "octarbiter"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE

# Layer -> layers it may import (itself always). The longest name that fits a module is its layer.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "api": (),
    "core.lifecycle": ("api",),
    "core.arbitration": ("api",),
    "core.quota": ("api",),
    "core.placement": ("api", "core.arbitration"),
    "runtime": ("api",),
    "cluster.store": ("api",),
    "cluster.apiserver": ("api", "runtime", "cluster.store"),
    "cluster.nodeagent": ("api", "runtime"),
    "cluster.controllers": ("api", "runtime"),
    "services": ("api", "core", "runtime"),
    "simulator": ("api", "core"),
    "dashboard": ("api", "runtime"),
    "embedded": ("api", "core", "runtime", "cluster", "services"),
    "testing": ("api", "runtime", "cluster", "embedded"),
    "cli": ("api", "core", "runtime", "cluster", "services", "embedded", "simulator", "dashboard", "testing"),
}
# What the pure layers may have from outside; the others take what the project depends on.
OUTSIDE: dict[str, frozenset[str]] = {
    "api": frozenset({"msgspec"}),
    "core.lifecycle": frozenset({"msgspec"}),
    "core.quota": frozenset({"msgspec"}),
    "core.arbitration": frozenset({"msgspec", "numpy"}),
    "core.placement": frozenset({"msgspec", "numpy"}),
}
IMPURE = frozenset({"time", "uuid", "random", "os", "logging", "asyncio"})
CLOCKS = frozenset({"now", "utcnow", "today"})
# Packages that only hold others and say what they are.
MERE_FOLDERS = frozenset({"", "core", "cluster"})


def modules() -> list[str]:
    return sorted(_name(path) for path in SOURCE.rglob("*.py"))


def _name(path: Path) -> str:
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _tree(module: str) -> ast.Module:
    path = SOURCE.joinpath(*module.split(".")) if module else SOURCE
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())


def is_in(module: str, layer: str) -> bool:
    return module == layer or module.startswith(layer + ".")


def layer_of(module: str) -> str | None:
    return max((layer for layer in MAY_IMPORT if is_in(module, layer)), key=len, default=None)


def imports(tree: ast.Module, module: str, *, is_package: bool = False) -> Iterator[str]:
    """Full names, wherever in the file they are imported; ours without the package's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = [PACKAGE, *module.split(".")]
                above = above[: len(above) - node.level + (1 if is_package else 0)]
                base = ".".join([*above, base]) if base else ".".join(above)
            # `from octarbiter.api import pod` may name a module: then that is what is imported.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def upward(tree: ast.Module, module: str) -> list[str]:
    layer = layer_of(module)
    assert layer is not None
    ours = [name.removeprefix(f"{PACKAGE}.") for name in imports(tree, module) if name.split(".")[0] == PACKAGE]
    # The package itself holds nothing but its version.
    ours = [name for name in ours if name not in (PACKAGE, "__version__")]
    return [name for name in ours if not any(is_in(name, allowed) for allowed in (layer, *MAY_IMPORT[layer]))]


def strange(tree: ast.Module, module: str) -> list[str]:
    allowed = OUTSIDE.get(layer_of(module) or "")
    if allowed is None:
        return []
    roots = {name.split(".")[0] for name in imports(tree, module)} - {PACKAGE}
    return sorted(root for root in roots if root not in sys.stdlib_module_names and root not in allowed)


def impurities(tree: ast.Module, module: str) -> list[str]:
    """Imports of clocks, dice and the world, and the clocks inside datetime, under whatever name it was imported."""
    found = sorted({name.split(".")[0] for name in imports(tree, module)} & IMPURE)
    clocks = {"datetime", "date"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            clocks |= {alias.asname or alias.name for alias in node.names if alias.name in ("datetime", "date")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if name in clocks:
                found.append(f"{name}.{node.attr}")
    return found


def test_there_is_something_to_read() -> None:
    assert {"api.taskset", "core.lifecycle.decide", "runtime.client"} <= set(modules())


@pytest.mark.parametrize("module", [name for name in modules() if name not in MERE_FOLDERS and name != "__main__"])
def test_a_module_imports_only_what_its_layer_may(module: str) -> None:
    assert layer_of(module) is not None, f"{module} lies in no layer of the table"
    tree = _tree(module)

    assert upward(tree, module) == []
    assert strange(tree, module) == []


@pytest.mark.parametrize("module", [name for name in modules() if name in MERE_FOLDERS])
def test_a_mere_folder_imports_nothing(module: str) -> None:
    assert list(imports(_tree(module), module, is_package=True)) == []


@pytest.mark.parametrize("module", [name for name in modules() if is_in(name, "api") or is_in(name, "core")])
def test_nouns_and_decisions_have_no_clock_no_dice_no_world(module: str) -> None:
    assert impurities(_tree(module), module) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("api.taskset", "from octarbiter.core.lifecycle import decide"),
        ("core.lifecycle.decide", "from octarbiter import runtime"),
        ("core.lifecycle.decide", "import octarbiter.runtime.client"),
        ("core.lifecycle.decide", "from ...services import controllers"),
        ("runtime.client", "from octarbiter.core.lifecycle import names"),
        ("services.controllers.taskset", "from octarbiter.cluster.store import log"),
        ("testing.builders", "def f():\n    from octarbiter.cli import main"),
    ],
)
def test_an_arrow_that_points_up_is_seen(module: str, line: str) -> None:
    assert upward(ast.parse(line), module) != []


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "from os import path",
        "import asyncio.events",
        "from datetime import datetime as moment\nmoment.now()",
        "import datetime\ndatetime.datetime.utcnow()",
        "import datetime as d\nd.date.today()",
    ],
)
def test_a_clock_in_a_decision_is_seen(line: str) -> None:
    assert impurities(ast.parse(line), "core.lifecycle.decide") != []


def test_the_types_of_datetime_are_allowed() -> None:
    line = "from datetime import UTC, datetime, timedelta\ndatetime.fromtimestamp(0, UTC)\nself.now"

    assert impurities(ast.parse(line), "core.lifecycle.decide") == []
