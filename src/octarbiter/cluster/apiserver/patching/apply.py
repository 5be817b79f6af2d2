"""What is an object, and who owns what of it, after a server-side apply?

1. What is applied is laid over the live object.
2. What this manager applied last time and no longer does is taken out, unless somebody else owns it, too.
3. Where that changes a field somebody else owns, there is a conflict; with `force` the field changes hands.

Applying the value a field has already makes it shared: no conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.patching import (
    conformity,
    errors,
    field_sets,
    managed_fields,
    merging,
    ownership,
    shapes,
    values,
)
from octarbiter.cluster.apiserver.patching.field_sets import BadFields, Fields, Path
from octarbiter.cluster.apiserver.patching.managed_fields import Owned, Owner, Owners
from octarbiter.cluster.apiserver.types import Type

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What `kubectl apply` without `--server-side` remembers in the object."""
_MAX_ANNOTATIONS_BYTES = 256 << 10


def apply(
    live: Json | None,
    applied: Json,
    type: Type,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    force: bool,
    now: str,
    ignored: Sequence[Path] = (),
) -> Json:
    """The new object with its managedFields; `live` is None if there is none yet. BadPatch, ApplyConflict.

    If it is `managed_fields.same_but_for_times` as `live`, nothing is to be stored.
    """
    if not isinstance(applied, dict):
        raise errors.bad_request("error decoding YAML: the body must be an object")
    values.check_depth(applied)
    if managed_fields.record_of(applied) is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    type = shapes.whole_object(type)
    if problems := conformity.problems(applied, type):
        raise errors.internal(f"failed to create typed patch object ({_named(applied)}): {conformity.text(problems)}")
    mine = managed_fields.owner_of(manager, managed_fields.APPLY, api_version, subresource)
    applying = _Applying(live or {}, applied, type, mine, api_version, now, ignored)
    try:
        return applying.result(force)
    except errors.ApplyConflict:
        if manager != "kubectl" or not applying.may_take_over_from_client_side_apply():
            raise
        return applying.result(force=True)
    except shapes.NoKey as problem:
        raise errors.internal(f"failed to create typed live object ({_named(live or {})}): {problem}") from None
    except BadFields as problem:
        raise errors.internal(f"failed to decode managed fields: {problem}") from None


class _Applying:
    def __init__(
        self,
        live: Json,
        applied: Json,
        type: Type,
        mine: Owner,
        api_version: str,
        now: str,
        ignored: Sequence[Path],
    ) -> None:
        self._live, self._applied, self._type = live, applied, type
        self._mine, self._api_version, self._now = mine, api_version, now
        self._ignored = ignored
        self._conflicts: dict[Owner, Fields] = {}

    def result(self, force: bool) -> Json:
        owners = self._owners()
        before = owners.get(self._mine)
        live = managed_fields.without_record(self._live)
        wanted = ownership.of(self._applied, self._type)
        owners[self._mine] = Owned(
            field_sets.without(wanted, managed_fields.ignoring(self._ignored)),
            self._api_version,
            before.time if before is not None else "",
        )
        merged = merging.merge(live, self._applied, self._type)
        new = self._pruned(merged, owners, before.fields if before is not None else {})
        change = ownership.compare(live, new, self._type).without(managed_fields.ignoring(self._ignored))
        left, self._conflicts = managed_fields.changed(owners, change, by=self._mine)
        if self._conflicts and not force:
            raise errors.ApplyConflict(_listed(self._conflicts))
        self._finish(left, is_change=not values.equal(live, new))
        self._refresh_last_applied(new)
        record = managed_fields.encode(left)
        return {**new, "metadata": {**(new.get("metadata") or {}), **({"managedFields": record} if record else {})}}

    def _owners(self) -> Owners:
        owners = managed_fields.decode(managed_fields.record_of(self._live))
        if not owners:
            return managed_fields.first_owners(self._live, self._type, self._api_version, self._now)
        return {
            owner: owned._replace(fields=ownership.fitted(owned.fields, self._type)) for owner, owned in owners.items()
        }

    def _finish(self, left: Owners, *, is_change: bool) -> None:
        """Our own entry: without what nobody owns, and dated today if anything changed."""
        mine = left[self._mine]
        fields = field_sets.difference(mine.fields, managed_fields.NEVER_OWNED)
        if fields:
            left[self._mine] = mine._replace(fields=fields, time=self._now if is_change else mine.time)
        else:
            del left[self._mine]

    def _pruned(self, merged: Json, owners: Owners, last: Fields) -> Json:
        """Without what we applied last time and nobody wants any more."""
        if not last:
            return merged
        everything = self._named_fields(merged)
        last = ownership.naming_parents(last, self._type)
        kept = self._named_fields(merging.remove(merged, last, self._type))
        for owned in owners.values():
            kept = field_sets.union(kept, ownership.naming_parents(owned.fields, self._type))
        remaining = self._named_fields(merging.remove(merged, field_sets.difference(everything, kept), self._type))
        # A parent falls with its last child; what was in it and never ours must not fall with it.
        gone = field_sets.intersection(field_sets.difference(everything, remaining), last)
        pruned: Json = merging.remove(merged, gone, self._type)
        return pruned

    def _named_fields(self, value: Any) -> Fields:
        return ownership.naming_parents(ownership.of(value, self._type), self._type)

    def may_take_over_from_client_side_apply(self) -> bool:
        """Whoever moves from `kubectl apply` to `kubectl apply --server-side` meets only what they applied before."""
        annotation = _annotation(self._live)
        try:
            last = msgspec.json.decode(annotation)
        except (msgspec.DecodeError, RecursionError):
            return False
        if not isinstance(last, dict) or last.get("apiVersion") != self._api_version:
            return False
        try:
            values.check_depth(last)
            if conformity.problems(last, self._type):
                return False
            ours = ownership.of(last, self._type)
            change = ownership.compare(last, managed_fields.without_record(self._live), self._type)
        except (errors.BadPatch, shapes.NoKey):
            return False
        for drifted in change:
            ours = field_sets.difference(ours, drifted)
        rest = {owner: field_sets.difference(fields, ours) for owner, fields in self._conflicts.items()}
        rest = {owner: fields for owner, fields in rest.items() if fields}
        if rest:
            raise errors.ApplyConflict(_listed(rest))
        return True

    def _refresh_last_applied(self, new: Json) -> None:
        """`kubectl apply` without `--server-side` shall go on from what was applied here."""
        if self._mine.manager != "kubectl" or not _annotation(new):
            return
        applied = values.copied(self._applied)
        ((applied.get("metadata") or {}).get("annotations") or {}).pop(LAST_APPLIED, None)
        annotations = new["metadata"]["annotations"]
        annotations[LAST_APPLIED] = values.go_json(applied) + "\n"
        if sum(len(name.encode()) + len(str(value).encode()) for name, value in annotations.items()) > (
            _MAX_ANNOTATIONS_BYTES
        ):
            del annotations[LAST_APPLIED]


def _listed(conflicts: dict[Owner, Fields]) -> list[errors.Conflict]:
    return [
        errors.Conflict(str(owner), field_sets.text(path), f"conflict with {owner}")
        for owner in sorted(conflicts, key=Owner.rank)
        for path in field_sets.paths(conflicts[owner])
    ]


def _annotation(obj: Json) -> str:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(LAST_APPLIED) or "")


def _named(obj: Json) -> str:
    """As the server names an object: `default/x; apps/v1, Kind=Deployment`."""
    metadata = obj.get("metadata")
    name, namespace = ("", "")
    if isinstance(metadata, dict):
        name, namespace = (str(metadata.get(key) or "") for key in ("name", "namespace"))
    api_version, kind = (str(obj.get(key) or "") for key in ("apiVersion", "kind"))
    group, _, version = api_version.rpartition("/")
    return f"{namespace}/{name}; {group}/{version}, Kind={kind}"
