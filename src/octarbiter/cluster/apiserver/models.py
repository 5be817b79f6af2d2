"""What does the server know about the objects of a built-in kind?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import decoding, defaults, kinds, schemas, status, validation
from octarbiter.cluster.apiserver.catalogue import Model, Reading, Scaling, Served
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.apiserver.types import Type

_DEPRECATED: Final = {
    "Endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
_SCALING: Final = Scaling(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))


class BuiltIn:
    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    @property
    def type(self) -> Type | None:
        return schemas.type_of(self._resource.group, self._resource.version, self._resource.kind)

    def read(self, obj: Json, duplicates: Sequence[str]) -> Reading:
        type_ = self.type
        if type_ is None:
            return Reading()
        checked = decoding.check(obj, type_, duplicates=duplicates)
        if checked.problem is None:
            decoding.prune(obj, type_)
        return Reading(checked.problem, checked.strict_errors)

    def default(self, obj: Json) -> None:
        defaults.apply(self._resource.group, self._resource.kind, obj)

    def refresh(self, obj: Json) -> None:
        """Nothing: the rules of built-in kinds do not change while the server runs."""

    def complete(self, obj: Json, old: Json | None) -> None:
        defaults.complete(self._resource.group, self._resource.kind, obj, old)

    def problems(self, obj: Json, old: Json | None, subresource: str = "") -> Sequence[status.Problem]:
        return validation.validate(self._resource.group, self._resource.kind, obj, old, subresource)


def built_in(special: dict[Resource, Model]) -> list[Served]:
    """`special` are models of kinds about which the server knows more."""
    return [
        Served(
            row,
            special.get(row) or BuiltIn(row),
            scaling=_SCALING if row.subresource("scale") else None,
            deprecation=_DEPRECATED.get(row.kind, ""),
        )
        for row in kinds.BUILT_IN
    ]
