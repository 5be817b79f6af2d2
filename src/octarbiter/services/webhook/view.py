"""What does the webhook need to know of the cluster? It reads, at once and from memory; it never asks the server."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from octarbiter.api.queue import Queue
from octarbiter.core.quota import admission


class View(Protocol):
    @property
    def us(self) -> str:
        """The name by which the API server knows us: our own changes pass."""
        ...

    @property
    def policies(self) -> Collection[str]:
        """The names of all policies there are."""
        ...

    def place(self, namespace: str) -> admission.Place:
        """What is known of a namespace, if only that nothing is. Its mode is not looked at: who asks knows it."""
        ...

    def queues(self) -> Mapping[str, Queue]:
        """All of them, by key."""
        ...

    def has_claim(self, namespace: str, api_version: str, kind: str, name: str) -> bool:
        """Is there a QueueJob whose `workloadRef` means this object?"""
        ...
