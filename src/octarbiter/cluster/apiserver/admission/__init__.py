"""Who has a say before something is written, besides its own kind?

Plugins come twice: first they may change the object, then, when it is as it will be stored, they may refuse it. Both in
the order of the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.authn import User
from octarbiter.cluster.apiserver.catalogue import Served

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"


class Attempt(msgspec.Struct):
    """Something is about to be written."""

    operation: str
    served: Served
    namespace: str
    name: str
    user: User
    obj: Json | None = None
    """None for deletions."""
    old: Json | None = None
    subresource: str = ""
    dry_run: bool = False
    warnings: list[str] = []


class Plugin(Protocol):
    """Both raise `status.Failure` to refuse."""

    async def admit(self, attempt: Attempt) -> None:
        """May change `attempt.obj`."""

    async def validate(self, attempt: Attempt) -> None:
        """May change nothing."""


class Chain:
    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._plugins = tuple(plugins)

    async def admit(self, attempt: Attempt) -> None:
        for plugin in self._plugins:
            await plugin.admit(attempt)

    async def validate(self, attempt: Attempt) -> None:
        for plugin in self._plugins:
            await plugin.validate(attempt)
