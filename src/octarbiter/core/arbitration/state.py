"""What does arbitration look at, and what does it answer?

`State` is everything there is at one moment, in canonical whole numbers; `Outcome` is everything that should be so. A
key is `namespace/name`, or the bare name of what belongs to the whole cluster.

Arbitration runs many times a second over jobs that mostly wait unchanged. So jobs are given in order, as lines that
are kept and not built anew, pods are only looked at in queues that are to give something back, and of the jobs only
those that have units or lose some are in the answer: `explain.job` tells of any job, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration.lines import Job, Line

__all__ = [
    "Eviction",
    "Job",
    "JobResult",
    "Line",
    "Outcome",
    "Phase",
    "Pod",
    "Queue",
    "QueueResult",
    "Settings",
    "State",
]


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    pass


class Queue(Value, frozen=True, kw_only=True):
    key: str
    weight: int = 1
    priority: int = 0
    parent: str = ""
    """A key; empty: the root."""
    policy: str = ""
    """How what it deserves is shared among its children; empty: as its parent does, and the root as the installation
    says."""
    request: Amounts = {}
    guarantee: Amounts = {}
    capability: Amounts | None = None
    """A limit for each resource that it names."""
    promised: Amounts = {}
    """`spec.deserved`, for the policy `capacity`."""
    reclaimable: bool = True
    created: datetime
    namespaces: tuple[str, ...] = ()
    """Whose pods and QueueJobs are its own; several if a selector says so."""


class Phase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    TERMINATING = "Terminating"


class Pod(Value, frozen=True, kw_only=True):
    """A pod of a queue that uses something: unfinished, not gated."""

    key: str
    uid: str
    queue: str
    requests: Amounts
    phase: Phase
    priority: int = 0
    rank: int = 0
    """The label `preemptionrank`."""
    created: datetime
    node: str = ""
    gang: str = ""
    """The key of the gang it is a member of; empty: none."""
    job: str = ""
    """The key of the QueueJob whose workload owns it; empty: none."""
    is_protected: bool = False
    """kube-system, or a system priority class: never evicted."""
    is_blocked: bool = False
    """Its eviction was refused a moment ago (a disruption budget): not now."""


class State(Value, frozen=True, kw_only=True):
    total: Amounts
    """What the queues have to share: see `supply.supply`."""
    policy: str
    queues: Mapping[str, Queue]
    lines: Mapping[str, Line] = {}
    """By queue: its unfinished jobs. A queue that is not here, or whose line is empty, has none."""
    used: Mapping[str, Amounts] = {}
    """By queue: what its pods use, Pending (but not gated), Running and Terminating."""
    pods: Mapping[str, Iterable[Pod]] = {}
    """By queue: those pods. Looked at only where something is to be taken back."""
    gangs: Mapping[str, int] = {}
    """The least members of each gang."""
    taken_from: Mapping[str, datetime] = {}
    """By queue: when the last plan was made against it."""
    evictions_left: int = 100
    """As the budget allows at this moment."""


class Settings(Value, frozen=True, kw_only=True):
    reserve_after_s: float = 60.0
    hold_s: float = 5.0


class QueueResult(Value, frozen=True, kw_only=True):
    demand: Amounts
    deserved: Amounts
    allocated: Amounts
    used: Amounts
    preempting: Amounts
    share: tuple[int, int]
    """The dominant share of what is allocated, as a fraction."""
    dominant: str
    """The resource of that share; empty: none."""
    is_satisfied: bool
    """It may use all that it asks for."""
    satisfied: str
    """The sentence of the condition Satisfied."""
    is_reclaiming: bool
    """It waits for what others hold, or gives back what is not its own."""
    reclaiming: str


class JobResult(Value, frozen=True, kw_only=True):
    allocated: int
    """Units."""
    position: int
    """Among those of its queue that do not have all they ask for; 0: it has."""
    sentence: str
    """Why it has what it has."""


class Eviction(Value, frozen=True, kw_only=True):
    pod: str
    uid: str
    queue: str
    sentence: str
    """What the pod's Event and condition say: for whom, and why this one."""


class Outcome(Value, frozen=True, kw_only=True):
    queues: Mapping[str, QueueResult]
    units: Mapping[str, int] = {}
    """By job, of those that have units or lose what they had; `explain.job` tells the rest."""
    suspend: Mapping[str, str] = {}
    """Started QueueJobs whose workload is to be suspended again, with the sentence that says why."""
    evictions: tuple[Eviction, ...] = ()
    taken_from: tuple[str, ...] = ()
    """Queues against which a plan was made now."""
    look_again_at: datetime | None = None
    """Something is due then that no event will tell of: a reservation, the end of a hold."""
