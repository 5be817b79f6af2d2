"""One decision in the making: what is known, what has been decided so far, and the few ways to add to it.

Lives only inside `decide`; the rules are in `beginning`, `running`, `roles` and `ending`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import ConfigMap
from octarbiter.api.pod import Pod
from octarbiter.core.lifecycle import actions, names, observe, replicas
from octarbiter.core.lifecycle.observe import Seen
from octarbiter.core.lifecycle.phases import RolePhase, TaskSetPhase, moved_role, moved_taskset

replace = msgspec.structs.replace

LOST = "Lost"
POD_INVALID = "PodInvalid"
DEADLINE_EXCEEDED = "DeadlineExceeded"
SPEC_INVALID = "SpecInvalid"
CONTROL_UNIT_LOST = "ControlUnitLost"


class Work:
    def __init__(self, taskset: api.TaskSet, seen: Seen, now: datetime) -> None:
        self.taskset, self.spec, self.seen = taskset, taskset.spec, seen
        self.now = now.replace(microsecond=0)
        self.status = taskset.status
        self.roles: list[api.RoleStatus] = list(taskset.status.role_status)
        self.actions: dict[actions.Action, None] = {}
        self.again: list[datetime] = []
        self.because = ""
        self.sort_pods()

    def sort_pods(self) -> None:
        """Pods of this attempt by role and index; all others of this TaskSet are stale."""
        self.pods: dict[tuple[str, int], list[Pod]] = {}
        self.stale: list[Pod] = []
        for pod in self.seen.pods:
            labels = pod.metadata.labels
            index = labels.get(names.INDEX_LABEL, "")
            attempts = names.attempts_of_pod(pod.metadata.name)
            if attempts is None or attempts[0] != self.status.attempt or not index.isdigit():
                self.stale.append(pod)
            else:
                self.pods.setdefault((labels.get(names.ROLE_LABEL, ""), int(index)), []).append(pod)

    # --- what is known

    @property
    def is_suspended(self) -> bool:
        return self.status.suspended_at is not None

    def control_unit(self) -> ConfigMap | None:
        name = names.control_unit(self.taskset.metadata.name, self.status.attempt)
        return next((unit for unit in self.seen.control_units if unit.metadata.name == name), None)

    def role_status(self, name: str) -> api.RoleStatus:
        return next(status for status in self.roles if status.name == name)

    # --- what is decided

    def ask(self, *wanted: actions.Action) -> None:
        self.actions.update(dict.fromkeys(wanted))

    def asked(self) -> tuple[dict[actions.Action, None], list[datetime]]:
        """A mark to go back to with `take_back`."""
        return dict(self.actions), list(self.again)

    def take_back(self, to: tuple[dict[actions.Action, None], list[datetime]]) -> None:
        self.actions, self.again = dict(to[0]), list(to[1])

    def remove(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                self.ask(actions.DeletePod(pod.metadata.name, pod.metadata.uid))

    def remove_stuck(self) -> None:
        """Of every pod of ours, also those that belong to no replica any more."""
        timeouts = {role.name: role.deletion_timeout_seconds for role in self.spec.roles}
        for pod in self.seen.pods:
            if pod.metadata.deletion_timestamp is None:
                continue
            timeout_s = timeouts.get(pod.metadata.labels.get(names.ROLE_LABEL, ""))
            due = observe.force_due(pod, timeout_s, self.seen.ready_nodes)
            if due is not None and self.now < due:
                self.look_again(due)
            elif due is not None:
                self.ask(actions.DeletePod(pod.metadata.name, pod.metadata.uid, force=True))

    def remove_control_units(self) -> None:
        for unit in self.seen.control_units:
            if unit.metadata.deletion_timestamp is None:
                self.ask(actions.DeleteControlUnit(unit.metadata.name, unit.metadata.uid))

    def look_again(self, at: datetime | None) -> None:
        if at is not None:
            self.again.append(at)

    def move(self, phase: TaskSetPhase) -> None:
        if self.status.phase != phase:
            self.status = replace(
                self.status,
                phase=moved_taskset(self.status.phase, phase),
                phase_message="",
                state_message="",
                transition_time=self.now,
            )

    def say(self, message: str) -> None:
        self.status = replace(self.status, state_message=message, phase_message=message)

    def moved_role(self, status: api.RoleStatus, phase: RolePhase, state: api.State, message: str) -> api.RoleStatus:
        return replace(
            status,
            phase=moved_role(status.phase, phase),
            state=state,
            state_message=message,
            phase_message=message,
            transition_time=self.now if phase != status.phase else status.transition_time,
        )

    def fresh_roles(self) -> None:
        self.roles = [
            api.RoleStatus(
                name=role.name,
                phase=RolePhase.WAITING,
                state=api.State.WAITING,
                transition_time=self.now,
                replica_status=[replicas.fresh(role.name, index, self.now) for index in range(role.replicas)],
            )
            for role in self.spec.roles
        ]

    # --- the deadline: from the first start, over all attempts, suspended time excepted

    def deadline(self) -> datetime | None:
        limit, start = self.spec.active_deadline_seconds, self.status.start_at
        if limit is None or start is None or self.is_suspended:
            return None
        return start + timedelta(seconds=limit + self.status.suspended_seconds)

    def is_past_deadline(self) -> bool:
        deadline = self.deadline()
        return deadline is not None and self.now >= deadline

    def deadline_trigger(self) -> api.Trigger:
        limit = self.spec.active_deadline_seconds
        message = f"active longer than activeDeadlineSeconds ({limit} s)"
        return api.Trigger(event=DEADLINE_EXCEEDED, at=self.now, message=message)
