"""Which object does the body of a request say?

Of the kind the URL promises, without fields its type does not know. Whether unknown and doubled fields are refused,
warned about or silently dropped is the client's choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import decoding, negotiation, objects, schemas, status
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.apiserver.validation.problems import Problem

_SHOWN_BYTES = 30
"""Of a body that cannot be read."""
_SCHEME = "pkg/runtime/scheme.go:111"
"""What the real server calls its table of kinds."""
_QUOTED_BYTES = 1000
"""Of one that does not say what it is."""


def read(body: bytes, content_type: str, served: Served, validation: str, warnings: list[str]) -> Json:
    resource = served.resource
    media_type = negotiation.body_type(content_type, custom=resource.custom)
    obj, duplicates = parse(body, media_type, resource.kind, is_untyped=resource.custom)
    identify(obj, resource, body)
    settle(obj, served, validation, warnings, duplicates)
    return obj


def parse(body: bytes, media_type: str, kind: str, *, is_untyped: bool = False) -> tuple[Json, list[str]]:
    """The object, and the paths of what stands in it twice."""
    try:
        return decoding.decode(body, media_type, is_untyped=is_untyped)
    except decoding.Unreadable as problem:
        raise status.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): {problem} ({_summary(body)})"
        ) from None


def identify(obj: Json, resource: Resource, body: bytes = b"") -> None:
    """The kind must be the URL's; built-in ones may be left out."""
    for name, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        given = obj.get(name)
        if given is None or given == "":
            obj[name] = _unsaid(name, resource, body) if resource.custom else expected
        elif not isinstance(given, str):
            raise status.bad_request(f"{name} must be a string")
    if resource.custom:
        _identify_custom(obj, resource)
    elif obj["kind"] != resource.kind or obj["apiVersion"] != resource.api_version:
        raise status.bad_request(_other_kind(obj, resource))


def _unsaid(name: str, resource: Resource, body: bytes) -> str:
    if name == "apiVersion":
        return ""
    missing = f"Object 'Kind' is missing in '{body.decode(errors='replace')[:_QUOTED_BYTES]}'"
    raise status.bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): {missing} ({_summary(body)})"
    )


def _identify_custom(obj: Json, resource: Resource) -> None:
    if obj["apiVersion"] != resource.api_version:
        raise status.bad_request(
            f"the API version in the data ({obj['apiVersion']}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if obj["kind"] != resource.kind:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        said = f"Invalid value: {objects.encode(obj['kind']).decode()}: must be {resource.kind}"
        problem = Problem("FieldValueInvalid", "kind", said)
        raise status.invalid(resource, str(name or ""), [problem], kind=obj["kind"])


def _other_kind(obj: Json, resource: Resource) -> str:
    """How an object of another built-in kind is refused."""
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = obj["kind"]
    start = f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
    if schemas.type_of(group, version, kind) is None:
        return f'{start}no kind "{kind}" is registered for version "{obj["apiVersion"]}" in scheme "{_SCHEME}"'
    package = resource.group.partition(".")[0] or "core"
    return f"{start}converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion"


def settle(obj: Json, served: Served, validation: str, warnings: list[str], duplicates: Sequence[str] = ()) -> None:
    """Checks the object against its type and brings it into the form in which it is kept."""
    reading = served.model.read(obj, duplicates)
    resource = served.resource
    start = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
    if reading.problem is not None:
        raise status.bad_request(start + reading.problem)
    if validation != "Ignore" and reading.strict_errors:
        if validation == "Strict":
            raise status.bad_request(f"{start}strict decoding error: {', '.join(reading.strict_errors)}")
        warnings.extend(reading.strict_errors)


def options(body: bytes, content_type: str) -> Json | None:
    """The DeleteOptions in a body; None if there is none."""
    if not body:
        return None
    media_type = negotiation.body_type(content_type)
    try:
        obj, _ = decoding.decode(body, media_type)
    except decoding.Unreadable as problem:
        raise status.bad_request(str(problem)) from None
    kind = obj.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = obj.get("apiVersion") or "v1"
        raise status.bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    type_ = schemas.type_of("", "v1", "DeleteOptions")
    if type_ is not None and (wrong := decoding.check(obj, type_).problem):
        raise status.bad_request(wrong)
    return obj


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    more = " ..." if len(body) > _SHOWN_BYTES else ""
    start = body[:_SHOWN_BYTES]
    return (start.decode(errors="replace") if body.startswith(b"{") else start.hex()) + more
