"""Which answers does a patch get that cannot be carried out?

    BadPatch        the patch is at fault: answer with its code, reason, message and details
    ApplyConflict   others own fields with other values: answer 409, or apply again with force

The words are those of kube-apiserver: clients and people search for them.
"""

from __future__ import annotations

from typing import NamedTuple

from octarbiter.api.meta import Json


class BadPatch(Exception):
    def __init__(self, code: int, reason: str, message: str, details: Json | None = None, *, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details: Json = details or {}
        self.hint = hint
        """What people would like to know, and the answer does not say."""


class Conflict(NamedTuple):
    manager: str
    """As people are told: `"kubectl-edit" using v1`."""
    field: str
    message: str


class ApplyConflict(Exception):
    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = conflicts
        self.message = _summary(conflicts)
        super().__init__(self.message)

    @property
    def causes(self) -> list[Json]:
        return [
            {"reason": "FieldManagerConflict", "message": conflict.message, "field": conflict.field}
            for conflict in self.conflicts
        ]


def _summary(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: {conflicts[0].message}: {conflicts[0].field}"
    lines: list[str] = []
    told = ""
    for conflict in conflicts:
        if conflict.manager != told:
            told = conflict.manager
            lines.append(f"conflicts with {told}:")
        lines.append(f"- {conflict.field}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def bad_request(message: str) -> BadPatch:
    return BadPatch(400, "BadRequest", message)


def unprocessable(hint: str) -> BadPatch:
    """The message is kube-apiserver's, and says nothing."""
    message = "the server rejected our request due to an error in our request"
    return BadPatch(422, "Invalid", message, hint=hint)


def too_large(message: str) -> BadPatch:
    return BadPatch(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def internal(message: str) -> BadPatch:
    """The user's mistake, yet kube-apiserver answers 500."""
    return BadPatch(500, "", message)


def too_deep(limit: int) -> BadPatch:
    return bad_request(f"the document is nested more than {limit} levels deep")


def options(manager: str, *, force: bool, applying: bool) -> BadPatch | None:
    """What is wrong with the query of a PATCH: apply needs a name for the owner, and only apply can be forced."""
    problems: list[Json] = []
    if applying and not manager:
        problems.append(_cause("FieldValueRequired", "fieldManager", "Required value: is required for apply patch"))
    if force and not applying:
        problems.append(_cause("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch"))
    if not problems:
        return None
    texts = [f"{problem['field']}: {problem['message']}" for problem in problems]
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return BadPatch(
        422,
        "Invalid",
        f'PatchOptions.meta.k8s.io "" is invalid: {listed}',
        {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": problems},
    )


def _cause(reason: str, field: str, message: str) -> Json:
    return {"reason": reason, "message": message, "field": field}
