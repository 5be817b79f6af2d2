"""A small world for one TaskSet: API server, kubelets, garbage collector, and people who meddle.

Fair rather than complete: it does what a real cluster may do, in any order it is told, and keeps its own books (`Fact`)
of what every pod came to, so that the controller's counters can be held against something it did not write itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import ConfigMap, Service
from octarbiter.api.meta import Condition, Object, ObjectMeta
from octarbiter.api.pod import ContainerState, ContainerStatus, Pod, Running, Terminated
from octarbiter.core.lifecycle import names, objects, report

START = datetime(2024, 1, 1, tzinfo=UTC)
NODES = ("n0", "n1")
GRACE_S = 30
ENDED = ("Succeeded", "Failed")

replace = msgspec.structs.replace


@dataclass
class Fact:
    """What became of one pod."""

    role: str
    index: int
    attempt: int
    """The TaskSet's."""
    code: int | None = None
    """Exit code, if it ended by itself."""
    taken: str = ""
    """Who took it before it ended by itself: us, somebody, eviction, preemption, node, rejection, owner."""
    unseen: bool = False
    """It ended by itself, and was removed by one who did not know: the controller may never learn how it ended."""

    @property
    def failed(self) -> bool:
        return self.code is not None and self.code != 0

    @property
    def lost(self) -> bool:
        return self.code is None and self.taken not in ("", "us")


class Refused(Exception):
    """The server will not take a pod."""


class TwoAlive(AssertionError):
    pass


class World:
    def __init__(self, spec: api.TaskSetSpec) -> None:
        self.now = START
        self.meta = ObjectMeta(name="job", namespace="ns", uid="ts-uid", generation=1)
        self.spec = spec
        self.status = api.TaskSetStatus()
        self.records: list[api.TaskSetStatus] = []
        self.exists = True
        self.foreground = False
        self.pods: dict[str, Pod] = {}
        self.units: dict[str, ConfigMap] = {}
        self.services: dict[str, Service] = {}
        self.log: dict[str, list[tuple[int, str, Any]]] = {"pods": [], "units": [], "services": []}
        self.seq = 0
        self.nodes = dict.fromkeys(NODES, True)
        self.room: int | None = None
        """So many pods alive at once, then quota refuses."""
        self.denied = False
        self.facts: dict[str, Fact] = {}
        self.exits: dict[str, tuple[int, datetime]] = {}
        """Containers that have ended and of which the kubelet has not told yet."""

    @property
    def taskset(self) -> api.TaskSet:
        return api.TaskSet(metadata=self.meta, spec=self.spec, status=self.status)

    # --- the store

    def _kind(self, kind: str) -> dict[str, Any]:
        kinds: dict[str, dict[str, Any]] = {"pods": self.pods, "units": self.units, "services": self.services}
        return kinds[kind]

    def put(self, kind: str, made: Object) -> None:
        self.seq += 1
        self._kind(kind)[made.metadata.name] = made
        self.log[kind].append((self.seq, made.metadata.name, made))

    def drop(self, kind: str, name: str) -> None:
        self.seq += 1
        del self._kind(kind)[name]
        self.log[kind].append((self.seq, name, None))

    def as_of(self, kind: str, seq: int) -> dict[str, Any]:
        view: dict[str, Any] = {}
        for at, name, thing in self.log[kind]:
            if at > seq:
                break
            if thing is None:
                view.pop(name, None)
            else:
                view[name] = thing
        return view

    # --- what the controller asks of the server

    def record(self, status: api.TaskSetStatus) -> None:
        self.status = codec.decode(codec.encode(report.compact(status)), api.TaskSetStatus)
        self.records.append(self.status)

    def create_unit(self, taskset: api.TaskSet, attempt: int) -> ConfigMap:
        body = codec.from_json(objects.control_unit(taskset, attempt), ConfigMap)
        return self._created("units", body)  # type: ignore[no-any-return]

    def create_service(self, taskset: api.TaskSet) -> Service:
        return self._created("services", codec.from_json(objects.service(taskset), Service))  # type: ignore[no-any-return]

    def create_pod(self, taskset: api.TaskSet, role: api.Role, index: int, attempt: int) -> Pod:
        body = codec.from_json(objects.pod(taskset, role, index, attempt), Pod)
        known = self.pods.get(body.metadata.name)
        if known is not None:
            return known
        alive = [pod for pod in self.pods.values() if pod.status.phase not in ENDED]
        if self.denied:
            raise Refused("admission webhook denied the request")
        if self.room is not None and len(alive) >= self.room:
            raise Refused(f'pods "{body.metadata.name}" is forbidden: exceeded quota: pods={self.room}')
        twins = [pod.metadata.name for pod in alive if _index(pod) == (role.name, index)]
        if twins:
            raise TwoAlive(f"{body.metadata.name} was made while {twins} is alive")
        pod = replace(body, status=replace(body.status, phase="Pending"))
        made: Pod = self._created("pods", pod)
        self.facts[made.metadata.uid] = Fact(role.name, index, taskset.status.attempt)
        return made

    def _created(self, kind: str, body: Any) -> Any:
        known = self._kind(kind).get(body.metadata.name)
        if known is not None:
            return known
        meta = replace(body.metadata, uid=f"uid-{self.seq + 1}", creation_timestamp=self.now)
        made = replace(body, metadata=meta)
        self.put(kind, made)
        return made

    def delete_pod(self, name: str, uid: str, by: str, *, force: bool = False, seen: Pod | None = None) -> bool:
        """False: not there. `seen`: what the one who deletes knows of it."""
        pod = self.pods.get(name)
        if pod is None or pod.metadata.uid != uid:
            return False
        fact = self.facts[uid]
        if fact.failed and pod.status.phase not in ENDED and self.exits[uid][1] == self.now:
            # Times have whole seconds: nobody can tell that it failed before it was deleted.
            fact.code = None
        if fact.code is None and not fact.taken:
            fact.taken = by
        if pod.status.phase in ENDED or not pod.spec.node_name or force:
            fact.unseen |= fact.code is not None and (seen is None or seen.status.phase not in ENDED)
            self.drop("pods", name)
        elif pod.metadata.deletion_timestamp is None:
            due = self.now + timedelta(seconds=GRACE_S)
            meta = replace(pod.metadata, deletion_timestamp=due, deletion_grace_period_seconds=GRACE_S)
            self.put("pods", replace(pod, metadata=meta))
        return True

    def delete_unit(self, name: str, uid: str, mode: str) -> bool:
        unit = self.units.get(name)
        if unit is None or unit.metadata.uid != uid:
            return False
        if mode == "Foreground":
            if unit.metadata.deletion_timestamp is None:
                self.put("units", replace(unit, metadata=replace(unit.metadata, deletion_timestamp=self.now)))
            return True
        if mode == "Orphan":
            for pod in list(self.pods.values()):
                if _owner(pod) == uid:
                    self.put("pods", replace(pod, metadata=replace(pod.metadata, owner_references=[])))
        self.drop("units", name)
        return True

    # --- the kubelet and the scheduler

    def pod_at(self, number: int) -> Pod | None:
        known = sorted(self.pods)
        return self.pods[known[number % len(known)]] if known else None

    def schedule(self, pod: Pod, node: str) -> bool:
        if pod.spec.node_name or self.nodes.get(node) is not True or pod.metadata.deletion_timestamp is not None:
            return False
        self.put("pods", replace(pod, spec=replace(pod.spec, node_name=node)))
        return True

    def _answers(self, pod: Pod) -> bool:
        return self.nodes.get(pod.spec.node_name, False)

    def start(self, pod: Pod) -> bool:
        if pod.status.phase != "Pending" or not self._answers(pod) or pod.metadata.deletion_timestamp is not None:
            return False
        ran = ContainerStatus(name="main", state=ContainerState(running=Running(started_at=self.now)))
        status = replace(pod.status, phase="Running", pod_ip="10.0.0.1", start_time=self.now, container_statuses=[ran])
        self.put("pods", replace(pod, status=status))
        return True

    def exit(self, pod: Pod, code: int, *, told: bool = True) -> bool:
        """The program ends; the kubelet may tell of it later."""
        uid = pod.metadata.uid
        if pod.status.phase != "Running" or uid in self.exits or not self._answers(pod):
            return False
        self.exits[uid] = (code, self.now)
        asked = pod.metadata.deletion_timestamp
        if asked is None or self.now < asked - timedelta(seconds=GRACE_S) or code == 0:
            self.facts[uid].code = code
        return self.tell(self.pods[pod.metadata.name]) if told else True

    def tell(self, pod: Pod) -> bool:
        if pod.metadata.uid not in self.exits or pod.status.phase in ENDED or not self._answers(pod):
            return False
        code, at = self.exits[pod.metadata.uid]
        self._end(pod, code, at)
        return True

    def _end(self, pod: Pod, code: int, at: datetime | None, reason: str = "") -> None:
        end = Terminated(exit_code=code, reason="Error" if code else "Completed", finished_at=at)
        ended = ContainerStatus(name="main", state=ContainerState(terminated=end))
        phase = "Failed" if code or reason else "Succeeded"
        status = replace(pod.status, phase=phase, reason=reason, container_statuses=[ended])
        self.put("pods", replace(pod, status=status))

    def leave(self, pod: Pod, code: int | None) -> bool:
        """A pod that was asked to go ends (first call) and is removed (second, or first without a code)."""
        if pod.metadata.deletion_timestamp is None or not self._answers(pod):
            return False
        if pod.status.phase in ENDED or code is None:
            fact = self.facts[pod.metadata.uid]
            fact.unseen |= fact.code is not None
            self.drop("pods", pod.metadata.name)
        elif pod.metadata.uid in self.exits:
            return self.tell(pod)
        elif pod.status.phase == "Running":
            return self.exit(pod, code)
        else:
            # Its containers never ran: the kubelet knows no time of their end.
            self._end(pod, 137, None)
        return True

    # --- losses

    def _struck(self, pod: Pod, cause: str) -> bool:
        fact = self.facts[pod.metadata.uid]
        if pod.status.phase in ENDED or fact.code is not None:
            return False
        fact.taken = fact.taken or cause
        return True

    def _condemned(self, pod: Pod, reason: str) -> Pod:
        target = Condition(type="DisruptionTarget", status="True", reason=reason, last_transition_time=self.now)
        pod = replace(pod, status=replace(pod.status, conditions=[target]))
        self.put("pods", pod)
        return pod

    def evict(self, pod: Pod) -> bool:
        if not pod.spec.node_name or not self._answers(pod) or not self._struck(pod, "eviction"):
            return False
        self._end(self._condemned(pod, "TerminationByKubelet"), 137, self.now, "Evicted")
        return True

    def preempt(self, pod: Pod) -> bool:
        if not pod.spec.node_name or pod.metadata.deletion_timestamp is not None or not self._struck(pod, "preemption"):
            return False
        self._condemned(pod, "PreemptionByScheduler")
        return self.delete_pod(pod.metadata.name, pod.metadata.uid, "preemption")

    def reject(self, pod: Pod) -> bool:
        if pod.status.phase != "Pending" or not self._answers(pod) or not self._struck(pod, "rejection"):
            return False
        status = replace(pod.status, phase="Failed", reason="OutOfcpu", message="Node didn't have enough resource")
        self.put("pods", replace(pod, status=status))
        return True

    def taint(self) -> None:
        """What the node controller does to the pods of nodes that do not answer, and of nodes that are gone."""
        for pod in list(self.pods.values()):
            node = pod.spec.node_name
            if not node or self.nodes.get(node, False) or pod.status.phase in ENDED:
                continue
            if node not in self.nodes:
                if self._struck(pod, "node"):
                    self._end(self._condemned(pod, "DeletionByPodGC"), 137, None)
                self.delete_pod(pod.metadata.name, pod.metadata.uid, "node", force=True)
            elif pod.metadata.deletion_timestamp is None and self._struck(pod, "node"):
                self._condemned(pod, "DeletionByTaintManager")
                self.delete_pod(pod.metadata.name, pod.metadata.uid, "node")

    # --- the garbage collector

    def collect(self) -> bool:
        before = self.seq
        gone = not self.exists
        for unit in list(self.units.values()):
            if gone:
                self.drop("units", unit.metadata.name)
            elif self.foreground:
                self.delete_unit(unit.metadata.name, unit.metadata.uid, "Foreground")
        owners = {unit.metadata.uid: unit for unit in self.units.values()}
        for pod in list(self.pods.values()):
            owner = _owner(pod)
            if owner and (owner not in owners or owners[owner].metadata.deletion_timestamp is not None):
                self.delete_pod(pod.metadata.name, pod.metadata.uid, "owner")
        for service in list(self.services.values()):
            owner = _owner(service)
            if owner not in owners or owners[owner].metadata.deletion_timestamp is not None:
                self.drop("services", service.metadata.name)
        for unit in list(self.units.values()):
            left = any(_owner(pod) == unit.metadata.uid for pod in self.pods.values())
            if unit.metadata.deletion_timestamp is not None and not left:
                self.drop("units", unit.metadata.name)
        if self.foreground and not self.units:
            self.exists = False
        return self.seq != before

    # --- people

    def edit(self, **changes: Any) -> None:
        self.spec = replace(self.spec, **changes)
        self.meta = replace(self.meta, generation=self.meta.generation + 1)

    def scale(self, number: int, replicas: int) -> None:
        """What the API server would let through."""
        number %= len(self.spec.roles)
        role = self.spec.roles[number]
        status = next((s for s in self.status.role_status if s.name == role.name), None)
        stated = (role.completion_policy.min_succeeded or 1, role.completion_policy.max_failed)
        if replicas < max(stated) or (status is not None and status.state in ("Succeeded", "Failed")):
            return
        roles = list(self.spec.roles)
        roles[number] = replace(role, replicas=replicas)
        self.edit(roles=roles)

    def delete_taskset(self, *, foreground: bool) -> None:
        self.foreground = foreground
        self.exists = foreground
        self.meta = replace(self.meta, deletion_timestamp=self.meta.deletion_timestamp or self.now)


def _index(pod: Pod) -> tuple[str, int]:
    return pod.metadata.labels[names.ROLE_LABEL], int(pod.metadata.labels[names.INDEX_LABEL])


def _owner(owned: Object) -> str:
    owner = owned.metadata.controller
    return owner.uid if owner is not None else ""
