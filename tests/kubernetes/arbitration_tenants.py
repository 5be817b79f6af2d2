"""Who shares the cluster in a sweep of the arbitrator? Queues of every sort, and users who fill whatever they may.

Each user makes pods in one namespace up to what its quota admits, and makes them again when they are evicted. Meanwhile
weights and requests change, a guest comes and goes, and so do claims: bare ones, and those of suspended Jobs.
"""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass
from typing import Any

from arbitration_observer import GROUP, Claim, Job, Observer, Pod, Quota, used

from octarbiter.api import resources
from octarbiter.testing.kubernetes import connection, controlplane, fakepods

Json = dict[str, Any]

SIZE = {"cpu": "24", "memory": "64Gi"}
"""Of the cluster's only node: where pods are placed must not matter here."""
STEP_S = 0.1
REFUSED_S = 0.5
SHORTEST_S, LONGEST_S = 0.1, 1.0
"""Between two changes."""
MOST_CLAIMS, MOST_JOBS = 4, 5
ALL: Json = {"resources": {"cpu": "24", "memory": "48Gi"}}
MUCH_MEMORY: Json = {"resources": {"cpu": "12", "memory": "48Gi"}}
SOME: Json = {"resources": {"cpu": "3", "memory": "6Gi"}}
FOUR: Json = {"resources": {"cpu": "4", "memory": "8Gi"}}


@dataclass(slots=True)
class User:
    queue: str
    spec: Json
    cpu: str = "1"
    memory: str = "2Gi"
    makes_pods: bool = True
    namespace: str = ""
    is_there: bool = False
    refused_s: float = 0.0


def _users() -> list[User]:
    return [
        User("greedy", {"request": ALL}),
        User("small", {"weight": 2, "request": ALL}, "500m", "1Gi"),
        User("guarded", {"request": ALL, "guarantee": FOUR}, "2", "4Gi"),
        User("steady", {"request": ALL, "capability": FOUR, "reclaimable": False}),
        User("top", {"weight": 2, "policy": "proportion"}, makes_pods=False),
        User("left", {"parent": "top", "request": ALL}),
        User("right", {"parent": "top", "weight": 3, "request": MUCH_MEMORY}, "1", "4Gi"),
        User("claims", {}),
        User("works", {"weight": 2}, makes_pods=False),
        User("guest", {"weight": 3, "request": ALL}),
    ]


class World:
    def __init__(self, control_plane: controlplane.ControlPlane, observer: Observer, dice: random.Random) -> None:
        self._plane, self._observer, self._dice = control_plane, observer, dice
        self._users = {user.queue: user for user in _users()}
        self._numbers = itertools.count(1)
        self._step_s = self._change_s = 0.0
        self.rests = False
        """Nothing changes any more, but users still take what they get."""
        self.changes = 0
        self.deleted: set[str] = set()
        """UIDs of pods that their owner has deleted."""

    def open(self) -> None:
        for user in self._users.values():
            user.namespace = self._plane.create_namespace(f"{user.queue}-")
            if "parent" in user.spec:
                user.spec["parent"] = f"{self._users['top'].namespace}/top"
            if user.queue != "guest":
                self._come(user)
        # Before all others, so that there is room for it: who is important must not push others away himself.
        self._make(self._users["greedy"], priorityClassName="system-cluster-critical")

    def tick(self) -> None:
        now = time.monotonic()
        if now < self._step_s + STEP_S:
            return
        self._step_s = now
        for user in self._users.values():
            if user.makes_pods and user.is_there and now > user.refused_s + REFUSED_S:
                self._fill(user)
        self._clear_away()
        if not self.rests and now > self._change_s:
            self._change_s = now + self._dice.uniform(SHORTEST_S, LONGEST_S)
            self.changes += 1
            self._change()

    # --- users

    def _fill(self, user: User) -> None:
        quotas = self._observer.there(Quota, user.namespace)
        if not quotas:
            return
        pods = [pod for pod in self._observer.there(Pod, user.namespace) if pod.now.is_unfinished]
        in_use, allowed = used(pod.now for pod in pods), quotas[0].now.may_use
        size = resources.offered({"cpu": user.cpu, "memory": user.memory})
        if resources.fits(resources.plus(in_use, size), allowed):
            self._make(user)
        elif self.rests and not user.spec.get("reclaimable", True) and not resources.fits(in_use, allowed):
            # Nobody can make him, so he has to do it himself.
            living = [pod for pod in pods if pod.now.is_living]
            if len(living) == len(pods):
                self._remove_pod(user.namespace, living[-1].name, living[-1].uid)

    def _make(self, user: User, **spec: Any) -> None:
        annotations = {fakepods.LINGERS: "1500ms"} if self._dice.random() < 0.2 else {}
        rank = str(self._dice.randint(0, 2))
        metadata = {
            "name": f"pod-{next(self._numbers)}",
            "labels": {"preemptionrank": rank},
            "annotations": annotations,
        }
        body = {"metadata": metadata, "spec": {**_pod_spec(user.cpu, user.memory), **spec}}
        try:
            self._plane.request("POST", f"/api/v1/namespaces/{user.namespace}/pods", body)
        except connection.ApiError as refusal:
            if refusal.status != 403:
                raise
            user.refused_s = time.monotonic()

    def _remove_pod(self, namespace: str, name: str, uid: str) -> None:
        self.deleted.add(uid)
        self._remove(f"/api/v1/namespaces/{namespace}/pods/{name}")

    # --- changes

    def _change(self) -> None:
        deed = self._dice.choices(
            [self._weigh, self._ask, self._guest, self._claim, self._work], weights=[6, 3, 2, 4, 5]
        )[0]
        deed()

    def _weigh(self) -> None:
        user = self._dice.choice([user for user in self._users.values() if user.is_there])
        self._patch(user, {"weight": self._dice.randint(1, 3)})

    def _ask(self) -> None:
        user = self._users[self._dice.choice(["greedy", "small", "left"])]
        self._patch(user, {"request": self._dice.choice([ALL, ALL, SOME])})

    def _guest(self) -> None:
        guest = self._users["guest"]
        if not guest.is_there:
            self._come(guest)
            return
        guest.is_there = False
        for pod in self._observer.there(Pod, guest.namespace):
            self._remove_pod(guest.namespace, pod.name, pod.uid)
        self._remove(f"{GROUP}/namespaces/{guest.namespace}/queues/{guest.queue}")

    def _claim(self) -> None:
        user = self._users["claims"]
        claims = self._observer.there(Claim, user.namespace)
        if len(claims) >= MOST_CLAIMS or (claims and self._dice.random() < 0.3):
            self._remove(f"{GROUP}/namespaces/{user.namespace}/queuejobs/{self._dice.choice(claims).name}")
        else:
            self._make_claim(user, f"claim-{next(self._numbers)}", self._dice.randint(1, 6))

    def _work(self) -> None:
        user = self._users["works"]
        jobs = [job for job in self._observer.there(Job, user.namespace) if not job.now.is_finished]
        if len(jobs) >= MOST_JOBS or (jobs and self._dice.random() < 0.3):
            self._remove(f"/apis/batch/v1/namespaces/{user.namespace}/jobs/{self._dice.choice(jobs).name}")
            return
        name, units = f"work-{next(self._numbers)}", self._dice.randint(1, 3)
        annotations = {fakepods.DURATION: self._dice.choice(["1s", "forever"])}
        template = {"metadata": {"annotations": annotations}, "spec": _pod_spec(user.cpu, user.memory)}
        spec = {"suspend": True, "parallelism": units, "completions": units, "backoffLimit": 1000, "template": template}
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name}
        least = self._dice.randint(1, units)
        self._plane.request(
            "POST", f"/apis/batch/v1/namespaces/{user.namespace}/jobs", {"metadata": {"name": name}, "spec": spec}
        )
        self._make_claim(user, name, units, minResourceno=least, workloadRef=reference)

    def _clear_away(self) -> None:
        """Claims whose workload has ended, and their Jobs."""
        for claim in self._observer.there(Claim):
            if claim.now.holds("Finished") and not self.rests:
                self._remove(f"/apis/batch/v1/namespaces/{claim.namespace}/jobs/{claim.name}")
                self._remove(f"{GROUP}/namespaces/{claim.namespace}/queuejobs/{claim.name}")

    # --- the API

    def _come(self, user: User) -> None:
        body = _object("Queue", user.queue, user.spec)
        try:
            self._plane.request("POST", f"{GROUP}/namespaces/{user.namespace}/queues", body)
        except connection.ApiError as refusal:
            if refusal.status != 409:  # the last one has not quite gone
                raise
            return
        user.is_there = True

    def _make_claim(self, user: User, name: str, units: int, **more: Any) -> None:
        unit = {"resources": {"cpu": user.cpu, "memory": user.memory}}
        spec = {"queue": user.queue, "resourceno": units, "resourceunit": unit, "priority": self._dice.randint(0, 2)}
        body = _object("QueueJob", name, {**spec, **more})
        self._plane.request("POST", f"{GROUP}/namespaces/{user.namespace}/queuejobs", body)

    def _patch(self, user: User, spec: Json) -> None:
        path = f"{GROUP}/namespaces/{user.namespace}/queues/{user.queue}"
        self._plane.request("PATCH", path, {"spec": spec}, connection.MERGE_PATCH)

    def _remove(self, path: str) -> None:
        try:
            self._plane.request("DELETE", path, {"propagationPolicy": "Background"})
        except connection.ApiError as refusal:
            if refusal.status != 404:
                raise


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": "arbitrator.incubator.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _pod_spec(cpu: str, memory: str) -> Json:
    wanted = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": "busybox", "resources": {"requests": wanted, "limits": wanted}}
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container]}
