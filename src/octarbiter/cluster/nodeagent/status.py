"""What does the agent report of a pod? The state of a machine in the words and the order of the kubelet.

Conditions: PodReadyToStartContainers, Initialized, Ready, ContainersReady, PodScheduled; those of others stay as they
are, before ours. A final phase is shown when nothing runs any more, and never changes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from octarbiter.api.meta import Condition, Json
from octarbiter.cluster.nodeagent.life import LOST, Ended, Kind, Life, Stage
from octarbiter.cluster.nodeagent.machine import TERMINAL, Machine

OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def of(machine: Machine, *, host_ip: str, pod_ip: str, now: datetime) -> Json:
    pod = machine.pod
    phase = phase_of(machine)
    status: Json = {"phase": phase}
    reason, message = pod.status.reason, pod.status.message
    if machine.ending is not None and machine.ending.reason and machine.is_over:
        reason, message = machine.ending.reason, machine.ending.message
    if phase == pod.status.phase or machine.is_over:
        status |= _filled(reason=reason, message=message)
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    status["startTime"] = time(machine.started_at)
    status |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
    if machine.is_prepared:
        status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    status["conditions"] = _conditions(machine, phase, now)
    inits = [life for life in machine.lives if life.kind is not Kind.MAIN]
    if inits:
        status["initContainerStatuses"] = [_container(machine, life) for life in inits]
    mains = sorted(machine.mains, key=lambda life: life.name)
    status["containerStatuses"] = [_container(machine, life) for life in mains]
    return status


def phase_of(machine: Machine) -> str:
    reported = machine.pod.status.phase
    if reported in TERMINAL:
        return reported
    if machine.is_over:
        return _last_phase(machine)
    if any(life.kind is Kind.INIT and not life.is_ready for life in machine.lives) and not _has_run(machine):
        return "Pending"
    if any(life.kind is Kind.SIDECAR and not life.is_started for life in machine.lives) and not _has_run(machine):
        return "Pending"
    if any(life.ended is None and not life.is_up for life in machine.mains):
        return "Pending"  # one has never started
    return "Running"


def _has_run(machine: Machine) -> bool:
    return any(life.attempt >= 0 for life in machine.mains)


def _last_phase(machine: Machine) -> str:
    """Sidecars do not count: they are stopped, not asked how it went."""
    failed_init = any(life.kind is Kind.INIT and not life.is_ready for life in machine.lives) and not _has_run(machine)
    done = all(life.ended is not None and life.ended.outcome.exit_code == 0 for life in machine.mains)
    verdict = machine.ending is not None and machine.ending.reason
    return "Succeeded" if done and not failed_init and not verdict else "Failed"


def _container(machine: Machine, life: Life) -> Json:
    state, last = _states(machine, life)
    status: Json = {
        "name": life.name,
        "state": state,
        "lastState": last,
        "ready": life.is_ready,
        "restartCount": max(life.attempt, 0),
        "image": life.spec.image,
        "imageID": "",
        "started": life.is_started,
    }
    if life.id:
        status["containerID"] = life.id
    return status


def _states(machine: Machine, life: Life) -> tuple[Json, Json]:
    previous: Json = {"terminated": _terminated(life.previous)} if life.previous is not None else {}
    if life.is_up:
        return {"running": _filled(startedAt=time(life.started_at))}, previous
    if life.stage is Stage.RUNNING:
        return {"waiting": {"reason": _default_reason(machine)}}, previous
    if life.waiting is not None:
        reason, message = life.waiting
        last: Json = {"terminated": _terminated(life.ended)} if life.ended is not None else previous
        return {"waiting": {"reason": reason, "message": message}}, last
    if life.ended is not None:
        return {"terminated": _terminated(life.ended)}, previous
    if machine.is_over and life.kind is Kind.MAIN and _was_initialized(machine):
        return {"terminated": _terminated(Ended("", None, LOST))}, previous
    return {"waiting": {"reason": _default_reason(machine)}}, previous


def _was_initialized(machine: Machine) -> bool:
    """Then a container without a story is a loss; before, it is merely one that was never asked for."""
    return _has_run(machine) or all(life.is_ready for life in machine.lives if life.kind is Kind.INIT)


def _default_reason(machine: Machine) -> str:
    return "PodInitializing" if machine.pod.spec.init_containers else "ContainerCreating"


def _terminated(ended: Ended) -> Json:
    outcome = ended.outcome
    state: Json = {"exitCode": outcome.exit_code}
    state |= _filled(reason=outcome.reason, message=outcome.message)
    state |= _filled(startedAt=time(ended.started_at), finishedAt=time(outcome.finished_at), containerID=ended.id)
    return state


def _conditions(machine: Machine, phase: str, now: datetime) -> list[Json]:
    """Complete: those of others as they came, then ours."""
    before = machine.pod.status.conditions
    others = [condition for condition in before if condition.type not in OURS]
    ready = _containers_ready(machine, phase)
    ours = {
        "PodReadyToStartContainers": _Answer(machine.is_prepared and not machine.is_over),
        "Initialized": _initialized(machine, phase),
        "Ready": _ready(machine, ready, others),
        "ContainersReady": ready,
        "PodScheduled": _Answer(True),
    }
    made = [_condition(type_, answer, machine, now) for type_, answer in ours.items()]
    return [_shown(condition) for condition in others] + made


class _Answer:
    __slots__ = ("holds", "message", "reason")

    def __init__(self, holds: bool, reason: str = "", message: str = "") -> None:
        self.holds, self.reason, self.message = holds, reason, message


def _condition(type_: str, answer: _Answer, machine: Machine, now: datetime) -> Json:
    word = "True" if answer.holds else "False"
    before = next((c for c in machine.pod.status.conditions if c.type == type_), None)
    since = before.last_transition_time if before is not None and before.status == word else None
    made: Json = {"type": type_, "status": word} | _filled(reason=answer.reason, message=answer.message)
    if machine.pod.metadata.generation:
        made["observedGeneration"] = machine.pod.metadata.generation
    return made | {"lastTransitionTime": time(since or now)}


def _shown(condition: Condition) -> Json:
    return _filled(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        observedGeneration=condition.observed_generation,
        lastTransitionTime=time(condition.last_transition_time),
    )


def _initialized(machine: Machine, phase: str) -> _Answer:
    if phase == "Succeeded":
        return _Answer(True, "PodCompleted")
    if _has_run(machine):
        return _Answer(True)
    inits = [life for life in machine.lives if life.kind is not Kind.MAIN]
    done = {life.name for life in inits if (life.is_started if life.kind is Kind.SIDECAR else life.is_ready)}
    missing = [life.name for life in inits if life.name not in done]
    if missing:
        return _Answer(False, "ContainersNotInitialized", f"containers with incomplete status: {_listed(missing)}")
    return _Answer(True)


def _containers_ready(machine: Machine, phase: str) -> _Answer:
    if phase == "Succeeded":
        return _Answer(False, "PodCompleted")
    if phase == "Failed":
        return _Answer(False, "PodFailed")
    unready = [life.name for life in machine.lives if life.kind is not Kind.INIT and not life.is_ready]
    if unready:
        return _Answer(False, "ContainersNotReady", f"containers with unready status: {_listed(unready)}")
    return _Answer(True)


def _ready(machine: Machine, containers: _Answer, others: Sequence[Condition]) -> _Answer:
    if not containers.holds:
        return containers
    problems = []
    found = {condition.type: condition.status for condition in others}
    for gate in machine.pod.spec.readiness_gates:
        type_ = gate.condition_type
        if type_ not in found:
            problems.append(f'corresponding condition of pod readiness gate "{type_}" does not exist.')
        elif found[type_] != "True":
            problems.append(f'the status of pod readiness gate "{type_}" is not "True", but {found[type_]}')
    return _Answer(False, "ReadinessGatesNotReady", ", ".join(problems)) if problems else _Answer(True)


def _listed(names: Sequence[str]) -> str:
    """As Go prints a list."""
    return f"[{' '.join(names)}]"


def time(at: datetime | None) -> str:
    """Whole seconds, as the API stores them; empty for never."""
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _filled(**fields: str | int) -> Json:
    return {name: value for name, value in fields.items() if value}
