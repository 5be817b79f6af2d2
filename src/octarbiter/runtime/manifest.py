"""Which objects does this YAML or JSON text hold?

Read as kubectl reads it: YAML 1.1 booleans, no base-60 numbers, dates stay strings, several documents, lists unpacked,
merge keys. Unlike kubectl we refuse what is surely a mistake (a key written twice) or an attack (size, depth, aliases
that grow). That is why the objects are built here from libyaml's events and not by PyYAML's constructors: those
recurse, follow aliases without measure, overwrite silently, and read `22:22` as 1342. JSON takes the same way, being
YAML but for a few characters, and so gets the same checks and the same positions.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.api.meta import Json
from octarbiter.runtime import yaml_scalars

MAX_BYTES = 1 << 20
"""Of the text, and again of what its aliases make of it. An API server takes objects up to about 1.5 MiB."""
MAX_DEPTH = 100
MAX_PROBLEMS = 20

# Where JSON is not YAML: it writes what lies beyond 16 bits as two escapes, and it takes these characters as they are,
# which YAML folds like line ends or does not allow.
_ONLY_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def read(data: bytes | str, source: str = "the manifest") -> list[Json]:
    """Every object in the order of the text; at least one, each with apiVersion and kind. Raises `Refused`."""
    try:
        documents = _Reader(_text(data)).documents()
    except _Fatal as fatal:
        raise Refused([FieldProblem(fatal.where, str(fatal))], source) from None
    except Refused as refused:
        raise Refused(refused.problems, source) from None
    objects: list[Json] = []
    problems: list[FieldProblem] = []
    for line, document in documents:
        for where, value in _unpacked(f"line {line}", document):
            problem = _no_object(value)
            if problem and len(problems) < MAX_PROBLEMS:
                problems.append(FieldProblem(where, problem))
            objects.append(value)
    if not objects:
        problems.append(FieldProblem("", "holds no object"))
    if problems:
        raise Refused(problems, source)
    return objects


class _Fatal(Exception):
    """Reading cannot go on."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where


def _text(data: bytes | str) -> str:
    try:
        raw = data.encode() if isinstance(data, str) else data
        if len(raw) > MAX_BYTES:
            raise _Fatal(f"is too large: {len(raw)} bytes; at most {MAX_BYTES} (1 MiB) are accepted")
        text = raw.decode().removeprefix("\ufeff")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise _Fatal(f"is not UTF-8 text: {error.reason} at byte {error.start}") from None
    if text.lstrip().startswith(("{", "[")):
        text = _ONLY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", _SURROGATES.sub(_joined, text))
    return text


def _joined(pair: re.Match[str]) -> str:
    point = 0x10000 + ((int(pair[2], 16) - 0xD800) << 10) + (int(pair[3], 16) - 0xDC00)
    return f"{pair[1]}\\U{point:08x}"


class _Built(msgspec.Struct, frozen=True):
    value: Any
    weight: int
    """Characters and nodes: what it costs to have it once more."""
    height: int


class _Open(msgspec.Struct):
    """A list or an object whose end has not been seen yet."""

    value: list[Any] | Json
    path: str
    anchor: str | None
    weight: int = 1
    height: int = 1
    key: str | None = None
    """Of an object: the key whose value comes next."""
    is_merge: bool = False
    lines: dict[str, int] = {}
    merged: list[Any] = []


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._problems: list[FieldProblem] = []
        self._weight_before = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, _Built] = {}
        self._root = _Built(None, 0, 0)

    def documents(self) -> list[tuple[int, Any]]:
        """The documents that are not empty, each with the line it begins on."""
        found: list[tuple[int, Any]] = []
        line = 0
        for event in self._events():
            match event:
                case yaml.DocumentStartEvent():
                    line, self._anchors = 0, {}
                case yaml.DocumentEndEvent():
                    self._weight_before += self._root.weight
                    if self._root.value is not None:
                        found.append((line, self._root.value))
                case yaml.ScalarEvent():
                    line = line or _line(event)
                    self._scalar(event)
                case yaml.AliasEvent():
                    self._alias(event)
                case yaml.CollectionStartEvent():
                    line = line or _line(event)
                    self._begin(event)
                case yaml.CollectionEndEvent():
                    self._end(_where(event.start_mark))
        if self._problems:
            raise Refused(self._problems)
        return found

    def _events(self) -> Iterator[yaml.Event]:
        loader = yaml.CSafeLoader(self._text)
        try:
            while event := loader.get_event():
                yield event
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            context = f" {error.context}" if error.context else ""
            raise _Fatal(f"is not YAML: {error.problem}{context}", _where(mark) if mark else "") from None
        except yaml.reader.ReaderError as error:
            line = self._text.encode()[: error.position].count(b"\n") + 1
            raise _Fatal(f"is not YAML: {error.reason}", f"line {line}") from None
        finally:
            loader.dispose()

    def _expects_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        where = _where(event.start_mark)
        try:
            value = yaml_scalars.value_of(event.value, event.tag, is_plain=event.implicit[0])
        except ValueError as error:
            raise _Fatal(str(error), where) from None
        if self._expects_key():
            self._key(event, value)
        else:
            self._finish(_Built(value, len(event.value) + 1, 0), event.anchor, where)

    def _key(self, event: yaml.ScalarEvent, value: Any) -> None:
        top, line = self._open[-1], _line(event)
        if value is None:
            raise _Fatal("a key cannot be null", _where(event.start_mark))
        # JSON knows only strings as keys; kubectl makes strings of the others, too.
        key = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        first = top.lines.setdefault(key, line)
        if key in top.value and len(self._problems) < MAX_PROBLEMS:
            path = _child(top.path, key)
            self._problems.append(FieldProblem(path, f"is written twice, on line {first} and on line {line}"))
        top.key, top.is_merge = key, key == "<<" and event.implicit[0]
        top.weight += len(event.value) + 1

    def _alias(self, event: yaml.AliasEvent) -> None:
        where = _where(event.start_mark)
        if self._expects_key():
            raise _Fatal("an alias cannot be a key", where)
        built = self._anchors.get(event.anchor or "")
        if built is None:
            raise _Fatal(f"*{event.anchor} refers to no anchor before it, or to one that contains it", where)
        if self._weight_before + sum(level.weight for level in self._open) + built.weight > MAX_BYTES:
            raise _Fatal(f"aliases make the text larger than {MAX_BYTES} bytes (1 MiB)", where)
        self._finish(_Built(copy.deepcopy(built.value), built.weight, built.height), None, where)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        where, is_map = _where(event.start_mark), isinstance(event, yaml.MappingStartEvent)
        if self._expects_key():
            raise _Fatal("a list or an object cannot be a key", where)
        if len(self._open) >= MAX_DEPTH:
            raise _Fatal(f"is nested deeper than {MAX_DEPTH} levels", where)
        if event.tag not in (None, "!", yaml_scalars.TAG + ("map" if is_map else "seq")):
            raise _Fatal(f"the tag {yaml_scalars.shown_tag(event.tag)} is not supported", where)
        path = self._next_path()
        self._open.append(_Open({} if is_map else [], path, event.anchor))

    def _next_path(self) -> str:
        if not self._open:
            return ""
        top = self._open[-1]
        return f"{top.path}[{len(top.value)}]" if isinstance(top.value, list) else _child(top.path, top.key or "")

    def _end(self, where: str) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
            for other in done.merged:
                done.value = {**other, **done.value}
        self._finish(_Built(done.value, done.weight, done.height), done.anchor, where)

    def _finish(self, built: _Built, anchor: str | None, where: str) -> None:
        if anchor:
            self._anchors[anchor] = built
        if not self._open:
            self._root = built
            return
        top = self._open[-1]
        if len(self._open) + built.height > MAX_DEPTH:
            raise _Fatal(f"is nested deeper than {MAX_DEPTH} levels", where)
        top.weight += built.weight
        top.height = max(top.height, built.height + 1)
        if isinstance(top.value, list):
            top.value.append(built.value)
        elif top.is_merge:
            top.merged += _mergeable(built.value, where)
            top.key = None
        elif top.key is not None:
            top.value[top.key] = built.value
            top.key = None


def _mergeable(value: Any, where: str) -> list[Json]:
    """In falling order of precedence."""
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in values):
        raise _Fatal("<< merges an object or a list of objects", where)
    return values


def _unpacked(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a List, of a List of Lists, and so on; anything else is itself."""
    is_list = isinstance(value, dict) and isinstance(kind := value.get("kind"), str) and kind.endswith("List")
    if is_list and isinstance(items := value.get("items"), list):
        for index, item in enumerate(items):
            yield from _unpacked(f"{where}, items[{index}]", item)
    else:
        yield where, value


def _no_object(value: Any) -> str:
    if not isinstance(value, dict):
        return "is no object: apiVersion, kind and metadata are expected here"
    missing = [name for name in ("apiVersion", "kind") if not isinstance(value.get(name), str) or not value[name]]
    return f"is no object of Kubernetes: {' and '.join(missing)} missing" if missing else ""


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _where(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _child(path: str, key: str) -> str:
    if not key.isidentifier():
        return f"{path}[{msgspec.json.encode(key[:60]).decode()}]"
    return f"{path}.{key}" if path else key
