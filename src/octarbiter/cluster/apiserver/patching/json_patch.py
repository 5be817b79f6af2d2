"""What is a document after a list of operations (RFC 6902)?

Where kube-apiserver is kinder than the RFC, so are we: indices may be negative and count from the end, `replace` of a
field that is not there adds it, `add` without a value adds null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.patching import errors, merge_patch, values

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 << 20
"""What all `copy` operations of one patch may add. Without a limit, copying a list into itself doubles it each time."""

_MISSING = object()


def apply(doc: Json, operations: Any) -> Json:
    steps = _decoded(operations)
    if len(steps) > MAX_OPERATIONS:
        raise errors.too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(steps)}")
    patching = _Patching(values.copied(doc))
    for step in steps:
        patching.carry_out(step)
    values.check_depth(patching.doc)
    if not isinstance(patching.doc, dict):
        raise errors.unprocessable("the patch makes the object a list")
    return patching.doc


def _decoded(operations: Any) -> list[Json]:
    if not isinstance(operations, list):
        raise _not_a(operations, "Go value of type []handlers.jsonPatchOp")
    for step in operations:
        if not isinstance(step, dict):
            raise _not_a(step, "Go value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            if not isinstance(step.get(name, ""), str | None):
                raise _not_a(step[name], f"Go struct field jsonPatchOp.{name} of type string")
    return operations


def _not_a(value: Any, wanted: str) -> errors.BadPatch:
    kind = merge_patch.json_kind(value)
    return errors.bad_request(f"error decoding patch: json: cannot unmarshal {kind} into {wanted}")


class _Refused(Exception):
    """Why an operation cannot be carried out."""


class _Patching:
    def __init__(self, doc: Any) -> None:
        self.doc = doc
        self._copied_bytes = 0

    def carry_out(self, step: Json) -> None:
        operation: Callable[[Json], None] | None = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }.get(step.get("op") or "")
        try:
            if operation is None:
                raise _Refused(f"Unexpected kind: {'unknown' if step.get('op') is None else step['op']}")
            operation(step)
        except _Refused as refusal:
            raise errors.unprocessable(str(refusal)) from None

    def _add(self, step: Json) -> None:
        path = _pointer(step, "path", "add operation failed to decode path: missing value")
        parent, key = self._parent(path, f'add operation does not apply: doc is missing path: "{path}": missing value')
        _explained(f"error in add for path: '{path}': ", lambda: _insert(parent, key, values.copied(step.get("value"))))

    def _remove(self, step: Json) -> None:
        path = _pointer(step, "path", "remove operation failed to decode path: missing value")
        missing = f'remove operation does not apply: doc is missing path: "{path}": missing value'
        parent, key = self._parent(path, missing)
        _explained(f"error in remove for path: '{path}': ", lambda: _take_out(parent, key))

    def _replace(self, step: Json) -> None:
        path = _pointer(
            step, "path", "replace operation failed to decode path: operation missing path field: missing value"
        )
        value = values.copied(step.get("value"))
        if not path:
            if not isinstance(value, (dict, list)):
                raise _Refused("replace operation value must be object or array: %!w(<nil>)")
            self.doc = value
            return
        missing = "replace operation does not apply: doc is missing"
        parent, key = self._parent(path, f"{missing} path: {path}: missing value")
        if isinstance(parent, dict):
            parent[key] = value
            return
        try:
            parent[_index(key, len(parent))] = value
        except _Refused:
            raise _Refused(f"{missing} key: {path}: missing value") from None

    def _move(self, step: Json) -> None:
        source = _pointer(
            step, "from", "move operation failed to decode from: operation, missing from field: missing value"
        )
        parent, key = self._parent(
            source, f"move operation does not apply: doc is missing from path: {source}: missing value"
        )
        value = _explained(f"error in move for path: '{key}': ", lambda: _take_out(parent, key))
        self._put("move", step, value)

    def _copy(self, step: Json) -> None:
        source = _pointer(
            step, "from", "copy operation failed to decode from: operation, missing from field: missing value"
        )
        parent, key = self._parent(
            source, f"copy operation does not apply: doc is missing from path: {source}: missing value"
        )
        found = _explained(f"error in copy for from: '{source}': ", lambda: _get(parent, key))
        value = None if found is _MISSING else values.copied(found)
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise _Refused(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        self._put("copy", step, value)

    def _put(self, operation: str, step: Json, value: Any) -> None:
        path = _pointer(step, "path", f"{operation} operation failed to decode path: missing value")
        missing = f"{operation} operation does not apply: doc is missing destination path: {path}: missing value"
        parent, key = self._parent(path, missing)
        refusal = (
            f"error in move for path: '{path}': " if operation == "move" else "error while adding value during copy: "
        )
        _explained(refusal, lambda: _insert(parent, key, value))

    def _test(self, step: Json) -> None:
        path = _pointer(
            step, "path", "test operation failed to decode path: operation missing path field: missing value"
        )
        if path:
            parent, key = self._parent(path, f"test operation does not apply: is missing path: {path}: missing value")
            found = _explained(f"error in test for path: '{path}': ", lambda: _get(parent, key))
        else:
            found = self.doc
        if found is _MISSING or found is None:
            passed = step.get("value") is None
        else:
            passed = "value" in step and values.equal(found, step["value"])
        if not passed:
            raise _Refused(f"testing value {path} failed: test failed")

    def _parent(self, path: str, missing: str) -> tuple[dict[str, Any] | list[Any], str]:
        """What holds the last part of `path`, and that part."""
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")]
        if len(tokens) > values.MAX_DEPTH:
            raise errors.too_deep(values.MAX_DEPTH)
        if len(tokens) < 2:
            raise _Refused(missing)
        holder = self.doc
        for token in tokens[1:-1]:
            try:
                holder = _get(holder, token)
            except _Refused:
                raise _Refused(missing) from None
            if not isinstance(holder, (dict, list)):
                raise _Refused(missing)
        return holder, tokens[-1]


def _pointer(step: Json, name: str, missing: str) -> str:
    pointer: str | None = step.get(name)
    if pointer is None:
        raise _Refused(missing)
    return pointer


def _explained(prefix: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except _Refused as refusal:
        raise _Refused(prefix + str(refusal)) from None


def _get(holder: dict[str, Any] | list[Any], key: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(key, _MISSING)
    return holder[_index(key, len(holder))]


def _take_out(holder: dict[str, Any] | list[Any], key: str) -> Any:
    if isinstance(holder, list):
        return holder.pop(_index(key, len(holder)))
    if key not in holder:
        raise _Refused(f"Unable to remove nonexistent key: {key}: missing value")
    return holder.pop(key)


def _insert(holder: dict[str, Any] | list[Any], key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    elif key == "-":
        holder.append(value)
    else:
        try:
            index = _number(key)
        except _Refused as refusal:
            raise _Refused(f"value was not a proper array index: '{key}': {refusal}") from None
        holder.insert(_within(index, len(holder) + 1), value)


def _index(key: str, length: int) -> int:
    return _within(_number(key), length)


def _number(key: str) -> int:
    digits = key[1:] if key[:1] in ("+", "-") else key
    if not (digits.isascii() and digits.isdigit()):
        raise _Refused(f'strconv.Atoi: parsing "{key}": invalid syntax')
    if len(digits.lstrip("0")) > 18:
        raise _Refused(f'strconv.Atoi: parsing "{key}": value out of range')
    return int(key)


def _within(index: int, length: int) -> int:
    if not -length <= index < length:
        raise _Refused(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index
