"""What does somebody do to a TaskSet who is not its controller? One script each; a step is taken at every `next`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from sweep_cases import Case, Meddling
from sweep_checks import ROBBED
from sweep_observer import PODS, TASKSETS, Observer, Pod, Seen

from octarbiter.testing.kubernetes import connection, controlplane

Json = dict[str, Any]
Script = Iterator[None]

JSON_PATCH = "application/json-patch+json"


class Somebody:
    def __init__(
        self, control_plane: controlplane.ControlPlane, namespace: str, observer: Observer, dice: random.Random
    ) -> None:
        self._control_plane, self._observer, self._dice = control_plane, observer, dice
        self._pods, self._tasksets = PODS.format(namespace), TASKSETS.format(namespace)
        self._units = f"/api/v1/namespaces/{namespace}/configmaps"
        self.robberies: dict[str, int] = {}
        """By UID of the TaskSet: pods that were alive when we deleted them."""

    def create(self, case: Case) -> str:
        """Its UID."""
        made = self._control_plane.request("POST", self._tasksets, case.manifest)
        return str(made["metadata"]["uid"])

    def script(self, case: Case, seen: Seen) -> Script:
        match case.meddling:
            case Meddling.ROB:
                return self._rob(seen)
            case Meddling.SNATCH:
                return self._snatch(seen)
            case Meddling.TAKE_UNIT:
                return self._take_unit(seen)
            case Meddling.DELETE:
                return self._delete(seen)
            case Meddling.SUSPEND:
                return self._suspend(seen)
            case Meddling.RESCALE:
                return self._rescale(seen)
        return iter(())

    def delete(self, name: str, uid: str, propagation: str = "Background") -> None:
        self._remove(f"{self._tasksets}/{name}", uid, propagation)

    def _rob(self, seen: Seen) -> Script:
        """Only what the status tells of: then the loss must be counted, whoever dies."""
        pod: Pod | None = None
        while pod is None or not self._take(seen, pod):
            yield from self._pause(1.0)
            uid = _recorded_pod(seen)
            pod = seen.pods.get(uid)

    def _snatch(self, seen: Seen) -> Script:
        while True:
            pods = seen.attempts(0, ROBBED)
            if any(pod.attempt for pod in pods):
                return
            for pod in pods:
                if pod.is_alive and not pod.is_leaving:
                    self._take(seen, pod)
            yield

    def _take_unit(self, seen: Seen) -> Script:
        yield from self._until(lambda: bool(seen.status.get("controlUnitUID")))
        yield from self._pause(2.0)
        uid = seen.status["controlUnitUID"]
        self._remove(f"{self._units}/c-{seen.name}-0", uid, self._dice.choice(["Background", "Foreground"]))

    def _delete(self, seen: Seen) -> Script:
        yield from self._pause(5.0)
        self.delete(seen.name, seen.uid, self._dice.choice(["Background", "Foreground"]))

    def _suspend(self, seen: Seen) -> Script:
        yield from self._until(lambda: seen.status.get("state") == "Running" or seen.is_completed)
        self._patch(seen, "/spec/suspend", True)
        yield from self._pause(3.0)
        self._patch(seen, "/spec/suspend", False)

    def _rescale(self, seen: Seen) -> Script:
        yield from self._until(lambda: seen.status.get("state") == "Running")
        for replicas in (2, 6):
            yield from self._pause(3.0)
            self._patch(seen, "/spec/roles/0/replicas", replicas)

    def _pause(self, longest_s: float) -> Script:
        end = time.monotonic() + self._dice.uniform(0.0, longest_s)
        yield from self._until(lambda: time.monotonic() > end)

    def _until(self, holds: Callable[[], bool]) -> Script:
        while not holds():
            yield

    def _take(self, seen: Seen, pod: Pod) -> bool:
        """Was it alive when it was deleted?"""
        last = self._remove(f"{self._pods}/{pod.name}", pod.uid, "Background")
        was_alive = last is not None and last["status"]["phase"] in ("Pending", "Running")
        self.robberies[seen.uid] = self.robberies.get(seen.uid, 0) + was_alive
        return was_alive

    def _remove(self, path: str, uid: str, propagation: str) -> Json | None:
        """What it was; None if it was gone."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": propagation}
        try:
            answer: Json = self._control_plane.request("DELETE", path, options)
        except connection.ApiError as refusal:
            if refusal.status not in (404, 409):
                raise
            return None
        return answer

    def _patch(self, seen: Seen, path: str, value: object) -> None:
        operations = [{"op": "add", "path": path, "value": value}]
        self._control_plane.request("PATCH", f"{self._tasksets}/{seen.name}", operations, JSON_PATCH)


def _recorded_pod(seen: Seen) -> str:
    """UID of the pod of the replica to be robbed, once the stored status has it."""
    for role in seen.status.get("roleStatus", ()):
        for replica in role.get("replicaStatus", ()):
            if (role["name"], replica["index"]) == ROBBED:
                return str(replica.get("podUID", ""))
    return ""
