"""The life of a CustomResourceDefinition.

Names are accepted when no other definition of the group has them; accepted names are served at once, and stay served
until the definition is gone. A definition that is deleted takes its objects with it: its finalizer goes when the last
of them has gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import custom, deletion, kinds, models, objects, status
from octarbiter.cluster.apiserver.authn import ADMIN
from octarbiter.cluster.apiserver.catalogue import Catalogue, Served
from octarbiter.cluster.apiserver.options import Write
from octarbiter.cluster.apiserver.registry import Call, Registry
from octarbiter.cluster.store.errors import StoreError
from octarbiter.cluster.store.store import Store

log = logging.getLogger(__name__)

_LOOK_AGAIN_S: Final = 5.0
"""After a cleanup that failed; one that waits is woken by what it waits for."""


class Definition(models.BuiltIn):
    """What the server knows about CustomResourceDefinitions."""

    def __init__(self, others: Callable[[], Iterable[Json]], clock: Callable[[], datetime]) -> None:
        super().__init__(kinds.CRDS)
        self._others = others
        self._clock = clock

    def complete(self, obj: Json, old: Json | None) -> None:
        state = obj.setdefault("status", {})
        stored = state.get("storedVersions") or []
        current = [version["name"] for version in _versions(obj) if version.get("storage")]
        state["storedVersions"] = [*stored, *(name for name in current if name not in stored)]
        if obj["metadata"].get("deletionTimestamp"):
            return
        accept_names(obj, self._others(), objects.timestamp(self._clock()))

    def problems(self, obj: Json, old: Json | None, subresource: str = "") -> Sequence[status.Problem]:
        return [*super().problems(obj, old, subresource), *custom.definition_problems(obj, old)]


def accept_names(crd: Json, others: Iterable[Json], now: str) -> None:
    """Sets the accepted names and the conditions that follow from them."""
    wanted, state = crd["spec"].get("names") or {}, crd["status"]
    accepted = dict(state.get("acceptedNames") or {"plural": "", "kind": ""})
    taken, taken_kinds = _taken(crd, others)
    problem: tuple[str, str] | None = None
    for name, used in (("plural", taken), ("singular", taken), ("kind", taken_kinds), ("listKind", taken_kinds)):
        given = wanted.get(name, "")
        if given != accepted.get(name, "") and given in used:
            problem = (f"{name[0].upper()}{name[1:]}Conflict", f'"{given}" is already in use')
        elif given:
            accepted[name] = given
    mine = accepted.get("shortNames") or []
    clashes = [name for name in wanted.get("shortNames") or [] if name in taken and name not in mine]
    if clashes:
        texts = [f'"{name}" is already in use' for name in clashes]
        problem = ("ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    else:
        _set_or_drop(accepted, "shortNames", wanted.get("shortNames"))
    _set_or_drop(accepted, "categories", wanted.get("categories"))
    state["acceptedNames"] = accepted
    if problem:
        _condition(state, "NamesAccepted", "False", *problem, now)
        if not is_established(crd):
            _condition(state, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        _condition(state, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
        if not is_established(crd):
            said = "the initial names have been accepted"
            _condition(state, "Established", "True", "InitialNamesAccepted", said, now)


def is_established(crd: Json) -> bool:
    return _is_true(crd, "Established")


class Definitions:
    """Keeps what is served as the definitions say, and cleans up behind them."""

    def __init__(self, store: Store, catalogue: Catalogue, registry: Registry) -> None:
        self._store = store
        self._catalogue = catalogue
        self._registry = registry
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._said: dict[str, tuple[object, int]] = {}  # the versions of a definition, and since which revision

    def start(self) -> None:
        for entry in self._store.list(kinds.CRDS.root):
            self._take(objects.loaded(entry.value, kinds.CRDS), gone=False)

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def witness(self, served: Served, obj: Json, gone: bool) -> None:
        """To be told of every write."""
        if served.resource is kinds.CRDS:
            self._take(obj, gone=gone)

    def _take(self, crd: Json, *, gone: bool) -> None:
        name = crd["metadata"]["name"]
        if gone:
            self._said.pop(name, None)
            self._catalogue.define(name, [])
            self._in_background(f"{name} (names)", self._reconsider(crd["spec"]["group"]))
            return
        versions, since = self._said.get(name, (None, 0))
        if versions != crd["spec"]["versions"]:
            since = int(crd["metadata"]["resourceVersion"])
            self._said[name] = (objects.copied(crd["spec"]["versions"]), since)
        self._catalogue.define(name, custom.versions_of(crd, since) if is_established(crd) else [])
        if "deletionTimestamp" in crd["metadata"] and deletion.CLEANUP in (crd["metadata"].get("finalizers") or []):
            self._in_background(name, self._clean_up(crd))

    def _in_background(self, name: str, work: Any) -> None:
        if name in self._tasks:
            work.close()
            return

        def done(task: asyncio.Task[None]) -> None:
            del self._tasks[name]
            if not task.cancelled() and (problem := task.exception()):
                log.error("the work on a definition broke", exc_info=problem, extra={"crd": name})

        task = self._tasks[name] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(done)

    async def _clean_up(self, crd: Json) -> None:
        """Deletes the objects, waits until they are gone, lets the definition go."""
        name, names = crd["metadata"]["name"], crd["spec"]["names"]
        prefix = f"/{crd['spec']['group']}/{names['plural']}/"
        while True:
            try:
                watch = self._store.watch(prefix, self._store.revision)
                try:
                    await self._delete_objects(name, prefix)
                    if not self._store.list(prefix):
                        await self._release(name)
                        return
                    await anext(watch)
                finally:
                    watch.close()
            except (StoreError, status.Failure) as problem:
                log.warning("cannot clean up after a definition", extra={"crd": name, "why": str(problem)})
                await asyncio.sleep(_LOOK_AGAIN_S)

    async def _delete_objects(self, name: str, prefix: str) -> None:
        versions = self._catalogue.definitions().get(name) or []
        waiting = [entry for entry in self._store.list(prefix) if not objects.meta(entry.value).deletion_timestamp]
        if versions and waiting:
            call = Call(served=versions[0], namespace="", user=ADMIN, warnings=[])
            await self._registry.delete_all(call, waiting, deletion.Options(propagation="Background"))

    async def _release(self, name: str) -> None:
        def without_finalizer(old: Json) -> Json:
            kept = [each for each in old["metadata"].get("finalizers") or [] if each != deletion.CLEANUP]
            _set_or_drop(old["metadata"], "finalizers", kept)
            return old

        try:
            await self._registry.amend(self._call(name), without_finalizer)
        except status.Failure as failure:
            if failure.code != 404:
                raise

    async def _reconsider(self, group: str) -> None:
        """A name is free again: perhaps somebody was waiting for it."""
        for entry in self._store.list(kinds.CRDS.root):
            crd = objects.loaded(entry.value, kinds.CRDS)
            if crd["spec"]["group"] == group and not _is_true(crd, "NamesAccepted"):
                try:
                    await self._registry.modify(self._call(crd["metadata"]["name"]), lambda old: old or {})
                except status.Failure as failure:
                    log.warning("cannot reconsider names", extra={"crd": crd["metadata"]["name"], "why": str(failure)})

    def _call(self, name: str) -> Call:
        served = self._catalogue.of(kinds.CRDS)
        write = Write(manager="kube-apiserver")
        return Call(served=served, namespace="", user=ADMIN, name=name, write=write, warnings=[])


def others_in(store: Store) -> Callable[[], Iterable[Json]]:
    """All definitions, as last written."""
    return lambda: (objects.loaded(entry.value, kinds.CRDS) for entry in store.list(kinds.CRDS.root))


def _taken(crd: Json, others: Iterable[Json]) -> tuple[set[str], set[str]]:
    names: set[str] = set()
    taken_kinds: set[str] = set()
    for other in others:
        itself = other["metadata"]["name"] == crd["metadata"].get("name")
        if itself or other["spec"]["group"] != crd["spec"].get("group"):
            continue
        accepted = (other.get("status") or {}).get("acceptedNames") or {}
        names |= {accepted.get("plural", ""), accepted.get("singular", ""), *(accepted.get("shortNames") or [])}
        taken_kinds |= {accepted.get("kind", ""), accepted.get("listKind", "")}
    return names - {""}, taken_kinds - {""}


def _versions(crd: Json) -> list[Json]:
    versions = (crd.get("spec") or {}).get("versions") or []
    return [version for version in versions if isinstance(version, dict)]


def _is_true(crd: Json, type_: str) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(each.get("type") == type_ and each.get("status") == "True" for each in conditions)


def _condition(state: Json, type_: str, value: str, reason: str, message: str, now: str) -> None:
    conditions = [dict(each) for each in state.get("conditions") or []]
    found = next((each for each in conditions if each.get("type") == type_), None)
    if found is None:
        found = {"type": type_}
        conditions.append(found)
    if found.get("status") != value:
        found["lastTransitionTime"] = now
    found |= {"status": value, "reason": reason, "message": message}
    state["conditions"] = conditions


def _set_or_drop(holder: Json, name: str, value: Any) -> None:
    if value:
        holder[name] = value
    else:
        holder.pop(name, None)
