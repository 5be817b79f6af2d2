"""Are columns, scale and selectable fields of a definition well said?"""

from __future__ import annotations

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import crd_schema, wording
from octarbiter.cluster.apiserver.validation.problems import Problem

_COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"]
_COLUMN_FORMATS = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"]
_MOST_SELECTABLE = 8


def _text(value: Json, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def scale(subresources: Json, path: str) -> list[Problem]:
    if not isinstance(subresources.get("scale"), dict):
        return []
    scale = subresources["scale"]
    problems = []
    for name, roots in (("specReplicasPath", [".spec."]), ("statusReplicasPath", [".status."])):
        here = f"{path}.scale.{name}"
        given = _text(scale, name)
        problems += _path_under(given, roots, here) if given else [wording.required(here)]
    if selector := _text(scale, "labelSelectorPath"):
        problems += _path_under(selector, [".spec.", ".status."], f"{path}.scale.labelSelectorPath")
    return problems


def _path_under(given: str, roots: list[str], path: str) -> list[Problem]:
    if problems := _simple_path(given, path):
        return problems
    if given.startswith(tuple(roots)):
        return []
    where = " or ".join(root.rstrip(".") for root in roots)
    return [wording.invalid(path, given, f"should be a json path under {'either ' if len(roots) > 1 else ''}{where}")]


def _simple_path(given: str, path: str) -> list[Problem]:
    starts = given.startswith(".")
    return [] if starts else [wording.invalid(path, given, "must be a simple json path starting with .")]


def column(column: Json, path: str) -> list[Problem]:
    problems = [] if _text(column, "name") else [wording.required(f"{path}.name")]
    type, format, where = _text(column, "type"), _text(column, "format"), _text(column, "jsonPath")
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type:
        problems.append(wording.required(f"{path}.type", types))
    elif type not in _COLUMN_TYPES:
        problems.append(wording.invalid(f"{path}.type", type, types))
    if format and format not in _COLUMN_FORMATS:
        problems.append(wording.invalid(f"{path}.format", format, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not where:
        problems.append(wording.required(f"{path}.JSONPath"))
    else:
        problems += _simple_path(where, f"{path}.JSONPath")
    return problems


def selectable(fields: list[Json], schema: Json, path: str) -> list[Problem]:
    problems = []
    seen = set()
    for index, field in enumerate(fields):
        given, here = _text(field, "jsonPath"), f"{path}[{index}].jsonPath"
        if not given:
            problems.append(wording.required(here))
            continue
        found = crd_schema.schema_at(schema, given)
        if found is None:
            problems.append(wording.invalid(here, given, "is an invalid path: does not refer to a valid field"))
            continue
        if given.startswith(".metadata"):
            problems.append(wording.invalid(here, given, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            problems.append(wording.invalid(here, given, detail))
        if given in seen:
            problems.append(wording.duplicate(here, given))
        seen.add(given)
    if len(seen) > _MOST_SELECTABLE:
        problems.append(wording.too_many(path, len(seen), _MOST_SELECTABLE))
    return problems
