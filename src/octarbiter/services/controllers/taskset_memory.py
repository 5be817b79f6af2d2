"""What does the controller remember of a TaskSet between two looks? Only what it may forget without harm.

All of it can be lost at any instant: the recorded status and the world are enough to go on from.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from octarbiter.api import errors
from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import report
from octarbiter.core.lifecycle.observe import Refusal

FIRST_PAUSE_S = 1
LAST_PAUSE_S = 30
DELETE_AGAIN_S = 30.0
"""An acknowledged delete is not repeated before; its effect comes by the watch."""


class Memory:
    def __init__(self, taskset: api.TaskSet) -> None:
        self.uid = taskset.metadata.uid
        self.recorded = taskset.status
        """As the server holds it."""
        self.version = taskset.metadata.resource_version
        """The object's version with that status: what is decided on one status must not be recorded over another."""
        self.status = report.expand(taskset.status)
        """As last decided; may be ahead of what is recorded."""
        self.ahead_since: float | None = None
        self.listed_at: float | None = None
        self.listed_to_the_end = -1
        """The last attempt whose complete list of replicas was written when it had ended."""
        self.refusals: dict[tuple[str, int], Refusal] = {}
        self.refusal_count = 0
        self._tries: dict[tuple[str, int], int] = {}
        self._deletes: dict[str, float] = {}

    def recorded_as(self, taskset: api.TaskSet) -> None:
        self.recorded = taskset.status
        self.version = taskset.metadata.resource_version
        self.ahead_since = None

    def look_at(self, taskset: api.TaskSet) -> None:
        """A version of the object that is not of our making: another spec, or somebody else's status."""
        if taskset.status != self.recorded:
            self.start_over(taskset)
        self.version = taskset.metadata.resource_version

    def start_over(self, taskset: api.TaskSet) -> None:
        """Somebody else wrote the status: theirs is the truth."""
        self.status = report.expand(taskset.status)
        self.recorded_as(taskset)

    def refused(self, what: tuple[str, int], kind: str, message: str, now: datetime) -> Refusal:
        self.refusal_count += 1
        tries = self._tries[what] = self._tries.get(what, 0) + 1
        pause = min(LAST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(tries - 1, 10))
        refusal = self.refusals[what] = Refusal(kind, message, now + timedelta(seconds=pause))
        return refusal

    def accepted(self, what: tuple[str, int]) -> None:
        self.refusals.pop(what, None)
        self._tries.pop(what, None)

    def may_delete(self, uid: str, now: float) -> bool:
        return now - self._deletes.get(uid, -DELETE_AGAIN_S) >= DELETE_AGAIN_S

    def deleted(self, uid: str, now: float) -> None:
        if len(self._deletes) > 1000:
            self._deletes = {u: at for u, at in self._deletes.items() if now - at < DELETE_AGAIN_S}
        self._deletes[uid] = now


def kind_of_refusal(error: errors.ApiError) -> str:
    """What a person would call it; `invalid` is final, the others are tried again."""
    message = error.status.message
    if "exceeded quota" in message:
        return "quota"
    # Who refuses by a rule of his own (webhook, admission policy) may call it invalid; tomorrow the rule is another.
    if "admission webhook" in message or " is forbidden: " in message or isinstance(error, errors.Forbidden):
        return "denied"
    if isinstance(error, errors.Invalid):
        return "invalid"
    return "busy"
