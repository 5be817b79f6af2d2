"""What is wrong with what the arbitrator did? Judged from the history alone, in the order of revisions.

At every moment
- no quota allows more than its queue's status says that it deserves, and all of them together no more than there is,
- no status allows more than is deserved, and says how much is missing,
- a workload is started only after its claim says so, and suspended only after its claim says that it has nothing.

A pod is evicted only
- where the pods that stay use more than the quota allows: it is not asked for what others already give,
- if the queue can be asked, and keeps what it is guaranteed, and the pod can be asked,
- if somebody waits for it, or can grow thereby. (Whether the claimant has meanwhile given up cannot be told, so then
  nobody is blamed; `Judge.excused` counts those.)

What must hold at rest is said by `wrong_at_rest`.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from arbitration_observer import Change, Claim, Job, Pod, Queue, Quota, used

from octarbiter.api import resources
from octarbiter.api.resources import Amounts

LATE_S = 3.0
"""What ended by itself so short a time ago may not have been known to who decided."""


@dataclass(slots=True)
class Eviction:
    change: Change[Pod]
    queue: str
    """UID."""
    allocated: dict[str, Amounts]
    """By queue, when it happened."""
    has_excuse: bool
    """Somebody gave up at about that time; it may have been the claimant."""


STORY = 40
"""So much of what happened before a problem is told with it."""


class Judge:
    def __init__(self, total: Amounts) -> None:
        self._total = total
        self._queues: dict[str, Change[Queue]] = {}
        self._quotas: dict[str, Change[Quota]] = {}
        self._pods: dict[str, Change[Pod]] = {}
        self._claims: dict[str, Change[Claim]] = {}
        self._jobs: dict[str, Change[Job]] = {}
        self._went_s: dict[str, tuple[float, Change[Pod]]] = {}
        self._gave_up_s = float("-inf")
        self._unexplained: dict[str, Eviction] = {}
        self.evictions = self.excused = self.raises = 0
        self._story: collections.deque[str] = collections.deque(maxlen=STORY)
        self.problems: list[str] = []

    def take(self, changes: Iterable[Change[Any]], ours: set[str]) -> None:
        """`ours`: UIDs of the pods that their owner has deleted. All that was done by now has been heard."""
        for change in changes:
            self._story.append(told(change))
            match change.now:
                case Queue():
                    self._queue(change)
                case Quota():
                    self._quota(change)
                case Pod():
                    self._pod(change, ours)
                case Claim():
                    self._claim(change)
                case Job():
                    self._job(change)

    def at_rest(self) -> None:
        """Every eviction must have been good for somebody by now."""
        for eviction in self._unexplained.values():
            if eviction.has_excuse:
                self.excused += 1
            else:
                self._wrong(eviction.change, "was evicted, and nobody else has got or waits for more")
        self._unexplained.clear()

    # --- queues and quotas

    def _queue(self, change: Change[Queue]) -> None:
        queue = change.now
        before = self._queues.pop(change.uid, None)
        if change.is_gone or (before is not None and _asks_less(before.now, queue)):
            self._give_up(change)
        if change.is_gone:
            return
        self._queues[change.uid] = change
        lacking = resources.less(queue.deserved, queue.allocated)
        if not _within(queue.allocated, queue.deserved):
            self._wrong(change, f"allocated {queue.allocated} is more than deserved {queue.deserved}")
        if not _is_inner(queue) and resources.some(lacking) != queue.preempting:
            self._wrong(change, f"preempting is {queue.preempting}, missing is {lacking}")
        self._check_quotas(change)
        for uid, eviction in list(self._unexplained.items()):
            if eviction.queue != change.uid and _gains(queue, eviction.allocated.get(change.uid, {})):
                del self._unexplained[uid]

    def _quota(self, change: Change[Quota]) -> None:
        quota = change.now
        before = self._quotas.pop(change.uid, None)
        if change.is_gone:
            return
        self._quotas[change.uid] = change
        if before is not None and not _within(quota.may_use, before.now.may_use):
            self.raises += 1
        self._check_quotas(change)

    def _check_quotas(self, after: Change[Any]) -> None:
        sum_: Amounts = {}
        for seen in self._quotas.values():
            quota, queue = seen.now, self._queues.get(seen.now.owner)
            if queue is None:
                continue  # its queue is gone, and it will follow
            sum_ = resources.plus(sum_, quota.may_use)
            if after.uid in (seen.uid, queue.uid) and not _within(quota.may_use, queue.now.deserved):
                self._wrong(after, f"the quota allows {quota.may_use}, deserved is {queue.now.deserved}")
        if not _within(sum_, self._total):
            self._wrong(after, f"all quotas together allow {sum_}, there is {self._total}")

    # --- pods

    def _pod(self, change: Change[Pod], ours: set[str]) -> None:
        pod, known = change.now, self._pods.get(change.uid)
        went = (known is None or known.now.is_living) and (change.is_gone or not pod.is_living)
        by_owner = change.uid in ours or (pod.job and not self._runs(f"{change.namespace}/{pod.job}"))
        if went and pod.is_marked and not by_owner and pod.is_unfinished:
            self._evicted(change)
        elif went:
            self._went_s[change.uid] = (change.seen_s, change)
        if went and pod.is_unfinished and not (pod.is_marked or pod.job or by_owner):
            self._wrong(change, "somebody else has deleted it")
        if change.is_gone:
            self._pods.pop(change.uid, None)
        else:
            self._pods[change.uid] = change

    def _runs(self, job: str) -> bool:
        known = self._jobs.get(job)
        return known is not None and not known.now.is_suspended and not known.now.is_finished

    def _evicted(self, change: Change[Pod]) -> None:
        pod = change.now
        self.evictions += 1
        queue = next((each for each in self._queues.values() if each.namespace == change.namespace), None)
        quota = next((each.now for each in self._quotas.values() if each.namespace == change.namespace), None)
        if queue is None or quota is None:
            self._wrong(change, "was evicted from a namespace without a queue and a quota")
            return
        stay = used([each for uid, each in self._staying(change) if uid != change.uid])
        held = resources.plus(stay, pod.requests)
        late = used(self._went_lately(change))
        if _within(resources.plus(held, late), quota.may_use):
            self._wrong(change, f"was evicted, though the pods that stay use {held}, and the quota is {quota.may_use}")
        if pod.is_protected or not queue.now.spec.get("reclaimable", True):
            self._wrong(change, "was evicted, though it is protected")
        guarantee = resources.offered(queue.now.spec.get("guarantee", {}).get("resources", {}))
        if not _within(guarantee, stay):
            self._wrong(change, f"was evicted, though {guarantee} is guaranteed, and {stay} is left")
        others = [each.now for each in self._queues.values() if each.uid != queue.uid]
        if any(other.preempting for other in others):
            return
        allocated = {each.uid: each.now.allocated for each in self._queues.values()}
        has_excuse = change.seen_s - self._gave_up_s < LATE_S
        self._unexplained[change.uid] = Eviction(change, queue.uid, allocated, has_excuse)

    def _staying(self, change: Change[Pod]) -> Iterator[tuple[str, Pod]]:
        for uid, seen in self._pods.items():
            if seen.namespace == change.namespace and seen.now.is_living:
                yield uid, seen.now

    def _went_lately(self, change: Change[Pod]) -> Iterator[Pod]:
        self._went_s = {uid: went for uid, went in self._went_s.items() if change.seen_s - went[0] < LATE_S}
        for _, seen in self._went_s.values():
            if seen.namespace == change.namespace:
                yield seen.now

    def _give_up(self, change: Change[Any]) -> None:
        """Somebody asks for less than before."""
        self._gave_up_s = change.seen_s
        for eviction in self._unexplained.values():
            eviction.has_excuse = True

    # --- claims and their workloads

    def _claim(self, change: Change[Claim]) -> None:
        claim, before = change.now, self._claims.pop(change.key, None)
        was_finished = before is not None and before.now.holds("Finished")
        if change.is_gone or (claim.holds("Finished") and not was_finished):
            self._give_up(change)
        if not change.is_gone:
            self._claims[change.key] = change
            if claim.has > claim.asked or 0 < claim.has < claim.least:
                self._wrong(change, f"has {claim.has} units, asks for {claim.least} to {claim.asked}")

    def _job(self, change: Change[Job]) -> None:
        job, before = change.now, self._jobs.pop(change.key, None)
        if change.is_gone:
            return
        self._jobs[change.key] = change
        claim = self._claims.get(change.key)  # of the same name
        turned = before is not None and before.now.is_suspended != job.is_suspended
        if turned and claim is not None and claim.now.holds("Started") == job.is_suspended:
            self._wrong(change, f"suspended: {job.is_suspended}, and its claim says {claim.now.conditions}")

    def _wrong(self, change: Change[Any], what: str) -> None:
        self.problems.append("\n    ".join([f"{told(change)}\n    {what}; before that:", *self._story]))


def told(change: Change[Any]) -> str:
    """In a line."""
    match change.now:
        case Queue(deserved=deserved, allocated=allocated, used=in_use, preempting=lacks):
            what = f"deserved {deserved} allocated {allocated} used {in_use} preempting {lacks}"
        case Quota(may_use=may_use):
            what = f"{may_use}"
        case Claim(has=has, asked=asked, least=least):
            what = f"has {has} of {least} to {asked}, started: {change.now.holds('Started')}"
        case other:
            what = f"{other}"
    gone = " is gone:" if change.is_gone else ""
    return f"{change.revision} {change.seen_s:.2f} s {type(change.now).__name__} {change.key}{gone} {what}"


# --- at rest


def wrong_at_rest(
    queues: list[Change[Queue]],
    quotas: list[Change[Quota]],
    claims: list[Change[Claim]],
    jobs: list[Change[Job]],
    pods: list[Change[Pod]],
) -> Iterator[str]:
    """Nothing changes any more, and an arbitrator is there."""
    for change in queues:
        queue = change.now
        own = [each.now for each in claims if each.namespace == change.namespace]
        allowed = [each.now for each in quotas if each.now.owner == change.uid]
        if queue.deserved != queue.allocated or queue.preempting:
            yield f"{change.key}: deserved {queue.deserved}, allocated {queue.allocated}, preempting {queue.preempting}"
        yield from (f"{change.key}: {said}" for said in _wrong_sentences(queue))
        if _is_inner(queue):
            continue
        in_use = used(each.now for each in pods if each.namespace == change.namespace and each.now.is_unfinished)
        if resources.some(in_use) != resources.some(queue.used):
            yield f"{change.key}: its pods use {in_use}, its status says {queue.used}"
        if not _within(in_use, queue.allocated) and not _is_left_alone(queue):
            yield f"{change.key}: its pods use {in_use}, allocated is {queue.allocated}"
        if [resources.some(quota.may_use) for quota in allowed] != [resources.some(queue.allocated)]:
            yield f"{change.key}: quotas {allowed}, allocated {queue.allocated}"
        held = resources.plus(*(resources.times(claim.unit, claim.has) for claim in own))
        if not _within(held, queue.allocated):
            yield f"{change.key}: its claims have {held}, allocated is {queue.allocated}"
    yield from _wrong_claims(claims, {each.key: each.now for each in jobs})


def _wrong_claims(claims: list[Change[Claim]], jobs: dict[str, Job]) -> Iterator[str]:
    for change in claims:
        claim = change.now
        if claim.holds("Allocated") != (claim.has >= max(1, claim.least)):
            yield f"{change.key}: has {claim.has} units, and says {claim.conditions}"
        job = jobs.get(change.key)
        if job is None:
            continue
        if job.is_finished != claim.holds("Finished"):
            yield f"{change.key}: its Job has finished: {job.is_finished}, and it says {claim.conditions}"
        if not job.is_finished and job.is_suspended != (claim.has == 0):
            yield f"{change.key}: has {claim.has} units, its Job is suspended: {job.is_suspended}"


def _wrong_sentences(queue: Queue) -> Iterator[str]:
    satisfied, reclaiming = queue.conditions.get("Satisfied", {}), queue.conditions.get("Reclaiming", {})
    has_all = _within(queue.demand, queue.allocated)
    if satisfied.get("status") != str(has_all):
        yield f"asks for {queue.demand}, has {queue.allocated}, and says {satisfied}"
    elif resources.some(queue.demand):
        told = "has all it asks for" if has_all else "has all it deserves"
        named = {name for name in queue.demand if has_all or queue.demand[name] > queue.allocated.get(name, 0)}
        figures = [resources.shown(name, queue.demand[name]) for name in named]
        message = satisfied["message"]
        if told not in message or any(figure not in message for figure in figures):
            yield f"asks for {queue.demand}, has {queue.allocated}, and says {message!r}"
    holds_too_much = not _within(queue.used, queue.deserved)
    told_so = (
        _is_left_alone(queue) if holds_too_much else "holds no more than it deserves" in reclaiming.get("message", "")
    )
    if reclaiming.get("status") != "False" or not told_so:
        yield f"is at rest, deserves {queue.deserved}, uses {queue.used}, and says {reclaiming}"


def _is_inner(queue: Queue) -> bool:
    """In this world only these have a policy of their own."""
    return "policy" in queue.spec


def _is_left_alone(queue: Queue) -> bool:
    """It holds what nobody else has a use for (that nobody waits is looked at elsewhere), and says so."""
    told = "in the queues below it" if _is_inner(queue) else "it keeps the rest: nobody waits for it"
    return told in queue.conditions.get("Reclaiming", {}).get("message", "")


def _asks_less(before: Queue, now: Queue) -> bool:
    was, is_ = (resources.offered(each.spec.get("request", {}).get("resources", {})) for each in (before, now))
    return not _within(was, is_)


def _gains(queue: Queue, had: Amounts) -> bool:
    return bool(queue.preempting) or not _within(queue.allocated, had)


def _within(part: Amounts, whole: Amounts) -> bool:
    return resources.fits(part, whole)
