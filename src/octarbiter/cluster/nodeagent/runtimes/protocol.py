"""What must something be able to do to run containers for the agent?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from octarbiter.cluster.nodeagent import logs, news
from octarbiter.cluster.nodeagent.pods import Handler, Pod

Output = Callable[[bytes], Awaitable[None]]
Size = tuple[int, int]
"""Columns and rows of a terminal."""
Listener = Callable[[str, news.Event], None]
"""Is told the UID of a pod and what happened to it."""


class Place(msgspec.Struct, frozen=True):
    """Where a pod is, as its environment tells it."""

    host_ip: str
    pod_ip: str
    allocatable: Mapping[str, str] = {}
    services: Mapping[str, str] = {}
    """Environment variables that say where the API server is."""


class NotPrepared(Exception):
    """The pod's volumes cannot be made (yet); the message is for people."""


class Answer(msgspec.Struct, frozen=True):
    """Of a probe or a hook."""

    passed: bool
    output: str = ""


class Runtime(Protocol):
    scheme: str
    """How its container ids begin."""
    is_real: bool
    """Something runs that can be probed and is worth Events."""

    def attach(self, listener: Listener) -> None: ...

    async def known(self, pod: Pod) -> Sequence[news.Run]:
        """What ran, or runs, of this pod; from now on the listener is told of its end."""
        ...

    async def remembered(self) -> Sequence[Pod]:
        """All pods of which there is anything left, as they were when prepared."""
        ...

    async def prepare(self, pod: Pod, place: Place) -> None:
        """Raises NotPrepared. May be called again."""
        ...

    async def start(self, pod: Pod, container: str, attempt: int, place: Place) -> None:
        """The listener is told ContainerStarted, ConfigurationFailed, or ContainerEnded with StartError, and later of
        the end."""
        ...

    def send_signal(self, pod: Pod, container: str, attempt: int, signal: str) -> None: ...

    async def act(
        self, pod: Pod, container: str, attempt: int, handler: Handler, place: Place, timeout_s: float
    ) -> Answer:
        """Carry out what a probe or hook says."""
        ...

    async def execute(
        self,
        pod: Pod,
        container: str,
        command: Sequence[str],
        *,
        stdout: Output,
        stderr: Output | None = None,
        stdin: AsyncIterator[bytes] | None = None,
        tty: bool = False,
        sizes: AsyncIterator[Size] | None = None,
    ) -> int:
        """Run one more command in a running container; its exit code. Without `stderr` all goes to `stdout`.

        Cancelled, it kills the command. Raises LookupError with a sentence for people.
        """
        ...

    async def type_into(
        self, pod: Pod, container: str, stdin: AsyncIterator[bytes] | None, sizes: AsyncIterator[Size] | None = None
    ) -> None:
        """Input for the command of a running container, until there is no more. Raises LookupError, as `execute`."""
        ...

    def read_logs(
        self, namespace: str, pod: str, container: str, query: logs.Query, *, uid: str = "", previous: bool = False
    ) -> AsyncIterator[bytes]:
        """Also of pods that are gone; without a UID, of the latest of that name. Raises LookupError."""
        ...

    async def release(self, pod: Pod) -> None:
        """Forget the pod, except for its logs. Nothing of it runs any more."""
        ...

    def changed(self, pod: Pod) -> None:
        """Labels, annotations or what else may change of a pod are others now."""
        ...

    def is_silent(self, pod: Pod) -> bool:
        """Nothing is to be reported of it, as if its node were lost."""
        ...

    async def close(self) -> None:
        """The agent leaves. What runs goes on running."""
        ...
