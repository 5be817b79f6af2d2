"""What has to be done so that the quotas of a namespace say what its queue may use?

1. Queue and quota are the user's: ours are the keys, the object is theirs. It is the one with our label, else the only
   one; if there are several, we make our own. What we replace goes to an annotation and comes back when the Queue
   goes, also the absence of a key. A user's quota is never deleted.
2. Only the Queue: we make the quota, and repair it.
3. Only the quota, in a managed namespace: we make the Queue from it.
4. Neither, in a managed namespace: nothing is made, and pods are refused (see `admission`). In mode `default-queue` the
   Queue `default` is made, of weight 1 and without a request: its demand is what its pods use, so they are let in, and
   what they use beyond its share is taken back. Extended resources are 0 there as for everybody who does not ask.

Which quota it is depends on what is there, never on who was there first: a user's only quota takes the place of one
that we made. A quota with scopes limits only some of the pods, so it is none of ours. Everything is recomputed from
what is seen; where all is as it should be, there are no deeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping

import msgspec

from octarbiter.api import arbitrator
from octarbiter.api.arbitrator import Mode
from octarbiter.api.queue import MAX_NAME
from octarbiter.api.resources import Amounts
from octarbiter.core.quota import keys, names


class Value(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Quota(Value, frozen=True):
    """A ResourceQuota as it is."""

    name: str
    uid: str = ""
    version: str = ""
    hard: dict[str, str] = {}
    queue: str | None = None
    """Our label."""
    original: str | None = None
    """Our annotation."""
    made_by: str = ""
    owner: str = ""
    """UID of the Queue that controls it."""
    is_scoped: bool = False

    @property
    def is_made(self) -> bool:
        """By us, and so ours to remove."""
        return self.made_by == arbitrator.MANAGER or self.owner != ""


class Holder(Value, frozen=True):
    """The leaf queue whose pods are in the namespace."""

    namespace: str
    name: str
    uid: str
    may_use: Amounts = {}
    """Here, as quotas count: after sharing among namespaces and oversubscription."""
    asked: tuple[str, ...] = ()
    """Resources that it asks for."""


class Namespace(Value, frozen=True):
    name: str
    mode: Mode | None = None
    queue: Holder | None = None
    quotas: tuple[Quota, ...] = ()
    is_contested: bool = False
    """Several queues claim it: nothing is changed until one is left."""
    is_ending: bool = False


class CreateQuota(Value, frozen=True):
    name: str
    hard: dict[str, str]
    label: str
    owner: Holder | None
    """None: it is in another namespace, and nobody can own across namespaces."""


class ChangeQuota(Value, frozen=True):
    name: str
    version: str
    hard: keys.Hard
    """Only what changes."""
    annotation: str | None
    """None: none (our own quotas have nothing to remember)."""
    label: str
    is_made: bool = False
    owner: Holder | None = None
    """Of one that we made."""


class RestoreQuota(Value, frozen=True):
    name: str
    version: str
    hard: keys.Hard
    label: str | None
    """As it was; None: there was none."""


class DeleteQuota(Value, frozen=True):
    name: str
    uid: str


class CreateQueue(Value, frozen=True):
    name: str
    request: Amounts


Deed = CreateQuota | ChangeQuota | RestoreQuota | DeleteQuota | CreateQueue
"""To be done in the order given."""


def deeds(namespace: Namespace, extended: Collection[str], exempt: Collection[str] = names.exempt()) -> list[Deed]:
    """`extended`: the extended resources that there are in the cluster."""
    if namespace.is_ending or namespace.is_contested or namespace.name in exempt:
        return []
    quotas = sorted((quota for quota in namespace.quotas if not quota.is_scoped), key=lambda quota: quota.name)
    theirs = [quota for quota in quotas if not quota.is_made]
    made = [quota for quota in quotas if quota.is_made]
    if namespace.queue is None:
        return [*_restored(theirs), *_deleted(made), *_queue_made(namespace, theirs)]
    wanted = keys.wanted(namespace.queue.may_use, namespace.queue.asked, extended, namespace.mode)
    chosen = _chosen(theirs)
    if chosen is not None:
        others = [quota for quota in theirs if quota is not chosen]
        # First the new one, then the old: pods are never without a limit.
        return [*_changed(chosen, namespace.queue, wanted), *_restored(others), *_deleted(made)]
    return [*_restored(theirs), *_made(namespace, namespace.queue, made, wanted)]


def users_values(quota: Quota) -> dict[str, str]:
    """What stands in it when our figures are taken out again."""
    return _overlaid(quota.hard, {key: value for key, value in remembered(quota).items() if key != arbitrator.QUEUE})


def remembered(quota: Quota) -> keys.Hard:
    """What its annotation says; what cannot be read says nothing."""
    try:
        return msgspec.json.decode(quota.original or "{}", type=dict[str, str | None])
    except msgspec.MsgspecError:
        return {}


def _chosen(theirs: list[Quota]) -> Quota | None:
    labelled = [quota for quota in theirs if quota.queue is not None or quota.original is not None]
    if labelled:
        return min(labelled, key=lambda quota: quota.original is None)
    return theirs[0] if len(theirs) == 1 else None


def _changed(quota: Quota, queue: Holder, wanted: keys.Hard) -> Iterator[Deed]:
    before = users_values(quota)
    label = remembered(quota).get(arbitrator.QUEUE) if quota.original is not None else quota.queue
    original = {**{key: before.get(key) for key in wanted}, arbitrator.QUEUE: label}
    annotation = msgspec.json.encode(original, order="sorted").decode()
    hard = _differences(quota.hard, _overlaid(before, wanted))
    if hard or quota.original != annotation or quota.queue != queue.name:
        yield ChangeQuota(name=quota.name, version=quota.version, hard=hard, annotation=annotation, label=queue.name)


def _restored(theirs: list[Quota]) -> Iterator[Deed]:
    for quota in theirs:
        if quota.original is not None:
            label = remembered(quota).get(arbitrator.QUEUE)
            before = users_values(quota)
            # To the letter: also where the figure is the same.
            hard = {
                key: before.get(key) for key in sorted({*quota.hard, *before}) if quota.hard.get(key) != before.get(key)
            }
            yield RestoreQuota(name=quota.name, version=quota.version, hard=hard, label=label)


def _deleted(made: list[Quota]) -> Iterator[Deed]:
    return (DeleteQuota(name=quota.name, uid=quota.uid) for quota in made)


def _made(namespace: Namespace, queue: Holder, made: list[Quota], wanted: keys.Hard) -> Iterator[Deed]:
    owner = queue if queue.namespace == namespace.name else None
    uid = owner.uid if owner is not None else ""
    # One that another Queue owns goes with that: the garbage collector would take it from under us.
    kept = next((quota for quota in made if quota.owner in ("", uid)), None)
    yield from _deleted([quota for quota in made if quota is not kept])
    hard = {key: value for key, value in wanted.items() if value is not None}
    if kept is None:
        taken = {quota.name for quota in namespace.quotas if quota not in made}
        yield CreateQuota(name=_free_name(queue.name, taken), hard=hard, label=queue.name, owner=owner)
        return
    changes = _differences(kept.hard, hard)
    marks = (kept.queue, kept.made_by, kept.owner, kept.original)
    if changes or marks != (queue.name, arbitrator.MANAGER, uid, None):
        yield ChangeQuota(
            name=kept.name,
            version=kept.version,
            hard=changes,
            annotation=None,
            label=queue.name,
            is_made=True,
            owner=owner,
        )


def _queue_made(namespace: Namespace, theirs: list[Quota]) -> Iterator[Deed]:
    if namespace.mode is None:
        return
    if theirs:
        first, *others = (keys.request_in(users_values(quota)) for quota in theirs)
        for other in others:  # each of them limits
            first |= {name: min(amount, first.get(name, amount)) for name, amount in other.items()}
        name = (_chosen(theirs) or theirs[0]).name[:MAX_NAME].rstrip("-.")
        yield CreateQueue(name=name, request=first)
    elif namespace.mode is Mode.DEFAULT_QUEUE:
        yield CreateQueue(name=names.DEFAULT_QUEUE, request={})


def _free_name(wanted: str, taken: Collection[str]) -> str:
    candidates = itertools.chain([wanted], (f"{wanted}-{number}" for number in itertools.count(2)))
    return next(name for name in candidates if name not in taken)


def _overlaid(hard: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    overlaid: keys.Hard = {**hard, **changes}
    return {key: value for key, value in overlaid.items() if value is not None}


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> keys.Hard:
    return {key: after.get(key) for key in sorted({*before, *after}) if not keys.same(before.get(key), after.get(key))}
