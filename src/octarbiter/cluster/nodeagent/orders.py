"""What can a machine ask of the world? Values, not deeds: the agent carries them out."""

from __future__ import annotations

from datetime import datetime

import msgspec

from octarbiter.cluster.nodeagent.news import Hook, ProbeKind


class Prepare(msgspec.Struct, frozen=True, gc=False):
    """Make the pod's directories and volumes; answered by `Prepared` or `PreparationFailed`."""


class StartContainer(msgspec.Struct, frozen=True, gc=False):
    """Answered by `ContainerStarted`, `ConfigurationFailed`, or `ContainerEnded` with reason StartError."""

    container: str
    attempt: int


class SendSignal(msgspec.Struct, frozen=True, gc=False):
    """To everything that runs in the container."""

    container: str
    attempt: int
    signal: str


class RunHook(msgspec.Struct, frozen=True, gc=False):
    container: str
    attempt: int
    hook: Hook
    timeout_s: float


class RunProbe(msgspec.Struct, frozen=True, gc=False):
    container: str
    attempt: int
    probe: ProbeKind


class WakeAt(msgspec.Struct, frozen=True, gc=False):
    """Replaces what was asked before."""

    at: datetime


class Report(msgspec.Struct, frozen=True, gc=False):
    """The status may have changed; answered by `Reported` when the API server has it."""


class ConfirmDeletion(msgspec.Struct, frozen=True, gc=False):
    """Delete the object with grace 0: nothing runs any more, and the API server has the final status."""


class Release(msgspec.Struct, frozen=True, gc=False):
    """The pod is gone and nothing of it runs: give back what it used. The machine is done."""


class Tell(msgspec.Struct, frozen=True, gc=False):
    """An Event for people; `container` empty: about the pod."""

    reason: str
    message: str
    warning: bool = False
    container: str = ""


Order = Prepare | StartContainer | SendSignal | RunHook | RunProbe | WakeAt | Report | ConfirmDeletion | Release | Tell


class Outbox:
    """Orders under construction, with the earliest of the times to wake at."""

    __slots__ = ("_wake_at", "orders")

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self._wake_at: datetime | None = None

    def add(self, order: Order) -> None:
        self.orders.append(order)

    def wake(self, at: datetime) -> None:
        self._wake_at = at if self._wake_at is None else min(self._wake_at, at)

    def tell(self, reason: str, message: str, container: str = "", *, warning: bool = False) -> None:
        self.orders.append(Tell(reason, message, warning, container))

    def sealed(self) -> list[Order]:
        if self._wake_at is not None:
            self.orders.append(WakeAt(self._wake_at))
        return self.orders
