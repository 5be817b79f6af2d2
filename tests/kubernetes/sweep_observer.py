"""What happened to the TaskSets and their pods, according to the API server alone?

The observer shares nothing with the product: it follows the raw watch from a revision before the first create, each
event in the server's order, and never lists anew. A gap would be a problem of its own, so what it has not seen has not
happened. While it follows, it judges what must hold at every moment; what can only be said at the end is left to
`sweep_checks`.
"""

from __future__ import annotations

import collections
import http.client
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from octarbiter.testing.kubernetes import controlplane

Json = dict[str, Any]

PODS = "/api/v1/namespaces/{}/pods"
TASKSETS = "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/{}/tasksets"
UID_LABEL = "octopus.openi.pcl.cn/taskset-uid"
ENDED = ("Succeeded", "Failed")
STORY = 400
WATCH_S = 60


@dataclass(slots=True)
class Pod:
    name: str
    uid: str
    role: str
    index: int
    taskset_attempt: int
    attempt: int
    made_at: int
    """Revision."""
    seen_s: float
    """When we heard of it, on our clock."""
    phase: str = ""
    is_leaving: bool = False
    ended_by_itself: bool = False
    """It was seen to end before anybody asked it to go."""
    is_gone: bool = False

    @property
    def is_alive(self) -> bool:
        return not self.is_gone and self.phase not in ENDED

    @property
    def replica(self) -> tuple[str, int]:
        return self.role, self.index


@dataclass(slots=True)
class Seen:
    """All that was seen of one TaskSet, from its creation to its end, by UID."""

    uid: str
    name: str = ""
    latest: Json = field(default_factory=dict)
    is_gone: bool = False
    finished_at: int = 0
    """The revision in which it was first seen to be completed, or its deletion asked for."""
    finished_s: float = 0.0
    """When we heard of that, on our clock."""
    pods: dict[str, Pod] = field(default_factory=dict)
    """By UID, in the order they were made."""
    problems: list[str] = field(default_factory=list)
    story: collections.deque[str] = field(default_factory=lambda: collections.deque(maxlen=STORY))

    @property
    def status(self) -> Json:
        return self.latest.get("status") or {}

    @property
    def is_completed(self) -> bool:
        return self.status.get("phase") == "TaskSetCompleted"

    @property
    def is_leaving(self) -> bool:
        return bool(self.latest.get("metadata", {}).get("deletionTimestamp"))

    @property
    def is_cleared(self) -> bool:
        """It is gone, and all its pods."""
        return self.is_gone and all(pod.is_gone for pod in list(self.pods.values()))

    def attempts(self, taskset_attempt: int, replica: tuple[str, int]) -> list[Pod]:
        return [
            pod for pod in list(self.pods.values()) if pod.taskset_attempt == taskset_attempt and pod.replica == replica
        ]


class Observer:
    """Two threads, one watch each."""

    def __init__(self, control_plane: controlplane.ControlPlane, namespace: str) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, Seen] = {}
        self.problems: list[str] = []
        """Of the watching itself."""
        self.pods_made = 0
        self._watches = [
            Watch(control_plane, PODS.format(namespace), self._pod_event, self.problems.append),
            Watch(control_plane, TASKSETS.format(namespace), self._taskset_event, self.problems.append),
        ]

    def start(self) -> None:
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        for watch in self._watches:
            watch.stop()

    def of(self, uid: str) -> Seen:
        with self._lock:
            return self._of(uid)

    def forget(self, uid: str) -> None:
        with self._lock:
            del self._seen[uid]

    def _of(self, uid: str) -> Seen:
        return self._seen.setdefault(uid, Seen(uid))

    # --- pods

    def _pod_event(self, kind: str, revision: int, item: Json) -> None:
        meta, labels = item["metadata"], item["metadata"].get("labels", {})
        numbers = re.fullmatch(r".*-(\d+)-(\d+)-(\d+)", meta["name"])
        if UID_LABEL not in labels or numbers is None:
            self.problems.append(f"a pod that nobody can place: {meta['name']} {labels}")
            return
        with self._lock:
            seen = self._of(labels[UID_LABEL])
            phase = item["status"].get("phase", "")
            leaving = " leaving" if meta.get("deletionTimestamp") else ""
            seen.story.append(f"{revision} pod {meta['name']} {kind} {phase}{leaving}")
            if kind == "ADDED":
                attempts = int(numbers[1]), int(numbers[2])
                role = labels.get("PodTaskRole", "")
                pod = Pod(meta["name"], meta["uid"], role, int(numbers[3]), *attempts, revision, time.monotonic())
                self.pods_made += 1
                self._judge_new(seen, pod)
                seen.pods[pod.uid] = pod
            else:
                pod = seen.pods[meta["uid"]]
            pod.is_leaving |= bool(leaving)
            if phase in ENDED and pod.phase not in ENDED:
                pod.ended_by_itself = not leaving
            pod.phase = phase
            pod.is_gone = kind == "DELETED"

    def _judge_new(self, seen: Seen, pod: Pod) -> None:
        for other in seen.pods.values():
            if other.is_gone:
                continue
            if other.replica == pod.replica and other.is_alive:
                seen.problems.append(f"two alive: {pod.name} was made while {other.name} was {other.phase}")
            elif other.taskset_attempt != pod.taskset_attempt:
                seen.problems.append(f"attempts overlap: {pod.name} was made while {other.name} was there")

    # --- TaskSets

    def _taskset_event(self, kind: str, revision: int, item: Json) -> None:
        with self._lock:
            seen = self._of(item["metadata"]["uid"])
            seen.name = item["metadata"]["name"]
            before, seen.latest, seen.is_gone = seen.status, item, kind == "DELETED"
            after = seen.status
            if before != after or kind != "MODIFIED" or seen.is_leaving:
                seen.story.append(f"{revision} TaskSet {kind} {_told(after)}{' leaving' if seen.is_leaving else ''}")
            if before != after:
                seen.problems += [f"{said} (revision {revision})" for said in changed_wrongly(before, after)]
            if not seen.finished_at and (seen.is_completed or seen.is_leaving or seen.is_gone):
                seen.finished_at, seen.finished_s = revision, time.monotonic()


def changed_wrongly(before: Json, after: Json) -> Iterator[str]:
    """What no status may do from one writing to the next, whoever died between them."""
    if before.get("phase") == "TaskSetCompleted":
        yield f"the status changed after the end: {_difference(before, after)}"
    for key in ("createdAt", "startAt", "finishAt"):
        if before.get(key) not in (None, after.get(key)):
            yield f"{key} went from {before[key]} to {after.get(key)}"
    for key in ("totalRetriedCount", "preemptCount", "attempt", "observedGeneration"):
        if after.get(key, 0) < before.get(key, 0):
            yield f"{key} went back from {before[key]} to {after.get(key, 0)}"
    if before.get("attempt", 0) != after.get("attempt", 0):
        return
    if before.get("verdict") not in (None, "", after.get("verdict")):
        yield f"the verdict went from {before['verdict']} to {after.get('verdict')}"
    roles = {role["name"]: role for role in after.get("roleStatus", ())}
    for role in before.get("roleStatus", ()):
        yield from _role_changed_wrongly(role, roles.get(role["name"], {}))


def _role_changed_wrongly(before: Json, after: Json) -> Iterator[str]:
    if before.get("trigger") and before["trigger"] != after.get("trigger"):
        yield f"role {before['name']}: the verdict changed: {_difference(before, after)}"
    replicas = {replica["index"]: replica for replica in after.get("replicaStatus", ())}
    for old in before.get("replicaStatus", ()):
        new = replicas.get(old["index"])
        if new is None:  # lowered `replicas`, or a status too large to list all
            continue
        for key in ("totalRetriedCount", "lostCount", "attempt"):
            if new.get(key, 0) < old.get(key, 0):
                yield f"{old['name']}: {key} went back from {old[key]} to {new.get(key, 0)}"
        if old.get("outcome") and old["outcome"] != new.get("outcome"):
            yield f"{old['name']}: the outcome went from {old['outcome']} to {new.get('outcome')}"


def _difference(before: Json, after: Json) -> str:
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return "; ".join(f"{key}: {before.get(key)!r} -> {after.get(key)!r}" for key in sorted(keys))


def _told(status: Json) -> str:
    parts = [f"{status.get('phase', '')}/{status.get('attempt', 0)} retried {status.get('totalRetriedCount', 0)}"]
    for role in status.get("roleStatus", ()):
        parts += [
            f"{each['name']}:{each.get('attempt', 0)}r{each.get('totalRetriedCount', 0)}l{each.get('lostCount', 0)}"
            f"{each['phase'].removeprefix('TaskRoleReplica')}{each.get('outcome', '')}{each.get('podUID', '')[:4]}"
            for each in role.get("replicaStatus", ())[:8]
        ]
    return " ".join(parts) + f" ({status.get('stateMessage', '')})"


class Watch:
    """One resource, of one namespace or of all, from now on, without a gap."""

    def __init__(
        self,
        control_plane: controlplane.ControlPlane,
        path: str,
        take: Callable[[str, int, Json], None],
        complain: Callable[[str], None],
    ) -> None:
        self._path, self._take, self._complain = path, take, complain
        listed = control_plane.request("GET", path)
        if listed["items"]:
            raise ValueError(f"{path}: there is something already")
        self._revision = int(listed["metadata"]["resourceVersion"])
        self._address = urlsplit(control_plane.url)
        self._tls = ssl.create_default_context(cadata=control_plane.authority.pem.decode())
        self._headers = {"Authorization": f"Bearer {control_plane.admin_token}", "Accept": "application/json"}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Not waited for: it may have to wait for the server. What it still hears is ignored."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._follow()
            except (OSError, http.client.HTTPException):
                # Cut off: the next one goes on where this one was.
                self._is_over.wait(0.1)
            except Exception as problem:
                self._complain(f"the observer of {self._path} gave up at {self._revision}: {problem!r}")
                return

    def _follow(self) -> None:
        connection = http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, timeout=WATCH_S + 30, context=self._tls
        )
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_S}
        try:
            connection.request(
                "GET", f"{self._path}?{urlencode({**query, 'resourceVersion': self._revision})}", None, self._headers
            )
            response = connection.getresponse()
            if response.status != 200:
                raise ValueError(f"the server answers {response.status}: {response.read()[:300]!r}")
            for line in response:
                if self._is_over.is_set() or not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ValueError(f"the past is lost: {event['object']}")
                self._revision = int(event["object"]["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    self._take(event["type"], self._revision, event["object"])
        finally:
            connection.close()
