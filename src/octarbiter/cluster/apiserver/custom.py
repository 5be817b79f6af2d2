"""What does a definition say about the objects of its kind?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import decoding, kinds, scale, schemas, status, structural
from octarbiter.cluster.apiserver.catalogue import Reading, Scaling, Served
from octarbiter.cluster.apiserver.kinds import Resource, Subresource
from octarbiter.cluster.apiserver.types import Type
from octarbiter.cluster.apiserver.validation import metadata, names
from octarbiter.cluster.apiserver.validation.problems import Problem

_NEVER: Final = 2**63
_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class Custom:
    """Objects of one version of a definition."""

    def __init__(self, schema: Json, scaling: Scaling | None = None) -> None:
        self._type = structural.parse(schema)
        self._scaling = scaling

    @property
    def type(self) -> Type | None:
        return self._type

    def read(self, obj: Json, duplicates: Sequence[str]) -> Reading:
        about = obj.get("metadata")
        checked = decoding.check(about, _metadata_type(), "metadata")
        if checked.problem is not None:
            return Reading(checked.problem)
        if isinstance(about, dict):
            decoding.prune(about, _metadata_type())
        dropped = structural.prune(obj, self._type)
        unknown = [f'unknown field "{path}"' for path in (*checked.unknown, *dropped)]
        return Reading(None, [*unknown, *(f'duplicate field "{path}"' for path in duplicates)])

    def default(self, obj: Json) -> None:
        structural.default(obj, self._type)

    def refresh(self, obj: Json) -> None:
        structural.prune(obj, self._type)
        structural.default(obj, self._type)

    def complete(self, obj: Json, old: Json | None) -> None:
        """Nothing: the server knows no more than the schema says."""

    def problems(self, obj: Json, old: Json | None, subresource: str = "") -> Sequence[status.Problem]:
        # Custom objects may have finalizers of any name; only built-in ones need a domain in them.
        found = [each for each in metadata.problems(obj, names.subdomain) if not metadata.is_of_finalizers(each)]
        # The metadata of an update are looked at three times, and each time it is said.
        part = subresource if subresource == "status" else ""
        scaled = [] if self._scaling is None else scale.problems(obj, self._scaling, only_status=bool(part))
        seen = structural.problems_of(obj, self._type, old, part, scaled)
        return [*(found * 3 if old is not None else found), *seen]


def versions_of(crd: Json, since: int) -> list[Served]:
    """What is served of an established definition, which says so `since` a revision.

    Which of several versions an object was written in is not kept, so their objects are refreshed always.
    """
    served = [version for version in crd["spec"]["versions"] if version.get("served")]
    settled_since = since if len(served) == 1 else _NEVER
    return [_served(crd, version, settled_since) for version in served]


def definition_problems(crd: Json, old: Json | None) -> Sequence[status.Problem]:
    found = [*structural.check_crd(crd, old)]
    if old is None and crd["spec"].get("preserveUnknownFields"):
        instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        said = f"Invalid value: true: cannot set to true, {instead}"
        found.append(Problem("FieldValueInvalid", "spec.preserveUnknownFields", said))
    return found


def _served(crd: Json, version: Json, settled_since: int) -> Served:
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or spec["names"]
    subresources = version.get("subresources") or {}
    scaled = subresources.get("scale")
    rows: list[Subresource] = []
    if "status" in subresources:
        rows.append(Subresource("status", names["kind"], kinds.CHANGE_VERBS))
    if scaled is not None:
        rows.append(Subresource("scale", "Scale", kinds.CHANGE_VERBS, "autoscaling", "v1"))
    resource = Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        list_kind=names.get("listKind") or f"{names['kind']}List",
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=_VERBS,
        subresources=tuple(rows),
        tracks_generation=True,
        put_needs_version=True,
        selectable=tuple(each["jsonPath"].removeprefix(".") for each in version.get("selectableFields") or ()),
        custom=True,
    )
    scaling = _scaling(scaled) if scaled is not None else None
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return Served(
        resource,
        Custom(schema, scaling),
        columns=version.get("additionalPrinterColumns") or [],
        scaling=scaling,
        closed="deletionTimestamp" in crd["metadata"],
        settled_since=settled_since,
        deprecation=_deprecation(resource, version),
    )


def _deprecation(resource: Resource, version: Json) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{resource.api_version} {resource.kind} is deprecated"


def _scaling(scale: Json) -> Scaling:
    paths = (scale.get(name) or "" for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"))
    return Scaling(*(tuple(part for part in path.split(".") if part) for path in paths))


def _metadata_type() -> Type:
    """Metadata are the same for all kinds."""
    found = schemas.type_of("", "v1", "ConfigMap")
    assert found is not None
    return found.properties["metadata"]
