"""Which objects do the files of a command line hold, and what is wrong with them?

Everything is read and checked before anything is sent: one message tells every problem of every object of every file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from octarbiter.api import kinds, validation
from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.api.meta import Json
from octarbiter.runtime import manifest

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


class Document(msgspec.Struct, frozen=True):
    """One object, and where it stands."""

    where: str
    body: Json

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def api_version(self) -> str:
        return str(self.body["apiVersion"])

    @property
    def metadata(self) -> Json:
        found = self.body.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def shown(self) -> str:
        return f"{self.kind} {self.name or self.metadata.get('generateName') or '(without a name)'}"

    @property
    def is_taskset(self) -> bool:
        """Also one whose apiVersion or spelling is wrong: the validator will say so."""
        return kinds.meant(self.body) is kinds.TASKSET

    @property
    def is_ours(self) -> bool:
        """There is a validator for it."""
        return kinds.meant(self.body) is not None


class Mistakes(Refused):
    """What is wrong, file by file and object by object."""

    def __init__(self, found: Sequence[Refused]) -> None:
        super().__init__([problem for refused in found for problem in refused.problems])
        self.args = ("\n".join(str(refused) for refused in found),)


def read(sources: Sequence[str]) -> list[Document]:
    """Parsed, not yet checked. Raises `Mistakes`."""
    documents: list[Document] = []
    refusals: list[Refused] = []
    for source in sources:
        for name, data in _texts(source, refusals):
            try:
                objects = manifest.read(data, name)
            except Refused as refused:
                refusals.append(refused)
                continue
            for number, body in enumerate(objects, 1):
                documents.append(Document(f"{name}, object {number}" if len(objects) > 1 else name, body))
    if refusals:
        raise Mistakes(refusals)
    return documents


def check(documents: Sequence[Document], namespace: str | None = None) -> None:
    """Raises `Mistakes`. `namespace`: what the command line says, if anything."""
    refusals = []
    seen: dict[tuple[str, str, str, str], str] = {}
    for document in documents:
        problems = [*_problems(document), *namespace_problems(document, namespace)]
        key = (document.api_version, document.kind, str(document.metadata.get("namespace") or ""), document.name)
        if document.name and key in seen:
            problems.append(FieldProblem("metadata.name", f"is the same as in {seen[key]}"))
        seen.setdefault(key, document.where)
        if problems:
            refusals.append(Refused(problems, f"{document.shown} ({document.where})"))
    if refusals:
        raise Mistakes(refusals)


def _problems(document: Document) -> list[FieldProblem]:
    if document.is_ours:
        return validation.validate(document.body)
    metadata = document.body.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return [FieldProblem("metadata", "must be an object")]
    fields = ("name", "generateName", "namespace")
    wrong = [name for name in fields if not isinstance(document.metadata.get(name, ""), str)]
    if not wrong and not document.name and not document.metadata.get("generateName"):
        return [FieldProblem("metadata.name", "is required")]
    return [FieldProblem(f"metadata.{name}", "must be a string") for name in wrong]


def namespace_problems(document: Document, namespace: str | None) -> Iterator[FieldProblem]:
    stated = document.metadata.get("namespace")
    if namespace and isinstance(stated, str) and stated not in ("", namespace):
        yield FieldProblem("metadata.namespace", f"is {stated}, but --namespace says {namespace}")


def _texts(source: str, refusals: list[Refused]) -> Iterator[tuple[str, bytes]]:
    """(name, text) of each file that `source` stands for."""
    if source == STDIN:
        yield "standard input", _bounded(sys.stdin.buffer)
        return
    path = Path(source)
    try:
        files = _files_of(path) if path.is_dir() else [path]
        if not files:
            refusals.append(Refused([FieldProblem("", f"holds no file that ends in {', '.join(SUFFIXES)}")], source))
        for file in files:
            with file.open("rb") as stream:
                data = _bounded(stream)
            yield str(file), data
    except OSError as error:
        refusals.append(Refused([FieldProblem("", f"cannot be read: {error.strerror}")], source))


def _files_of(directory: Path) -> list[Path]:
    return sorted(file for file in directory.iterdir() if file.suffix in SUFFIXES and file.is_file())


def _bounded(stream: Any) -> bytes:
    """One byte more than is accepted shows that it is too large, however large it is."""
    data: bytes = stream.read(manifest.MAX_BYTES + 1)
    return data
