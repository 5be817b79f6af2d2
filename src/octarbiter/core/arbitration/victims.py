"""Who could be asked to go, in which order, and what would be lost with it?

Two tiers: first pods outside gangs and those that a gang has beyond its least, then whole gangs and whole jobs. Within
a tier: Pending before Running, lower priority first, lower rank first, newest first, name. Protected pods and those
whose eviction was just refused are never asked. Whether taking a loss helps anybody is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration.lines import Job, Line
from octarbiter.core.arbitration.state import Phase, Pod

Rank = tuple[bool, int, int, float, str]


class Loss(msgspec.Struct, frozen=True):
    """What goes together, or not at all."""

    queue: str
    pods: tuple[Pod, ...]
    """None: units that a started job has and does not use."""
    job: str = ""
    """The started job that loses `units` thereby."""
    units: int = 0
    is_whole: bool = False
    """A whole gang, or a whole job, which is suspended then: all its pods go with it."""

    @property
    def suspends(self) -> bool:
        return self.is_whole and bool(self.job)


class Losses(msgspec.Struct, frozen=True):
    single: tuple[Loss, ...]
    whole: tuple[Loss, ...]
    """Both in the order in which they are to be taken."""
    members: Mapping[str, int]
    """Of each gang: how many pods it has."""


def parted(pods: Iterable[Pod], line: Line | None) -> tuple[list[Pod], list[Pod]]:
    """Those that end without anybody doing more (asked already, or of a suspended job), and those that stay."""
    jobs: Mapping[str, Job] = line.jobs if line is not None else {}
    going: list[Pod] = []
    staying: list[Pod] = []
    for pod in pods:
        job = jobs.get(pod.job)
        is_going = pod.phase == Phase.TERMINATING or (job is not None and not job.started)
        (going if is_going else staying).append(pod)
    return going, staying


def losses(
    queue: str, pods: Iterable[Pod], line: Line | None, granted: Mapping[str, int], gangs: Mapping[str, int]
) -> Losses:
    """Of pods that stay. `granted`: the units that the queue deserves, by job; one that is granted all it keeps loses
    none of them. Members of a gang that nobody knows are no gang."""
    loose: list[Pod] = []
    by_job: dict[str, list[Pod]] = {}
    by_gang: dict[str, list[Pod]] = {}
    jobs: Mapping[str, Job] = line.jobs if line is not None else {}
    for pod in pods:
        if pod.gang in gangs:
            by_gang.setdefault(pod.gang, []).append(pod)
        if pod.job in jobs and jobs[pod.job].kept:
            by_job.setdefault(pod.job, []).append(pod)
        else:
            loose.append(pod)

    single = [Loss(queue, (pod,)) for pod in loose]
    whole = [
        Loss(queue, tuple(members), is_whole=True)
        for members in by_gang.values()
        if all(pod.job not in by_job for pod in members)
    ]
    for place in line.started if line is not None else ():
        job = jobs[place[2]]
        own = by_job.get(job.key, [])
        single += _parts_of(queue, job, own, granted.get(job.key, 0))
        if granted.get(job.key, 0) < job.kept:
            whole.append(Loss(queue, tuple(own), job=job.key, units=job.kept, is_whole=True))
    return Losses(
        tuple(sorted(filter(_may_go, single), key=order)),
        tuple(sorted(filter(_may_go, whole), key=order)),
        {gang: len(members) for gang, members in by_gang.items()},
    )


def leaves_gang_whole(loss: Loss, members: Mapping[str, int], gangs: Mapping[str, int]) -> bool:
    """Every gang has its least members without these pods."""
    lost = Counter(pod.gang for pod in loss.pods if pod.gang in members)
    return all(members[gang] - count >= gangs[gang] for gang, count in lost.items())


def rank(pod: Pod) -> Rank:
    """Lower goes first."""
    return pod.phase != Phase.PENDING, pod.priority, pod.rank, -pod.created.timestamp(), pod.key


def order(loss: Loss) -> tuple[Rank, ...]:
    """Units that nobody uses first; otherwise as the worthiest of its pods."""
    return (max(rank(pod) for pod in loss.pods),) if loss.pods else ()


def _may_go(loss: Loss) -> bool:
    return not any(pod.is_protected or pod.is_blocked for pod in loss.pods)


def _parts_of(queue: str, job: Job, pods: list[Pod], granted: int) -> list[Loss]:
    """A started job shrinks unit by unit, to what it is granted, but never below its least; its worthiest pods stay."""
    by_unit: dict[int, list[Pod]] = {}
    used: Amounts = {}
    for pod in sorted(pods, key=rank, reverse=True):
        for name, amount in pod.requests.items():
            used[name] = used.get(name, 0) + amount
        last = max((-(-used[name] // each) for name, each in job.unit.items() if each and name in used), default=1)
        by_unit.setdefault(max(1, last), []).append(pod)
    beyond = [Loss(queue, (pod,)) for unit, own in by_unit.items() if unit > job.kept for pod in own]
    stays = granted if granted >= job.floor else min(job.floor, job.kept)
    shrinking = [
        Loss(queue, tuple(own), job=job.key, units=1) for unit, own in by_unit.items() if stays < unit <= job.kept
    ]
    if unused := job.kept - stays - len(shrinking):
        shrinking.append(Loss(queue, (), job=job.key, units=unused))
    return beyond + shrinking
