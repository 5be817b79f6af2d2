"""What happened to the pods of TaskSets, seen by somebody who does not believe the controller?

A watch of its own on all of them, from before the first to after the last. The API server tells every change in the
order it was stored, so "two pods of one replica at the same time" is not a question of when one looks.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from eventual import eventually

from octarbiter.core.lifecycle import names
from octarbiter.testing.kubernetes.connection import ApiError
from octarbiter.testing.kubernetes.controlplane import ControlPlane

Pod = dict[str, Any]

_PATH = f"/api/v1/pods?labelSelector={quote(names.UID_LABEL)}"
_OVER = ("Succeeded", "Failed")


class Observer:
    def __init__(self, control_plane: ControlPlane) -> None:
        self._plane = control_plane
        self._lock = threading.Lock()
        self._known: dict[str, Pod] = {}
        self._alive: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
        self._stories: dict[str, list[str]] = defaultdict(list)
        self._made: dict[str, list[str]] = defaultdict(list)
        self._doubles: dict[str, list[str]] = defaultdict(list)
        self._stopping = threading.Event()
        self._stream: http.client.HTTPSConnection | None = None
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    def __enter__(self) -> "Observer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self._stream is not None and self._stream.sock is not None:
            with contextlib.suppress(OSError):
                self._stream.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def made(self, namespace: str) -> list[str]:
        """The names of all pods ever made, in that order."""
        self._catch_up(namespace)
        with self._lock:
            return list(self._made[namespace])

    def story(self, namespace: str) -> list[str]:
        with self._lock:
            return list(self._stories[namespace])

    def doubles(self, namespace: str) -> list[str]:
        """Each moment at which two pods of one replica were alive."""
        self._catch_up(namespace)
        with self._lock:
            return list(self._doubles[namespace])

    def _catch_up(self, namespace: str) -> None:
        """Until what was told here is what the server holds by now."""

        def is_level() -> bool:
            listed = self._plane.request("GET", _PATH)["items"]
            stored = {_uid(pod): _version(pod) for pod in listed if pod["metadata"]["namespace"] == namespace}
            with self._lock:
                told = {_uid(pod): _version(pod) for pod in self._of(namespace)}
            return stored == told

        eventually(is_level, "the observer to see what is stored")

    def _of(self, namespace: str) -> Iterator[Pod]:
        return (pod for pod in self._known.values() if pod["metadata"]["namespace"] == namespace)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow(self._list())
            except (OSError, http.client.HTTPException, ApiError, ValueError):
                # The server is away, or has forgotten where we were: begin with a list again.
                self._stopping.wait(0.1)

    def _list(self) -> str:
        found = self._plane.request("GET", _PATH)
        with self._lock:
            listed = {_uid(pod) for pod in found["items"]}
            for pod in [pod for uid, pod in self._known.items() if uid not in listed]:
                self._note("DELETED", pod)
            for pod in found["items"]:
                self._note("MODIFIED" if _uid(pod) in self._known else "ADDED", pod)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        parts = urlsplit(self._plane.url)
        context = ssl.create_default_context(cadata=self._plane.authority.pem.decode())
        self._stream = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context)
        with contextlib.closing(self._stream) as stream:
            headers = {"Authorization": f"Bearer {self._plane.admin_token}"}
            stream.request("GET", f"{_PATH}&watch=1&resourceVersion={version}", headers=headers)
            answer = stream.getresponse()
            while not self._stopping.is_set() and (line := answer.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                with self._lock:
                    self._note(event["type"], event["object"])

    def _note(self, kind: str, pod: Pod) -> None:
        meta, phase = pod["metadata"], pod["status"].get("phase", "")
        namespace = meta["namespace"]
        leaving = ", is to go" if "deletionTimestamp" in meta else ""
        self._stories[namespace].append(f"{meta['resourceVersion']} {kind} {meta['name']} {phase}{leaving}")
        alive = self._alive[_replica(pod)]
        if kind == "DELETED":
            self._known.pop(_uid(pod), None)
            alive.pop(_uid(pod), None)
            return
        if kind == "ADDED":
            self._made[namespace].append(meta["name"])
        self._known[_uid(pod)] = pod
        if phase in _OVER:
            alive.pop(_uid(pod), None)
        else:
            alive[_uid(pod)] = meta["name"]
        if len(alive) > 1:
            self._doubles[namespace].append(f"at {meta['resourceVersion']}: {', '.join(sorted(alive.values()))}")


def _uid(pod: Pod) -> str:
    return str(pod["metadata"]["uid"])


def _version(pod: Pod) -> str:
    return str(pod["metadata"]["resourceVersion"])


def _replica(pod: Pod) -> tuple[str, ...]:
    """The same for all pods of one replica of one TaskSet, whichever attempt."""
    labels = pod["metadata"]["labels"]
    wanted = (names.UID_LABEL, names.TASKSET_LABEL, names.ROLE_LABEL, names.INDEX_LABEL)
    return pod["metadata"]["namespace"], *(labels.get(key, "") for key in wanted)
