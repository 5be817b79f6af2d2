"""How is a status kept small enough to store, and made whole again?

Up to FULL_STATUS_REPLICAS replicas in all, the stored status lists every one. Above, each role lists the notable ones
(failed, retried, lost; the worst first) and carries a ledger: the facts about every replica that cannot be seen again
later, run-length encoded, because thousands of replicas mostly share the same few facts. `expand(compact(status))`
knows everything `decide` needs; what is left out (IPs, times) is seen again on the pods.

    4990x0S;10x2r1l1F      4,990 replicas that succeeded in attempt 0; ten in attempt 2, retried once, lost once, failed
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.api.meta import Condition
from octarbiter.core.lifecycle import completion, names
from octarbiter.core.lifecycle.phases import ReplicaPhase, TaskSetPhase

MAX_BYTES = 512 * 1024
_AT_REST = frozenset({TaskSetPhase.PENDING, TaskSetPhase.RETRY_PENDING})
FORGOTTEN_UID = "-"
"""Stands for the UID of a pod that was seen, in an expanded ledger."""

_replace = msgspec.structs.replace
_LETTERS = {completion.SUCCEEDED: "S", completion.FAILED: "F", completion.STOPPED: "X"}
_OUTCOMES = {letter: outcome for outcome, letter in _LETTERS.items()}
_RUN = re.compile(
    r"(?P<count>\d+)x(?P<attempt>\d+)(?:r(?P<retried>\d+))?(?:l(?P<lost>\d+))?(?:t(?P<due>\d+)(?P<charged>c?))?"
    r"(?P<stopping>s?)(?P<letter>[SFXp]?)"
)


def compact(status: api.TaskSetStatus) -> api.TaskSetStatus:
    total = sum(len(role.replica_status) for role in status.role_status)
    if total > api.FULL_STATUS_REPLICAS:
        share = max(1, min(api.NOTABLE_REPLICAS, api.FULL_STATUS_REPLICAS // len(status.role_status)))
        roles = [
            _replace(role, ledger=_encoded(role.replica_status), replica_status=_notable(role.replica_status, share))
            for role in status.role_status
        ]
        status = _replace(status, role_status=roles)
    status = _replace(status, conditions=conditions(status))
    return status if len(codec.encode(status)) <= MAX_BYTES else _without_words(status)


def expand(status: api.TaskSetStatus) -> api.TaskSetStatus:
    if not any(role.ledger for role in status.role_status):
        return status
    return _replace(
        status,
        role_status=[
            _replace(role, ledger="", replica_status=_decoded(role)) if role.ledger else role
            for role in status.role_status
        ],
    )


def _notable(replicas: list[api.ReplicaStatus], share: int) -> list[api.ReplicaStatus]:
    def badness(replica: api.ReplicaStatus) -> tuple[bool, int, int]:
        return replica.outcome == completion.FAILED, replica.total_retried_count, replica.lost_count

    marked = [r for r in replicas if r.outcome == completion.FAILED or r.total_retried_count or r.lost_count]
    worst = sorted(marked, key=badness, reverse=True)[:share]
    return sorted(worst, key=lambda replica: replica.index)


def _encoded(replicas: list[api.ReplicaStatus]) -> str:
    return ";".join(f"{sum(1 for _ in run)}x{facts}" for facts, run in groupby(map(_facts, replicas)))


def _facts(replica: api.ReplicaStatus) -> str:
    text = str(replica.attempt)
    if replica.total_retried_count:
        text += f"r{replica.total_retried_count}"
    if replica.lost_count:
        text += f"l{replica.lost_count}"
    if replica.retry_at is not None:
        text += f"t{int(replica.retry_at.timestamp())}{'c' if replica.retry_charged else ''}"
    if replica.outcome:
        return text + _LETTERS[replica.outcome]
    return text + ("s" if replica.stopped else "") + ("p" if replica.pod_uid else "")


def _decoded(role: api.RoleStatus) -> list[api.ReplicaStatus]:
    listed = {replica.index: replica for replica in role.replica_status}
    replicas: list[api.ReplicaStatus] = []
    for text in role.ledger.split(";"):
        run = _RUN.fullmatch(text)
        if run is None:
            raise ValueError(f"role {role.name}: the ledger holds {text!r}, which nobody wrote")
        for _ in range(int(run["count"])):
            index = len(replicas)
            replicas.append(listed.get(index) or _from_run(role.name, index, run))
    return replicas


def _from_run(role: str, index: int, run: re.Match[str]) -> api.ReplicaStatus:
    outcome = _OUTCOMES.get(run["letter"], "")
    if outcome:
        phase = ReplicaPhase.COMPLETED
    elif run["due"]:
        phase = ReplicaPhase.RETRY_PENDING
    elif run["stopping"]:
        phase = ReplicaPhase.DELETION_PENDING
    elif run["letter"]:
        phase = ReplicaPhase.PREPARING
    else:
        phase = ReplicaPhase.PENDING
    return api.ReplicaStatus(
        index=index,
        name=names.hostname(role, index),
        phase=phase,
        attempt=int(run["attempt"]),
        total_retried_count=int(run["retried"] or 0),
        lost_count=int(run["lost"] or 0),
        outcome=outcome,
        stopped=outcome == completion.STOPPED or bool(run["stopping"]),
        pod_uid=FORGOTTEN_UID if run["letter"] == "p" else "",
        retry_at=datetime.fromtimestamp(int(run["due"]), UTC) if run["due"] else None,
        retry_charged=bool(run["charged"]),
    )


def _without_words(status: api.TaskSetStatus) -> api.TaskSetStatus:
    """The last resort against a status that would not be stored: the texts go, the facts stay."""
    roles = [
        _replace(
            role,
            replica_status=[
                _replace(
                    replica,
                    phase_message="",
                    terminated_info=replica.terminated_info and _replace(replica.terminated_info, exit_message=""),
                )
                for replica in role.replica_status
            ],
        )
        for role in status.role_status
    ]
    return _replace(status, role_status=roles)


def conditions(status: api.TaskSetStatus) -> list[Condition]:
    """For `kubectl wait --for=condition=...`."""
    over = status.phase == TaskSetPhase.COMPLETED
    message = status.state_message
    wanted = [
        ("Running", status.state == api.State.RUNNING, status.state or "Waiting"),
        # The verdict, before everything is cleared away; the words are those of batch/v1 Jobs.
        ("SuccessCriteriaMet", status.verdict == api.State.SUCCEEDED, _reason(status)),
        ("FailureTarget", status.verdict == api.State.FAILED, _reason(status)),
        # Not before the last pod has stopped: who waits for it wants the room.
        ("Suspended", status.suspended_at is not None and status.phase in _AT_REST, "SuspendRequested"),
        ("Succeeded", over and status.state == api.State.SUCCEEDED, _reason(status)),
        ("Failed", over and status.state == api.State.FAILED, _reason(status)),
        ("Completed", over, _reason(status)),
    ]
    before = {condition.type: condition for condition in status.conditions}
    made = []
    for type_, holds, reason in wanted:
        old = before.get(type_)
        value = "True" if holds else "False"
        if old is None and not holds:
            continue
        since = old.last_transition_time if old is not None and old.status == value else status.transition_time
        made.append(
            Condition(
                type=type_,
                status=value,
                reason=reason if holds else f"Not{type_}",
                message=message if holds else "",
                last_transition_time=since,
                observed_generation=status.observed_generation,
            )
        )
    return made


def _reason(status: api.TaskSetStatus) -> str:
    return status.trigger.event if status.trigger and status.trigger.event else status.state or "Completed"
