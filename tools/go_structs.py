"""Which fields has a Go struct of Kubernetes, and how do they travel?

Reads the sources in Go's module cache. The JSON schemas that a server publishes do not say what a field's number in
protobuf is, whether its zero is written or left out, and what its Go type is called in error messages; the tags of the
structs do.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from octarbiter.testing.kubernetes import versions

_MODULES = ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator")
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^type (\w+) ([\w.\[\]*]+)$", re.MULTILINE)
_ALIAS = re.compile(r"^type (\w+) = ([\w.]+)$", re.MULTILINE)
_IMPORT = re.compile(r'^\s*(?:import )?(?:(\w+) )?"([\w./-]+)"$', re.MULTILINE)
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?([\w.\[\]*{}]+)\s+`([^`]*)`", re.MULTILINE)
_BASIC = {"string", "bool", "int", "int32", "int64", "float64", "byte", "interface{}", "any"}


@dataclass(frozen=True)
class Field:
    name: str
    """In JSON; empty for a struct whose fields stand where it stands."""
    go: str
    """As Go prints the type, without a leading pointer: `[]v1.Container`. Of a nameless one: its component."""
    number: int
    presence: str
    """What becomes of a zero: see `types.Presence`."""


def fields_of(component: str) -> list[Field] | None:
    """None if no such struct is found; `component` is its name in OpenAPI, such as `io.k8s.api.core.v1.PodSpec`."""
    package, _, name = component.rpartition(".")
    found = _package(_import_path(package))
    if found is None or name not in found.structs:
        return None
    return [field for tag in _tags(found.structs[name]) if (field := _field(found, *tag))]


def _tags(body: str) -> Iterator[tuple[str, str, str]]:
    for match in _FIELD.finditer(re.sub(r"^\s*//.*$", "", body, flags=re.MULTILINE)):
        yield match[1] or "", match[2], match[3]


def _field(package: _Package, name: str, go: str, tags: str) -> Field | None:
    json, *options = _tag(tags, "json").split(",")
    number = _tag(tags, "protobuf").split(",")
    if json == "-" or (not json and name and "inline" not in options):
        return None
    inline = not name and not json
    return Field(
        name="" if inline else json,
        go=_component(package, go) if inline else _printed(package, go).removeprefix("*"),
        number=int(number[1]) if len(number) > 1 else 0,
        presence="inline" if inline else _presence(_underlying(package, go), options),
    )


def _tag(tags: str, key: str) -> str:
    found = re.search(rf'\b{key}:"([^"]*)"', tags)
    return found[1] if found else ""


def _presence(go: str, options: list[str]) -> str:
    """Go leaves out empty strings, numbers, lists and maps when told so, but never a struct that is not a pointer."""
    omit = "omitempty" in options
    if go.startswith("*"):
        return "kept" if omit else "null"
    if go.startswith(("[]", "map[")) or go in ("interface{}", "any"):
        return "dropped" if omit else "null"
    if go in _BASIC:
        return "dropped" if omit else "filled"
    return "kept" if "omitzero" in options else "filled"


@dataclass(frozen=True)
class _Package:
    path: str
    imports: dict[str, str]
    structs: dict[str, str]
    named: dict[str, str]
    aliases: dict[str, str]


@functools.cache
def _package(path: str) -> _Package | None:
    directory = _directory(path)
    if directory is None:
        return None
    files = [file for file in sorted(directory.glob("*.go")) if not file.name.startswith(("zz_", "generated"))]
    texts = [file.read_text() for file in files if not file.name.endswith("_test.go")]
    source = "\n".join(texts)
    imports = {alias or target.rpartition("/")[2]: target for alias, target in _IMPORT.findall(source)}
    aliases = dict(_ALIAS.findall(source))
    return _Package(path, imports, dict(_STRUCT.findall(source)), dict(_NAMED.findall(source)) | aliases, aliases)


@functools.cache
def _cache() -> Path:
    return Path(subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout.strip())


def _directory(path: str) -> Path | None:
    version = "v0" + versions.KUBERNETES.removeprefix("v1")
    for module in _MODULES:
        if path == module or path.startswith(f"{module}/"):
            return _cache() / f"{module}@{version}{path.removeprefix(module)}"
    return None


def _underlying(package: _Package, go: str) -> str:
    alias, dot, short = go.rpartition(".")
    where = _package(package.imports[alias]) if dot and alias in package.imports else package
    # Pointers, lists and maps are what they are, whatever of.
    if go.startswith(("*", "[", "map[")) or where is None or short not in where.named:
        return go
    return _underlying(where, where.named[short])


def _printed(package: _Package, go: str) -> str:
    def qualified(match: re.Match[str]) -> str:
        alias, dot, short = match[0].rpartition(".")
        if dot:
            return f"{package.imports[alias].rpartition('/')[2]}.{short}"
        if short in _BASIC or short == "map":
            return "uint8" if short == "byte" else short
        return f"{package.path.rpartition('/')[2]}.{package.aliases.get(short, short)}"

    return re.sub(r"[A-Za-z][\w.]*", qualified, go.replace("interface{}", "any")).replace("any", "interface {}")


def _component(package: _Package, go: str) -> str:
    alias, dot, short = go.rpartition(".")
    path = package.imports[alias] if dot else package.path
    return "io.k8s." + path.removeprefix("k8s.io/").replace("/", ".") + f".{short}"


def _import_path(package: str) -> str:
    return "k8s.io/" + package.removeprefix("io.k8s.").replace(".", "/")
