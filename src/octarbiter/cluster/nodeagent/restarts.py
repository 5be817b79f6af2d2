"""Is a container that ended started again, and when? The rules of the kubelet.

The first restart is at once; then a pause that doubles from ten seconds to five minutes, counted from the end of the
last run. A container that ran for ten minutes after its restart begins anew.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from octarbiter.cluster.nodeagent.pods import Container, PodSpec

FIRST_S: Final = 10
LONGEST_S: Final = 300
FORGIVEN_AFTER: Final = timedelta(seconds=2 * LONGEST_S)


def is_wanted(container: Container, spec: PodSpec, exit_code: int) -> bool:
    for rule in container.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and rule.action == "Restart" and (exit_code in codes.values) == (codes.operator == "In"):
            return True
    policy = container.restart_policy or spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


class Pauses:
    """Of one container."""

    __slots__ = ("_since", "seconds")

    def __init__(self) -> None:
        self.seconds = 0
        self._since: datetime | None = None

    def due(self, ended_at: datetime) -> datetime:
        if self._since is not None and ended_at - self._since > FORGIVEN_AFTER:
            self.seconds = 0
        return ended_at + timedelta(seconds=self.seconds)

    def restarted(self, now: datetime) -> None:
        self.seconds = min(LONGEST_S, self.seconds * 2) or FIRST_S
        self._since = now

    @property
    def words(self) -> str:
        """As Go writes durations: 10s, 1m20s, 5m0s."""
        minutes, seconds = divmod(self.seconds, 60)
        return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
