"""How does a patch become an object?

Four kinds of patches, one way in: the present object goes through the patch, then through everything a new version of
it would go through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import bodies, decoding, negotiation, objects, preparation, status
from octarbiter.cluster.apiserver.decoding import Unreadable, json_text
from octarbiter.cluster.apiserver.patching import apply, errors, json_patch, merge_patch, showing, strategic
from octarbiter.cluster.apiserver.registry import Call, Produce, Registry, Written
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.types import ANYTHING, Type
from octarbiter.cluster.apiserver.validation.problems import Problem

_UNREADABLE: Final = "error decoding patch: "
_WRONG_TYPE: Final = re.compile(r"json: cannot unmarshal (\w+) into Go struct field \S+ of type (.+)")
_GO_KINDS: Final = {"number": "int64", "array": "slice", "object": "map"}


async def patch(registry: Registry, call: Call, media_type: str, body: bytes, now: datetime) -> Written:
    """`media_type` is one of those that `negotiation.patch_type` lets pass."""
    with refusals():
        if media_type == negotiation.APPLY_PATCH:
            produce = _applied(call, body, now)
            return await registry.modify(call, produce, may_create=not call.subresource, keeps_owners=True)
        return await registry.modify(call, _patched(call, media_type, body))


@contextmanager
def refusals() -> Iterator[None]:
    """What is wrong with a patch is said to the client."""
    try:
        yield
    except errors.BadPatch as bad:
        details = bad.details or ({} if bad.code == 422 else None)
        failure = status.Failure(bad.code, bad.reason, bad.message, details)
        failure.warnings += [bad.hint] if bad.hint else []
        raise failure from None
    except errors.ApplyConflict as conflict:
        raise status.Failure(409, "Conflict", conflict.message, {"causes": conflict.causes}) from None


def _patched(call: Call, media_type: str, body: bytes) -> Produce:
    """From the present object to the patched one."""
    resource = call.served.resource
    document = read(media_type, body, is_untyped=resource.custom)
    patched = change(media_type, document, call.served.model.type)

    def produce(old: Json | None) -> Json:
        assert old is not None
        version = old["metadata"]["resourceVersion"]
        only_status = call.subresource == "status" and not resource.custom
        # A JSON patch may test or move what it does not change; the others can do without the rest.
        obj = patched(preparation.slim(old) if only_status and media_type != negotiation.JSON_PATCH else old)
        if only_status:
            obj = preparation.slim(obj)
        call.warnings.clear()
        try:
            bodies.identify(obj, resource)
            bodies.settle(obj, call.served, call.write.field_validation, call.warnings)
        except status.Failure as failure:
            if failure.code != 400:
                raise
            # As it was before unknown fields were dropped.
            obj = patched(old)
            raise not_of_its_kind(obj, str(failure), media_type, document, is_custom=resource.custom) from None
        metadata = preparation.metadata_of(obj)
        if metadata.get("resourceVersion") not in (None, "", version):
            raise status.conflict(resource, call.name)
        _check_name(metadata.get("name"), call.name)
        return obj

    return produce


def read(media_type: str, body: bytes, *, is_untyped: bool = False) -> Any:
    """The document of such a patch. Raises a refusal."""
    start = "" if media_type == negotiation.STRATEGIC_PATCH else _UNREADABLE
    try:
        return json_text.read(body, is_untyped=is_untyped)[0]
    except Unreadable as problem:
        what = str(problem).removeprefix("couldn't get version/kind; json parse error: ")
        raise status.bad_request(start + what) from None


def change(media_type: str, document: Any, type_: Type | None) -> Callable[[Json], Json]:
    """What such a patch makes of an object. Raises BadPatch when it is asked."""
    if media_type == negotiation.JSON_PATCH:
        return lambda old: json_patch.apply(old, document)
    if media_type == negotiation.MERGE_PATCH:
        return lambda old: merge_patch.apply(old, document)
    return lambda old: strategic.apply(old, document, type_ or ANYTHING)


def _applied(call: Call, body: bytes, now: datetime) -> Produce:
    resource = call.served.resource
    try:
        document, duplicates = decoding.decode(body, negotiation.YAML)
    except Unreadable as problem:
        what = f"error decoding YAML: error converting YAML to JSON: {problem}"
        raise status.bad_request(what) from None
    if not document.get("kind") or not document.get("apiVersion"):
        group, _, version = str(document.get("apiVersion") or "").rpartition("/")
        raise status.bad_request(f"invalid object type: {group}/{version}, Kind={document.get('kind') or ''}")
    if (document["kind"], document["apiVersion"]) != (resource.kind, resource.api_version):
        group, _, version = str(document["apiVersion"]).rpartition("/")
        raise status.bad_request(f"invalid object type: {group}/{version}, Kind={document['kind']}")
    type_ = call.served.model.type or ANYTHING
    ignored = [("f:status",)] if resource.has_status and not call.subresource else []

    def produce(old: Json | None) -> Json:
        applied = objects.copied(document)
        metadata = preparation.metadata_of(applied)
        version = metadata.pop("resourceVersion", None)
        if version and old is not None and version != old["metadata"]["resourceVersion"]:
            raise status.conflict(resource, call.name)
        if old is None and (uid := metadata.get("uid")):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status.conflict(resource, call.name, why)
        if old is None or metadata.get("name"):
            _check_name(metadata.get("name"), call.name)
        metadata["name"] = call.name
        call.warnings.clear()
        obj = apply.apply(
            old,
            applied,
            type_,
            manager=call.write.manager,
            api_version=resource.api_version,
            subresource=call.subresource,
            force=call.write.force,
            now=objects.timestamp(now),
            ignored=ignored,
        )
        bodies.settle(objects.copied(applied), call.served, call.write.field_validation, call.warnings, duplicates)
        bodies.settle(obj, call.served, "Ignore", call.warnings)
        return obj

    return produce


def not_of_its_kind(obj: Json, why: str, media_type: str, document: Any, *, is_custom: bool = False) -> status.Failure:
    """As the real server does: with the patch, or with what it made of the object, and then the reason."""
    if media_type == negotiation.STRATEGIC_PATCH:
        shown = showing.in_go(document)
    elif is_custom:
        shown = wording.compact(obj)
    elif media_type == negotiation.MERGE_PATCH:
        shown = showing.merged(obj, document)
    else:
        shown = showing.operated(obj, document)
    reason = why.partition(": ")[2] if " cannot be handled as a " in why else why
    if media_type == negotiation.STRATEGIC_PATCH and (wrong := _WRONG_TYPE.fullmatch(reason)):
        reason = _in_conversion(wrong[1], wrong[2])
    return status.invalid_patch(
        Problem("FieldValueInvalid", "patch", f"Invalid value: {wording.quoted(shown)}: {reason}")
    )


def _in_conversion(found: str, wanted: str) -> str:
    """A strategic patch is not read but converted, which is told in other words."""
    if wanted.startswith(("map[", "[]")):
        shape = "map" if wanted.startswith("map[") else "slice"
        return f"cannot restore {shape} from {_GO_KINDS.get(found, found)}"
    return f"cannot convert {_GO_KINDS.get(found, found)} to {wanted}"


def _check_name(given: object, name: str) -> None:
    if not given:
        raise status.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if given != name:
        raise status.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
