"""The hands and eyes of a person with TaskSets in one namespace: submit, look, disturb, wait."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from eventual import eventually
from taskset_observer import Observer

from octarbiter.api import scheme, taskset
from octarbiter.core.lifecycle import names
from octarbiter.testing.kubernetes import fakepods
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.connection import MERGE_PATCH, ApiError

Json = dict[str, Any]

FOREVER = "forever"


def role(
    name: str = "worker",
    replicas: int = 1,
    *,
    duration: str = FOREVER,
    annotations: Json | None = None,
    container: Json | None = None,
    pod: Json | None = None,
    **fields: Any,
) -> Json:
    """A role whose pods run on fake nodes until they are told to end, or for `duration`."""
    template = {
        "metadata": {"annotations": {fakepods.DURATION: duration} | (annotations or {})},
        "spec": {"containers": [{"name": "main", "image": "busybox"} | (container or {})]} | (pod or {}),
    }
    return {"name": name, "replicas": replicas, "template": template} | fields


def retries(count: int, delay: int = 0) -> Json:
    return {"retry": True, "maxRetryCount": count, "delay": delay}


def needs(succeeded: int, max_failed: int = 1) -> Json:
    return {"minSucceeded": succeeded, "maxFailed": max_failed}


class Bench:
    def __init__(self, bed: Testbed, namespace: str, observer: Observer) -> None:
        self.bed = bed
        self.namespace = namespace
        self.observer = observer

    # --- TaskSets

    def submit(self, *roles: Json, name: str = "job", **spec: Any) -> str:
        """Its UID."""
        body = {
            "apiVersion": taskset.API_VERSION,
            "kind": taskset.KIND,
            "metadata": {"name": name},
            "spec": {"roles": list(roles), **spec},
        }
        made = self.request("POST", scheme.TASKSETS.path(self.namespace), body)
        return str(made["metadata"]["uid"])

    def needs_kubernetes(self, why: str) -> None:
        """The embedded cluster cannot do this, and says so: `why`."""
        if not isinstance(self.bed, Testbed):
            pytest.skip(f"not on the embedded cluster: {why}")

    def find(self, name: str = "job") -> Json | None:
        return self._found(scheme.TASKSETS.path(self.namespace, name))

    def status(self, name: str = "job") -> Json:
        found = self.find(name)
        assert found is not None, f"there is no TaskSet {name}"
        return dict(found.get("status", {}))

    def change(self, name: str = "job", **spec: Any) -> None:
        self.request("PATCH", scheme.TASKSETS.path(self.namespace, name), {"spec": spec}, MERGE_PATCH)

    def scale(self, replicas: int, name: str = "job") -> None:
        """Of the first role."""
        operations = [{"op": "replace", "path": "/spec/roles/0/replicas", "value": replicas}]
        path = scheme.TASKSETS.path(self.namespace, name)
        self.request("PATCH", path, operations, "application/json-patch+json")

    def delete(self, name: str = "job", propagation: str = "Background") -> None:
        self.request("DELETE", f"{scheme.TASKSETS.path(self.namespace, name)}?propagationPolicy={propagation}")

    def when(self, holds: Callable[[Json], Any], what: str, name: str = "job", timeout_s: float = 60.0) -> Json:
        """The first status of which that can be said."""

        def probe() -> Json | None:
            status = self.status(name)
            return status if status.get("roleStatus") and holds(status) else None

        found = eventually(probe, lambda: f"{what}; the status is {json.dumps(self.status(name), indent=1)}", timeout_s)
        assert found is not None
        return found

    def when_told(self, *sentences: str, name: str = "job") -> Json:
        """The first status whose message says all of that."""
        told = " and ".join(map(repr, sentences))
        return self.when(lambda status: all(each in message_of(status) for each in sentences), f"word of {told}", name)

    def when_ended(self, state: str, name: str = "job", timeout_s: float = 60.0) -> Json:
        """Its last status, which must be consistent, whatever happened before."""
        status = self.when(lambda status: status["phase"] == "TaskSetCompleted", f"the end of {name}", name, timeout_s)
        assert status["state"] == state, json.dumps(status, indent=1)
        sizes = {each["name"]: each["replicas"] for each in (self.find(name) or {})["spec"]["roles"]}
        for each in status["roleStatus"]:
            assert each["phase"] == "TaskRoleCompleted"
            assert each["state"] in ("Succeeded", "Failed")
            assert "active" not in each
            assert sum(each.get(end, 0) for end in ("succeeded", "failed", "stopped")) == sizes[each["name"]]
            for replica in each.get("replicaStatus", ()):
                assert replica["phase"] == "TaskRoleReplicaCompleted"
                assert replica["finishAt"] <= status["finishAt"]
        return status

    def when_gone(self, name: str = "job") -> None:
        eventually(lambda: self.find(name) is None, f"TaskSet {name} to be gone")

    # --- what belongs to them

    def pods(self, role: str | None = None, index: int | None = None) -> list[Json]:
        selector = names.UID_LABEL
        selector += "" if role is None else f",{names.ROLE_LABEL}={role}"
        selector += "" if index is None else f",{names.INDEX_LABEL}={index}"
        path = f"{scheme.PODS.path(self.namespace)}?labelSelector={quote(selector)}"
        return list(self.request("GET", path)["items"])

    def left(self) -> list[str]:
        """All there is of any TaskSet in the namespace, but the TaskSets."""
        return [
            f"{resource.kind} {found['metadata']['name']}"
            for resource in (scheme.PODS, scheme.CONFIGMAPS, scheme.SERVICES)
            for found in self.request("GET", f"{resource.path(self.namespace)}?labelSelector={quote(names.UID_LABEL)}")[
                "items"
            ]
        ]

    def check_that_all_is_gone(self) -> None:
        """Pods are gone before an end is told; what is left, the garbage collector takes soon after."""
        assert self.pods() == []
        eventually(lambda: self.left() == [], lambda: f"all to be gone; there are {self.left()}")

    def when_pod(self, role: str = "worker", index: int = 0, phase: str = "Running", not_uid: str = "") -> Json:
        """The pod of this replica when it is in this phase and nobody has told it to go."""

        def probe() -> Json | None:
            return next((pod for pod in self.pods(role, index) if is_it(pod)), None)

        def is_it(pod: Json) -> bool:
            meta = pod["metadata"]
            return pod["status"]["phase"] == phase and "deletionTimestamp" not in meta and meta["uid"] != not_uid

        def seen() -> list[tuple[str, str]]:
            return [(pod["metadata"]["name"], pod["status"]["phase"]) for pod in self.pods()]

        found = eventually(probe, lambda: f"a pod of {role}-{index} that is {phase}; there are {seen()}")
        assert found is not None
        return found

    def when_running(self, role: str, replicas: int) -> dict[int, str]:
        """The UIDs of its pods by index, when the status says that all of them run."""

        def all_run(status: Json) -> bool:
            found = replicas_of(status, role)
            return len(found) == replicas and all(each["phase"].endswith("AttemptRunning") for each in found.values())

        status = self.when(all_run, f"{replicas} running replicas of {role}")
        return {index: each["podUID"] for index, each in replicas_of(status, role).items()}

    def end(self, role: str = "worker", index: int = 0, exit_code: int = 0, message: str = "") -> None:
        """The program in this replica's running pod comes to its end."""
        pod = self.when_pod(role, index)
        told = {fakepods.DURATION: "0s", fakepods.EXIT_CODE: str(exit_code), fakepods.MESSAGE: message}
        self.annotate(pod, told)

        def has_ended() -> bool:
            found = self._found(self.path(pod))
            return found is None or found["status"]["phase"] != "Running"

        eventually(has_ended, f"pod {pod['metadata']['name']} to end")

    def annotate(self, pod: Json, annotations: Mapping[str, str | None]) -> None:
        self.request("PATCH", self.path(pod), {"metadata": {"annotations": annotations}}, MERGE_PATCH)

    def delete_pod(self, pod: Json, grace_s: int | None = None) -> None:
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        self.request("DELETE", self.path(pod), {"preconditions": {"uid": pod["metadata"]["uid"]}, **options})

    def bind(self, pod: Json, node: str) -> None:
        """As a scheduler does."""
        body = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": node}}
        self.request("POST", f"{self.path(pod)}/binding", body)

    def set_status(self, pod: Json, **status: Any) -> None:
        """As a node does."""
        self.request("PATCH", f"{self.path(pod)}/status", {"status": status}, MERGE_PATCH)

    def path(self, pod: Json) -> str:
        return scheme.PODS.path(self.namespace, pod["metadata"]["name"])

    def when_pod_gone(self, pod: Json) -> None:
        def is_gone() -> bool:
            found = self._found(self.path(pod))
            return found is None or found["metadata"]["uid"] != pod["metadata"]["uid"]

        eventually(is_gone, f"pod {pod['metadata']['name']} to be gone")

    def made(self) -> list[str]:
        return self.observer.made(self.namespace)

    # --- anything

    @contextlib.contextmanager
    def priority_class(self, value: int) -> Iterator[str]:
        path, name = "/apis/scheduling.k8s.io/v1/priorityclasses", f"{self.namespace}-{value}"
        self.request("POST", path, {"metadata": {"name": name}, "value": value})
        yield name
        self.request("DELETE", f"{path}/{name}")

    def kubectl(self, *arguments: str, check: bool = True, input: str | None = None) -> str:
        done = self.bed.control_plane.kubectl(f"--namespace={self.namespace}", *arguments, check=check, input=input)
        return done.stdout + done.stderr

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        return self.bed.control_plane.request(method, path, body, content_type)

    def _found(self, path: str) -> Json | None:
        try:
            found: Json = self.request("GET", path)
        except ApiError as refusal:
            if refusal.status != 404:
                raise
            return None
        return found


def message_of(status: Json) -> str:
    return str(status.get("stateMessage", ""))


def role_of(status: Json, name: str) -> Json:
    return next(each for each in status["roleStatus"] if each["name"] == name)


def replicas_of(status: Json, role: str = "worker") -> dict[int, Json]:
    return {each["index"]: each for each in role_of(status, role).get("replicaStatus", ())}


def counts(replica: Json) -> tuple[int, int]:
    """(charged retries, pods lost)"""
    return replica.get("totalRetriedCount", 0), replica.get("lostCount", 0)
