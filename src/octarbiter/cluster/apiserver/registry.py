"""What does each verb do? One implementation for all resources.

Reads are splices of stored bytes. A write is decided on the latest state and put with its revision as a condition:
without waiting in between nobody can come first, and where a plugin waited, the loop decides anew. So the client sees a
conflict only if it named a version itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import admission, advice, deletion, kinds, objects, options, preparation, status
from octarbiter.cluster.apiserver.admission import Attempt
from octarbiter.cluster.apiserver.authn import User
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.apiserver.deletion import Outcome
from octarbiter.cluster.apiserver.patching import managed_fields
from octarbiter.cluster.store.entries import Entry
from octarbiter.cluster.store.errors import Conflict
from octarbiter.cluster.store.store import Store

_NAME_ATTEMPTS: Final = 8
_WRITE_ATTEMPTS: Final = 64
"""Of one request against others that write the same object; with fewer a client could be starved for nothing."""
_LARGEST: Final = 3 * 1024 * 1024
"""Of what is stored: an object larger than a request may be could not be written back."""

_JOB_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class Call(msgspec.Struct, kw_only=True):
    """One request for one resource, and what its sender shall be warned about."""

    served: Served
    namespace: str
    user: User
    name: str = ""
    subresource: str = ""
    write: options.Write = options.Write(manager="unknown")
    warnings: list[str] = []

    @property
    def key(self) -> str:
        return self.served.resource.key(self.namespace, self.name)


class Written(msgspec.Struct, frozen=True):
    value: bytes
    """As stored."""
    created: bool = False


class Deleted(msgspec.Struct, frozen=True):
    value: bytes
    gone: bool


Produce = Callable[[Json | None], Json]
"""From the object as it is (None: there is none) to the object as it shall be."""

Witness = Callable[[Served, Json, bool], None]
"""Told of everything that was written: the object, and whether it is gone."""


class Registry:
    def __init__(
        self,
        store: Store,
        chain: admission.Chain,
        clock: Callable[[], datetime],
        unattended: Collection[str] = (),
    ) -> None:
        """`unattended`: kinds, and subresources such as `pods/resize`, on which nobody acts."""
        self._store = store
        self._chain = chain
        self._clock = clock
        self._unattended = frozenset(unattended)
        self.witnesses: list[Witness] = []

    def get(self, served: Served, namespace: str, name: str) -> Entry:
        entry = self._store.get(served.resource.key(namespace, name))
        if entry is None:
            raise status.not_found(served.resource, name)
        return entry

    async def create(self, call: Call, obj: Json) -> Written:
        metadata = preparation.metadata_of(obj)
        if metadata.get("resourceVersion") not in (None, "", "0"):
            # Kubernetes answers 500; but it is the client's mistake.
            raise status.bad_request("resourceVersion should not be set on objects to be created")
        if metadata.get("name") or not metadata.get("generateName"):
            return await self._create(call, obj)
        for attempt in range(1, _NAME_ATTEMPTS + 1):
            try:
                return await self._create(call, objects.copied(obj))
            except status.Failure as failure:
                if failure.reason != "AlreadyExists" or attempt == _NAME_ATTEMPTS:
                    raise
        raise AssertionError

    async def update(self, call: Call, obj: Json) -> Written:
        """PUT: the object replaces the present one."""
        resource = call.served.resource
        metadata = preparation.metadata_of(obj)
        if metadata.get("name") != call.name:
            given = metadata.get("name") or ""
            if not given:
                raise status.bad_request(
                    f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
                )
            raise status.bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({call.name})"
            )
        version = metadata.get("resourceVersion") or ""
        version = "" if version == "0" else version

        def produce(old: Json | None) -> Json:
            if old is not None and not version and resource.put_needs_version:
                problem = preparation.version_missing()
                raise status.invalid(resource, call.name, [problem], kind=resource.plural)
            _check_version(resource, call.name, version, old)
            _check_uid(resource, call.namespace, call.name, metadata.get("uid"), old)
            return objects.copied(obj)

        may_create = resource.put_creates and not call.subresource
        return await self.modify(call, produce, may_create=may_create, conditional=bool(version))

    async def modify(
        self,
        call: Call,
        produce: Produce,
        *,
        may_create: bool = False,
        conditional: bool = False,
        keeps_owners: bool = False,
    ) -> Written:
        """Changes the latest state of an object. `keeps_owners`: `produce` has settled who owns which fields."""
        resource = call.served.resource
        for _ in range(_WRITE_ATTEMPTS):
            entry = self._store.latest(call.key)
            if entry is None:
                if not may_create:
                    raise status.not_found(resource, call.name)
                return await self._create(call, produce(None), keeps_owners=keeps_owners)
            old = objects.loaded(entry.value, resource)
            obj = produce(objects.loaded(entry.value, resource))
            try:
                return await self._replace(call, entry, obj, old, keeps_owners)
            except Conflict:
                if conditional:
                    raise status.conflict(resource, call.name) from None
        raise status.conflict(resource, call.name)

    async def amend(self, call: Call, change: Callable[[Json], Json]) -> Written:
        """Changes the latest state on the server's own account: no rules of the kind, no owners, no generation."""
        served, resource = call.served, call.served.resource
        for _ in range(_WRITE_ATTEMPTS):
            entry = self._store.latest(call.key)
            if entry is None:
                raise status.not_found(resource, call.name)
            old = objects.loaded(entry.value, resource)
            obj = change(objects.loaded(entry.value, resource))
            if call.write.dry_run:
                return Written(objects.stored(obj, resource))
            try:
                if deletion.completes_deletion(resource, obj, old):
                    return Written(await self._remove(served, entry, obj))
                return Written(await self._put(served, entry, obj, old))
            except Conflict:
                continue
        raise status.conflict(resource, call.name)

    async def delete(self, call: Call, wanted: deletion.Options) -> Deleted:
        resource = call.served.resource
        self._warn_of_orphans(call, wanted)
        for _ in range(_WRITE_ATTEMPTS):
            entry = self._store.latest(call.key)
            if entry is None:
                raise status.not_found(resource, call.name)
            old = objects.loaded(entry.value, resource)
            attempt = self._attempt(call, admission.DELETE, None, old, wanted.dry_run)
            await self._chain.admit(attempt)
            await self._chain.validate(attempt)
            outcome, obj = deletion.decide(resource, old, wanted, self._clock())
            gone = outcome in (Outcome.REMOVE, Outcome.MARK_AND_REMOVE)
            if outcome is Outcome.PENDING or wanted.dry_run:
                return Deleted(objects.stored(obj, resource), gone)
            try:
                if outcome is Outcome.MARK_AND_REMOVE:
                    return Deleted(await self._mark_and_remove(call.served, entry, obj), True)
                if outcome is Outcome.REMOVE:
                    return Deleted(await self._remove(call.served, entry, obj), True)
                return Deleted(await self._put(call.served, entry, obj, old), False)
            except Conflict:
                continue
        raise status.conflict(resource, call.name)

    async def delete_all(self, call: Call, chosen: Sequence[Entry], wanted: deletion.Options) -> None:
        """One after the other in what they decide, together in what they wait for."""
        self._warn_of_orphans(call, wanted)

        async def one(entry: Entry) -> None:
            metadata = objects.meta(entry.value)
            single = msgspec.structs.replace(call, namespace=metadata.namespace, name=metadata.name)
            try:
                await self.delete(single, wanted)
            except status.Failure as failure:
                if failure.code != 404:
                    raise

        results = await asyncio.gather(*(one(entry) for entry in chosen), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _warn_of_orphans(self, call: Call, wanted: deletion.Options) -> None:
        if call.served.resource.kind == "Job" and wanted.propagation is None and wanted.orphan is None:
            call.warnings.append(_JOB_WARNING)

    async def _create(self, call: Call, obj: Json, *, keeps_owners: bool = False) -> Written:
        served, resource = call.served, call.served.resource
        preparation.place(obj, resource, call.namespace)
        served.model.default(obj)
        generated = not preparation.metadata_of(obj).get("name")
        now = self._clock()
        preparation.for_creation(obj, resource, now)
        if not keeps_owners:
            self.settle_owners(call, None, obj, now)
        metadata = obj["metadata"]
        name = metadata.get("name") or ""
        if served.closed:
            why = "create not allowed while custom resource definition is terminating"
            raise status.forbidden(resource, name, why)
        attempt = self._attempt(call, admission.CREATE, obj, None, call.write.dry_run)
        attempt.name = name
        await self._chain.admit(attempt)
        preparation.complete_new(obj, resource)
        served.model.complete(obj, None)
        problems = [*served.model.problems(obj, None)]
        problems = problems or [*preparation.name_problems(obj)]
        if problems:
            raise status.invalid(resource, name, problems)
        call.warnings += advice.on(resource, obj, None)
        if resource.kind in self._unattended:
            call.warnings.append(advice.nobody_acts_on(resource))
        await self._chain.validate(attempt)
        key = resource.key(call.namespace, name)
        present = self._store.latest(key)
        if present is None and call.write.dry_run:
            return Written(objects.stored(obj, resource), created=True)
        try:
            if present is not None:
                raise Conflict(key, 0, present)
            return Written(await self._put(served, None, obj, None), created=True)
        except Conflict as conflict:
            deleting = conflict.current is not None and objects.meta(conflict.current.value).deletion_timestamp
            raise status.already_exists(resource, name, deleting=bool(deleting), generated=generated) from None

    async def _replace(self, call: Call, entry: Entry, obj: Json, old: Json, keeps_owners: bool) -> Written:
        served, resource = call.served, call.served.resource
        preparation.place(obj, resource, call.namespace)
        served.model.default(obj)
        impostures = preparation.identity_problems(obj, old)
        sent = preparation.metadata_of(obj)
        preparation.for_update(obj, old, resource, call.subresource)
        now = self._clock()
        if not keeps_owners:
            self.settle_owners(call, old, obj, now, sent)
        attempt = self._attempt(call, admission.UPDATE, obj, old, call.write.dry_run)
        await self._chain.admit(attempt)
        preparation.count_generation(obj, old, resource, call.subresource)
        served.model.complete(obj, old)
        # The real server looks at them twice, and says so twice.
        problems: list[status.Problem] = [*impostures, *preparation.metadata_problems(obj, old)] * 2
        problems += served.model.problems(obj, old, call.subresource)
        if problems:
            raise status.invalid(resource, call.name, problems)
        if not call.subresource:
            call.warnings += advice.on(resource, obj, old)
        elif f"{resource.plural}/{call.subresource}" in self._unattended:
            call.warnings.append(advice.NOT_STARTED)
        await self._chain.validate(attempt)
        if call.write.dry_run:
            return Written(objects.stored(obj, resource))
        if deletion.completes_deletion(resource, obj, old):
            # Watchers see it as it last was; who took the last finalizer away sees what he wrote.
            await self._remove(served, entry, old)
            return Written(objects.stored(obj, resource))
        return Written(await self._put(served, entry, obj, old))

    async def _put(self, served: Served, entry: Entry | None, obj: Json, old: Json | None) -> bytes:
        """What is stored then. An object that did not change is not written, and nobody hears of it."""
        resource = served.resource
        if entry is not None and old is not None and _is_unchanged(obj, old):
            return entry.value
        value = b""

        def make(revision: int) -> bytes:
            nonlocal value
            value = objects.stamped(obj, resource, revision)
            if len(value) > _LARGEST and (entry is None or len(value) > len(entry.value)):
                raise status.body_too_large(_LARGEST)
            return value

        metadata = obj["metadata"]
        key = resource.key(metadata.get("namespace", ""), metadata["name"])
        await self._store.put(key, make, expected=entry.revision if entry else 0)
        for witness in self.witnesses:
            witness(served, obj, False)
        return value

    async def _remove(self, served: Served, entry: Entry, obj: Json) -> bytes:
        value = b""

        def make(revision: int) -> bytes:
            nonlocal value
            value = objects.stamped(obj, served.resource, revision)
            return value

        await self._store.delete(entry.key, make, expected=entry.revision)
        for witness in self.witnesses:
            witness(served, obj, True)
        return value

    async def _mark_and_remove(self, served: Served, entry: Entry, obj: Json) -> bytes:
        """Two changes in one transaction: whoever comes back after a crash finds both or neither."""
        value, marked = b"", 0

        def make(revision: int) -> bytes:
            nonlocal value, marked
            marked = marked or revision
            value = objects.stamped(obj, served.resource, revision)
            return value

        async def remove() -> None:
            # Begins right after the mark was handed in, and does nothing if it was refused.
            if marked:
                await self._store.delete(entry.key, make, expected=marked)

        await asyncio.gather(self._store.put(entry.key, make, expected=entry.revision), remove())
        for witness in self.witnesses:
            witness(served, obj, True)
        return value

    def settle_owners(self, call: Call, old: Json | None, obj: Json, now: datetime, sent: Json | None = None) -> None:
        """Who wrote which fields is recorded in the object. `sent`: its metadata as they came; of a custom object they
        are owned also by whoever sends them through the status, where they change nothing."""
        type_ = call.served.model.type
        if type_ is None:
            return
        seen = obj
        if sent is not None and call.served.resource.custom and call.subresource == "status":
            seen = {**obj, "metadata": sent}
        owners = managed_fields.updated(
            old,
            seen,
            type_,
            manager=call.write.manager,
            api_version=call.served.resource.api_version,
            subresource=call.subresource,
            now=objects.timestamp(now),
            ignored=managed_fields.reset_by(call.subresource, has_status=call.served.resource.has_status),
        )
        if owners:
            obj["metadata"]["managedFields"] = owners
        else:
            obj["metadata"].pop("managedFields", None)

    def _attempt(self, call: Call, operation: str, obj: Json | None, old: Json | None, dry_run: bool) -> Attempt:
        return Attempt(
            operation=operation,
            served=call.served,
            namespace=call.namespace,
            name=call.name,
            user=call.user,
            obj=obj,
            old=old,
            subresource=call.subresource,
            dry_run=dry_run,
            warnings=call.warnings,
        )


def _check_version(resource: kinds.Resource, name: str, version: str, old: Json | None) -> None:
    """What is not there yet has no version to differ from: a PUT that may create does, as on the real server."""
    if not version or old is None:
        return
    if not version.isascii() or not version.isdigit():
        raise status.bad_request(f"strconv.ParseUint: parsing {objects.encode(version).decode()}: invalid syntax")
    if version != old["metadata"]["resourceVersion"]:
        raise status.conflict(resource, name)


def _check_uid(resource: kinds.Resource, place: str, name: str, uid: object, old: Json | None) -> None:
    present = old["metadata"].get("uid", "") if old is not None else ""
    if uid and uid != present:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {present}"
        raise status.lost_precondition(resource, place, name, why)


def _is_unchanged(obj: Json, old: Json) -> bool:
    """But for when somebody claimed to have written it. The quick look first: most writes change something."""
    if managed_fields.without_record(obj) != managed_fields.without_record(old):
        return False
    return managed_fields.same_but_for_times(old, obj)
