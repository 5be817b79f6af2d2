"""How does the server say no?

Every refusal is a Status object; clients branch on its `reason`, its `code` and its causes, so the words here are the
real server's. `Failure` carries one to whoever answers the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.kinds import Resource

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


class Problem(Protocol):
    """One mistake in one field."""

    @property
    def reason(self) -> str: ...
    @property
    def field(self) -> str: ...
    @property
    def message(self) -> str: ...


class Failure(Exception):
    """The request is refused; `status` is what the client gets."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        *,
        metadata: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.headers = headers or {}
        self.warnings: list[str] = []
        """What else the client shall be told."""
        self.status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata or {},
            "status": "Failure",
            "message": message,
        }
        if reason:
            self.status["reason"] = reason
        if details is not None:
            self.status["details"] = details
        self.status["code"] = code


def success(name: str, resource: Resource, uid: str) -> Json:
    """The answer to a deletion that leaves nothing to show."""
    details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _without_empty(details),
    }


def plain_success(code: int = 201) -> Json:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


def bad_request(message: str) -> Failure:
    return Failure(400, "BadRequest", message)


def unauthorized() -> Failure:
    return Failure(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Json] = ()) -> Failure:
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    return Failure(403, "Forbidden", f"{subject} is forbidden: {why}", _details(resource, name, causes))


def not_found(resource: Resource, name: str) -> Failure:
    return Failure(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def unknown_resource() -> Failure:
    return Failure(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Failure:
    message = "the server does not allow this method on the requested resource"
    return Failure(405, "MethodNotAllowed", message, {})


def other_view(view: str, shape: str, go_type: str) -> Failure:
    """The client wants to see a list as one object, or one object as a list."""
    return Failure(406, "NotAcceptable", f"you requested {view}, but the requested object is {shape} (*{go_type})")


def no_representation(accepted: Iterable[str]) -> Failure:
    """Of all the client would take, nothing is served anywhere."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(accepted)}"
    return Failure(406, "NotAcceptable", message, {})


def not_acceptable(accepted: Iterable[str]) -> Failure:
    return Failure(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(accepted)}")


def already_exists(resource: Resource, name: str, *, deleting: bool = False, generated: bool = False) -> Failure:
    message = f'{resource.qualified} "{name}" already exists'
    details = _details(resource, name)
    if generated:
        message += ", the server was not able to generate a unique name for the object"
        details["retryAfterSeconds"] = 1
    if deleting:
        message = f"object is being deleted: {message}"
    return Failure(409, "AlreadyExists", message, details)


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> Failure:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return Failure(409, "Conflict", message, _details(resource, name))


def lost_precondition(resource: Resource, namespace: str, name: str, why: str) -> Failure:
    """As the store of a real server words it, which thinks of files."""
    place = "/".join(part for part in (resource.group if resource.custom else "", resource.plural, namespace) if part)
    what = f"invalid object, Code: 4, Key: /registry/{place}/{name}, ResourceVersion: 0"
    return conflict(resource, name, f"StorageError: {what}, AdditionalErrorMsg: {why}")


def precondition_failed(resource: Resource, name: str, why: str) -> Failure:
    """Like a conflict, but the real server calls the object by its kind here."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = _without_empty({"name": name, "group": resource.group, "kind": resource.kind})
    return Failure(409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": {why}', details)


def expired(message: str, *, metadata: Json | None = None) -> Failure:
    return Failure(410, "Expired", message, metadata=metadata)


def too_old(asked: int, oldest: int) -> Failure:
    return expired(f"too old resource version: {asked} ({oldest})")


def body_too_large(limit: int) -> Failure:
    return Failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(accepted: Iterable[str]) -> Failure:
    what = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return Failure(415, "UnsupportedMediaType", what)


def unsupported_patch() -> Failure:
    return Failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def invalid(resource: Resource, name: str, problems: Sequence[Problem], *, kind: str | None = None) -> Failure:
    """`kind` where the mistake is not in an object of the resource."""
    # What is kept as another resource is checked as that one.
    return _invalid("" if resource.stored_as else resource.group, kind or resource.kind, name, problems)


def invalid_options(kind: str, problems: Sequence[Problem]) -> Failure:
    return _invalid("meta.k8s.io", kind, "", problems)


def invalid_patch(problem: Problem) -> Failure:
    """What a patch makes of the object is none of its kind."""
    return _invalid("", "", "", [problem])


def invalid_review(group: str, problems: Sequence[Problem]) -> Failure:
    return _invalid(group, "", "", problems)


def invalid_scale(name: str, problems: Sequence[Problem]) -> Failure:
    return _invalid("autoscaling", "Scale", name, problems)


def too_many_requests(message: str, retry_after_s: int, causes: Sequence[Json] = ()) -> Failure:
    details: Json = {"causes": list(causes)} if causes else {}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}
    return Failure(429, "TooManyRequests", message, details, headers=headers)


def internal(message: str) -> Failure:
    details = {"causes": [{"message": message}]}
    return Failure(500, "InternalError", f"Internal error occurred: {message}", details)


def unavailable(message: str) -> Failure:
    return Failure(503, "ServiceUnavailable", message, headers={"Retry-After": "1"})


def version_too_large(asked: int, current: int) -> Failure:
    """A resourceVersion that has not happened yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return Failure(504, "Timeout", message, details, headers={"Retry-After": "1"})


def _invalid(group: str, kind: str, name: str, problems: Sequence[Problem]) -> Failure:
    causes = [{"reason": each.reason, "message": each.message, "field": each.field} for each in problems]
    # The same sentence twice is said once, as the real server does.
    lines = list(dict.fromkeys(f"{each.field}: {each.message}" for each in problems))
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    qualified = f"{kind}.{group}" if group else kind
    details = _without_empty({"name": name, "group": group, "kind": kind, "causes": causes})
    return Failure(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details)


def _details(resource: Resource, name: str, causes: Sequence[Json] = ()) -> Json:
    return _without_empty(
        {"name": name, "group": resource.group, "kind": resource.plural, "causes": list(causes) or None}
    )


def _without_empty(details: Json) -> Json:
    return {key: value for key, value in details.items() if value}
