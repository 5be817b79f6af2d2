"""Who owns which fields of an object after a write that was not an apply?

Whoever changes a field owns it, alone; what is removed nobody owns. Each manager has one entry per apiVersion and
subresource. Objects whose owners were never recorded stay without: an apply begins the record.

When kube-apiserver computes this: on what the client's request makes of the object, with defaults, *before* admission
and before the server's own changes (allocated addresses, generation), none of which anybody owns. `ignored` names what
the write resets anyway: see `reset_by`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.patching import field_sets, ownership, shapes, values
from octarbiter.cluster.apiserver.patching.field_sets import BadFields, Fields, Path
from octarbiter.cluster.apiserver.types import Type

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATE_MANAGERS = 10
ANCIENT = "ancient-changes"

NEVER_OWNED = field_sets.of_paths(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


class Owner(NamedTuple):
    """Who has one entry."""

    manager: str
    operation: str
    api_version: str
    """Empty for appliers: they have one entry, whichever version they use."""
    subresource: str

    def __str__(self) -> str:
        """As people are told of a conflict."""
        text = _quoted(self.manager)
        if self.subresource:
            text += f" with subresource {_quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text

    def rank(self) -> str:
        """Managers are compared by this text, so that those of equal age come in one order."""
        named = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({key: value for key, value in named.items() if value}).decode()


class Owned(NamedTuple):
    fields: Fields
    api_version: str
    time: str


Owners = dict[Owner, Owned]


def owner_of(manager: str, operation: str, api_version: str, subresource: str) -> Owner:
    return Owner(manager or "unknown", operation, "" if operation == APPLY else api_version, subresource)


def updated(
    before: Json | None,
    after: Json,
    type: Type,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    ignored: Sequence[Path] = (),
) -> list[Json]:
    """`metadata.managedFields` of `after`, which a manager made of `before` (None: it created it)."""
    try:
        owners = _known(before, after, trust_request=not subresource)
        if before is not None and not owners:
            return []
        mine = owner_of(manager, UPDATE, api_version, subresource)
        return encode(_after_update(owners, before, after, type, mine, api_version, now, ignored))
    except (shapes.NoKey, BadFields):
        # Better no record than a wrong one; kube-apiserver does the same.
        return []


def reset_by(subresource: str, *, has_status: bool) -> list[Path]:
    """What a write cannot change, so that nobody comes to own it: for `updated` and `apply`, as `ignored`."""
    if subresource == "status":
        return [("f:spec",)]
    return [("f:status",)] if has_status and not subresource else []


def first_owners(live: Json, type: Type, api_version: str, now: str) -> Owners:
    """Of an object whose owners were never recorded, when the first apply meets it."""
    mine = owner_of("before-first-apply", UPDATE, api_version, "")
    return _after_update({}, None, live, type, mine, api_version, now, ())


def same_but_for_times(before: Json, after: Json) -> bool:
    """Then the write is none: nothing is stored, and the old object is the answer."""
    old, new = without_record(before), without_record(after)
    return values.equal(old, new) and values.equal(_timeless(before), _timeless(after))


def changed(owners: Owners, change: ownership.Change, *, by: Owner | None) -> tuple[Owners, dict[Owner, Fields]]:
    """What the others still own after a change, and what of theirs it touches."""
    touched = field_sets.union(change.modified, change.added)
    conflicts: dict[Owner, Fields] = {}
    left: Owners = {}
    for owner, owned in owners.items():
        if owner == by:
            left[owner] = owned
            continue
        theirs = field_sets.intersection(owned.fields, touched)
        if theirs:
            conflicts[owner] = theirs
        kept = field_sets.difference(field_sets.difference(owned.fields, theirs), change.removed)
        if kept:
            left[owner] = owned._replace(fields=kept)
    return left, conflicts


def stripped(fields: Fields, ignored: Sequence[Path]) -> Fields:
    """Without what nobody owns, and what this write resets."""
    return field_sets.without(field_sets.difference(fields, NEVER_OWNED), ignoring(ignored))


def ignoring(ignored: Sequence[Path]) -> Fields:
    return field_sets.of_paths(ignored)


def without_record(obj: Json) -> Json:
    """A shallow copy of the object without its managedFields."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _after_update(
    owners: Owners,
    before: Json | None,
    after: Json,
    type: Type,
    mine: Owner,
    api_version: str,
    now: str,
    ignored: Sequence[Path],
) -> Owners:
    type = shapes.whole_object(type)
    old = shapes.empty(type) if before is None else without_record(before)
    change = ownership.compare(old, without_record(after), type).without(ignoring(ignored))
    if change.touches_nothing():
        return _capped(owners)
    fitting = {owner: owned._replace(fields=ownership.fitted(owned.fields, type)) for owner, owned in owners.items()}
    left, _ = changed(fitting, change, by=None)
    gained = stripped(field_sets.union(change.modified, change.added), ignored)
    if gained:
        earlier = left.get(mine)
        kept = field_sets.union(gained, earlier.fields) if earlier is not None else gained
        left[mine] = Owned(kept, api_version, now)
    return _capped(left)


def _known(before: Json | None, after: Json, *, trust_request: bool) -> Owners:
    """The record to go on from: the client may have changed or emptied it, or may not know of it."""
    recorded = record_of(before or {})
    if trust_request:
        sent = record_of(after)
        if sent == [] or sent == [{}]:
            return {}
        try:
            if owners := decode(sent):
                return owners
        except BadFields:
            pass
    try:
        return decode(recorded)
    except BadFields:
        return {}


def record_of(obj: Json) -> Any:
    metadata = obj.get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def _capped(owners: Owners) -> Owners:
    """The oldest updates of a version become one entry when there are too many."""
    updates = [owner for owner in owners if owner.operation == UPDATE]
    surplus = len(updates) - MAX_UPDATE_MANAGERS
    if surplus <= 0:
        return owners
    result = dict(owners)
    first: dict[str, Owner] = {}
    for owner in sorted(updates, key=lambda owner: (owners[owner].time, owner.rank())):
        owned = owners[owner]
        bucket = Owner(ANCIENT, UPDATE, owned.api_version, "")
        if owned.api_version not in first:
            first[owned.api_version] = owner
            continue
        if bucket not in result:
            result[bucket] = result.pop(first[owned.api_version])
        result[bucket] = Owned(field_sets.union(owned.fields, result[bucket].fields), owned.api_version, owned.time)
        if owner != bucket:
            del result[owner]
        surplus -= 1
        if not surplus:
            break
    return result


# --- to and from `metadata.managedFields`


def decode(record: Any) -> Owners:
    """BadFields if it is not what a server wrote."""
    owners: Owners = {}
    if record is None:
        return owners
    if not isinstance(record, list):
        raise BadFields("managedFields must be a list")
    for index, entry in enumerate(record):
        if not isinstance(entry, dict):
            raise BadFields(f"managedFields entry {index} must be an object")
        manager, operation, api_version, subresource, time, fields_type = (
            _string(entry, name) for name in ("manager", "operation", "apiVersion", "subresource", "time", "fieldsType")
        )
        if operation not in (APPLY, UPDATE):
            raise BadFields("operation must be `Apply` or `Update`")
        if not api_version:
            raise BadFields("apiVersion must not be empty")
        if fields_type != "FieldsV1":
            problem = f"invalid fieldsType {_quoted(fields_type)}" if fields_type else "missing fieldsType"
            raise BadFields(f"{problem} in managed fields entry {index}")
        owner = Owner(manager, operation, "" if operation == APPLY else api_version, subresource)
        owners[owner] = Owned(field_sets.decode(entry.get("fieldsV1") or {}), api_version, time)
    return owners


def encode(owners: Owners) -> list[Json]:
    """In the server's order: appliers first, the oldest first."""
    listed = sorted(
        owners.items(),
        key=lambda entry: (
            entry[0].operation,
            entry[1].time,
            entry[0].manager,
            entry[1].api_version,
            entry[0].subresource,
        ),
    )
    return [_entry(owner, owned) for owner, owned in listed]


def _entry(owner: Owner, owned: Owned) -> Json:
    entry = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.encode(owned.fields),
        "subresource": owner.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def _timeless(obj: Json) -> Any:
    record = record_of(obj)
    if not isinstance(record, list):
        return record
    return [
        {name: value for name, value in entry.items() if name != "time"} if isinstance(entry, dict) else entry
        for entry in record
    ]


def _string(entry: Json, name: str) -> str:
    value = entry.get(name) or ""
    if not isinstance(value, str):
        raise BadFields(f"{name} must be a string")
    return value


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
