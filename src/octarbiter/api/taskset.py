"""TaskSet: one job of several roles, as users write it and as its status tells it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import field

from octarbiter.api.meta import Condition, Json, Noun, Object

GROUP = "octopus.openi.pcl.cn"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "TaskSet"

MAX_REPLICAS = 10_000
MAX_ROLES = 64
MAX_NAME = 61
MAX_HOSTNAME = 63
FULL_STATUS_REPLICAS = 500
"""Up to so many replicas in all `replicaStatus` is complete; above, it lists the notable ones."""
NOTABLE_REPLICAS = 100
HISTORY = 10


class RoleEvent(StrEnum):
    ROLE_FAILED = "RoleFailed"
    ROLE_SUCCEEDED = "RoleSucceeded"
    ROLE_COMPLETED = "RoleCompleted"


class Action(StrEnum):
    TASKSET_FAILED = "TaskSetFailed"
    TASKSET_SUCCEEDED = "TaskSetSucceeded"
    TASKSET_COMPLETED = "TaskSetCompleted"
    NO_ACTION = "NoAction"


class State(StrEnum):
    WAITING = "Waiting"
    RUNNING = "Running"
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"


class PodRetention(StrEnum):
    ALL = "All"
    FAILED = "Failed"
    NONE = "None"


class FailureAction(StrEnum):
    FAIL = "Fail"
    IGNORE = "Ignore"


class RetryPolicy(Noun, frozen=True):
    retry: bool = False
    max_retry_count: int = 0
    delay: int = 0

    @property
    def budget(self) -> int:
        return self.max_retry_count if self.retry else 0


class CompletionPolicy(Noun, frozen=True):
    min_succeeded: int | None = None
    max_failed: int = 1


class EventPolicy(Noun, frozen=True):
    event: str
    action: str


class FailureRule(Noun, frozen=True):
    action: str
    exit_codes: list[int] = []
    pod_reasons: list[str] = []


class FailurePolicy(Noun, frozen=True):
    rules: list[FailureRule] = []


class Role(Noun, frozen=True):
    name: str
    template: Json
    replicas: int = 1
    completion_policy: CompletionPolicy = CompletionPolicy()
    retry_policy: RetryPolicy = RetryPolicy()
    event_policy: list[EventPolicy] = []
    depends_on: list[str] = []
    failure_policy: FailurePolicy = FailurePolicy()
    deletion_timeout_seconds: int | None = None

    @property
    def min_succeeded(self) -> int:
        stated = self.completion_policy.min_succeeded
        return self.replicas if stated is None else stated

    @property
    def max_failed(self) -> int:
        return self.completion_policy.max_failed


class TaskSetSpec(Noun, frozen=True):
    roles: list[Role]
    retry_policy: RetryPolicy = RetryPolicy()
    suspend: bool = False
    queue: str = ""
    priority_class_name: str = ""
    min_available: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    pod_retention: str = PodRetention.NONE


class TerminatedInfo(Noun, frozen=True):
    exit_code: int = 0
    exit_message: str = ""
    signal: int = 0
    reason: str = ""


class ReplicaStatus(Noun, frozen=True):
    index: int
    name: str = ""
    phase: str = ""
    phase_message: str = ""
    stopped: bool = False
    transition_time: datetime | None = None
    start_at: datetime | None = None
    finish_at: datetime | None = None
    total_retried_count: int = 0
    lost_count: int = 0
    pod_name: str = ""
    pod_uid: str = field(name="podUID", default="")
    pod_ip: str = field(name="podIP", default="")
    pod_host_ip: str = field(name="podHostIP", default="")
    pod_reason: str = ""
    container_name: str = ""
    container_id: str = field(name="containerID", default="")
    terminated_info: TerminatedInfo | None = None
    outcome: str = ""
    """Ours: Succeeded, Failed or Stopped once the replica is final."""
    attempt: int = 0
    """Ours: the number of the pod (retries, losses and resumes count it up)."""
    retry_at: datetime | None = None
    """Ours: when the pending retry is due; a restarted controller waits only what is left."""
    retry_charged: bool = False
    """Ours: the pending retry counts against the budget."""


class Trigger(Noun, frozen=True):
    role: str = ""
    index: int | None = None
    event: str = ""
    at: datetime | None = None
    message: str = ""


class RoleStatus(Noun, frozen=True):
    name: str
    phase: str = ""
    phase_message: str = ""
    transition_time: datetime | None = None
    state: str = ""
    state_message: str = ""
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    trigger: Trigger | None = None
    replica_status: list[ReplicaStatus] = []
    ledger: str = ""
    """Ours, above FULL_STATUS_REPLICAS only: every replica's counters and outcome, run-length encoded."""


class FailedReplica(Noun, frozen=True):
    role: str
    index: int
    exit_code: int = 0
    message: str = ""


class AttemptRecord(Noun, frozen=True):
    attempt: int
    start_at: datetime | None = None
    finish_at: datetime | None = None
    state: str = ""
    trigger: Trigger | None = None
    failed_replicas: list[FailedReplica] = []


class TaskSetStatus(Noun, frozen=True):
    observed_generation: int = 0
    phase: str = ""
    phase_message: str = ""
    transition_time: datetime | None = None
    state: str = ""
    state_message: str = ""
    control_unit_uid: str = field(name="controlUnitUID", default="")
    created_at: datetime | None = None
    start_at: datetime | None = None
    finish_at: datetime | None = None
    total_retried_count: int = 0
    preempt_count: int = 0
    attempt: int = 0
    """Ours: the number of the running attempt (retries and lost control units count it up)."""
    attempt_started_at: datetime | None = None
    verdict: str = ""
    """Ours: what the running attempt came to (Succeeded, Failed, or Lost with its control unit), before it is cleared
    away; `state` says it when all is done."""
    retry_at: datetime | None = None
    suspended_at: datetime | None = None
    suspended_seconds: int = 0
    trigger: Trigger | None = None
    conditions: list[Condition] = []
    role_status: list[RoleStatus] = []
    history: list[AttemptRecord] = []


class TaskSet(Object, frozen=True, kw_only=True):
    spec: TaskSetSpec
    status: TaskSetStatus = TaskSetStatus()
