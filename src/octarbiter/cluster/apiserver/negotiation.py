"""In which form does the client want its answer, and in which form did it write its body?

Answers are JSON or YAML. Whoever would like protobuf gets JSON as long as it says that it takes that, too; who insists
gets 406. On top of the format a client may ask for another view of the objects: a Table (what kubectl prints) or their
metadata alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from octarbiter.cluster.apiserver import status

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

_SERVED: Final = (JSON, YAML, PROTOBUF)
STREAMED: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_SERVED_CUSTOM: Final = (JSON, YAML)
_META_VERSIONS: Final = ("v1", "v1beta1")


class View(StrEnum):
    WHOLE = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


EVERY_VIEW: Final = frozenset(View) - {View.WHOLE}
METADATA_VIEWS: Final = EVERY_VIEW - {View.TABLE}
"""Of what has metadata and no columns."""
NO_VIEW: Final[frozenset[View]] = frozenset()


class Form(msgspec.Struct, frozen=True):
    """Of an answer."""

    media_type: str = JSON
    view: View = View.WHOLE
    version: str = "v1"
    """Of meta.k8s.io, for views."""
    pretty: bool = False

    @property
    def content_type(self) -> str:
        return self.media_type

    @property
    def is_metadata(self) -> bool:
        return self.view in (View.METADATA, View.METADATA_LIST)


class Clause(msgspec.Struct, frozen=True):
    """One of the alternatives in an Accept header."""

    media_type: str
    parameters: dict[str, str]
    quality: float

    def takes(self, media_type: str) -> bool:
        main, _, sub = self.media_type.partition("/")
        return self.media_type in (media_type, "*", "*/*") or (sub == "*" and media_type.startswith(f"{main}/"))

    def names(self, media_types: Sequence[str]) -> bool:
        """Built-in resources are not given to who asks for any kind of application."""
        return self.media_type == "*/*" or self.media_type in media_types


@lru_cache(maxsize=256)
def clauses(accept: str) -> tuple[Clause, ...]:
    """The best liked first."""
    found: list[Clause] = []
    for part in accept.split(","):
        media_type, *rest = (piece.strip() for piece in part.split(";"))
        parameters: dict[str, str] = {}
        quality = 1.0
        for piece in rest:
            name, _, value = piece.partition("=")
            if name.strip() == "q":
                quality = _quality(value)
            else:
                parameters[name.strip()] = value.strip()
        media_type = media_type or "*/*"
        found.append(Clause(media_type, parameters, quality))
    return tuple(sorted(found, key=lambda clause: -clause.quality))


@lru_cache(maxsize=256)
def negotiate(
    accept: str, *, custom: bool = False, views: frozenset[View] = EVERY_VIEW, can_be_watched: bool = False
) -> Form:
    """`can_be_watched`: so it could also be had as a stream. Raises a refusal (406)."""
    if not accept:
        return Form()
    if not custom and not any(clause.names(_SERVED) for clause in clauses(accept)):
        raise status.no_representation((*_SERVED, *STREAMED) if can_be_watched else _SERVED)
    insists_on_protobuf = False
    for clause in clauses(accept):
        form = _wanted(clause, views)
        if form is None:
            continue
        if clause.takes(JSON):
            return form
        if clause.takes(YAML):
            return msgspec.structs.replace(form, media_type=YAML)
        insists_on_protobuf = insists_on_protobuf or clause.takes(PROTOBUF)
    if insists_on_protobuf and not custom:
        # We never write protobuf; every client that is known to ask for nothing else reads JSON all the same.
        return Form()
    raise status.not_acceptable(_SERVED)


def of_refusals(accept: str) -> Form:
    """Whoever takes nothing that is served is told so in JSON."""
    try:
        return negotiate(accept, views=NO_VIEW)
    except status.Failure:
        return Form()


def body_type(content_type: str, *, custom: bool = False) -> str:
    """The media type of a body, JSON when nothing is said. Raises a refusal (415)."""
    media_type = content_type.partition(";")[0].strip().lower() or JSON
    served = _SERVED_CUSTOM if custom else _SERVED
    if media_type not in served:
        raise status.unsupported_media_type(served)
    return media_type


def patch_type(content_type: str, *, custom: bool = False) -> str:
    """Raises a refusal (415)."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in (JSON_PATCH, MERGE_PATCH, APPLY_PATCH) or (media_type == STRATEGIC_PATCH and not custom):
        return media_type
    if custom:
        raise status.unsupported_media_type([JSON_PATCH, MERGE_PATCH, APPLY_PATCH])
    raise status.unsupported_patch()


def _wanted(clause: Clause, views: frozenset[View]) -> Form | None:
    """None where the clause asks for something that is not to be had."""
    parameters = clause.parameters
    pretty = parameters.get("pretty") == "1"
    view, group, version = (parameters.get(name, "") for name in ("as", "g", "v"))
    if not (view or group or version):
        return Form(pretty=pretty)
    if group != "meta.k8s.io" or version not in _META_VERSIONS or view not in views:
        return None
    return Form(view=View(view), version=version, pretty=pretty)


def _quality(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 1.0
