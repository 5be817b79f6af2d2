"""What can happen to a pod on its node? The events a machine is fed with. Times are when it happened."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from octarbiter.cluster.nodeagent.pods import Pod

Hook = Literal["postStart", "preStop"]
ProbeKind = Literal["startup", "readiness", "liveness"]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How a run of a container ended."""

    exit_code: int
    reason: str
    message: str = ""
    finished_at: datetime | None = None


class Run(msgspec.Struct, frozen=True, gc=False):
    """A run that a runtime remembers from before the agent started."""

    container: str
    attempt: int
    id: str
    started_at: datetime | None
    outcome: Outcome | None = None
    """None: it is running."""


class PodSeen(msgspec.Struct, frozen=True, gc=False):
    pod: Pod


class PodGone(msgspec.Struct, frozen=True, gc=False):
    """The API no longer knows the pod."""


class Prepared(msgspec.Struct, frozen=True, gc=False):
    pass


class PreparationFailed(msgspec.Struct, frozen=True, gc=False):
    message: str


class ContainerStarted(msgspec.Struct, frozen=True, gc=False):
    container: str
    attempt: int
    id: str
    at: datetime


class ConfigurationFailed(msgspec.Struct, frozen=True, gc=False):
    """What the container needs to be started (a ConfigMap, a key) is not there; nothing was run."""

    container: str
    attempt: int
    message: str


class ContainerEnded(msgspec.Struct, frozen=True, gc=False):
    """It exited, or could not be started at all (reason `StartError`)."""

    container: str
    attempt: int
    outcome: Outcome
    id: str = ""


class HookDone(msgspec.Struct, frozen=True, gc=False):
    container: str
    attempt: int
    hook: Hook
    problem: str = ""


class Probed(msgspec.Struct, frozen=True, gc=False):
    container: str
    attempt: int
    probe: ProbeKind
    passed: bool
    output: str = ""


class Reported(msgspec.Struct, frozen=True, gc=False):
    """The API server has the status of this revision of the machine."""

    revision: int


class TimeCame(msgspec.Struct, frozen=True, gc=False):
    """What was to be woken for."""


Event = (
    PodSeen
    | PodGone
    | Prepared
    | PreparationFailed
    | ContainerStarted
    | ConfigurationFailed
    | ContainerEnded
    | HookDone
    | Probed
    | Reported
    | TimeCame
)
