"""How many pods of a Job have succeeded and failed, counting each exactly once, whatever crashes when?

A pod carries the tracking finalizer until it is counted, so it cannot vanish before. An outcome is first written to
the status by the pod's UID (`uncountedTerminatedPods`; the successes of an Indexed Job, by their index), then the
finalizer is removed, then the UID becomes one more in the sum. A crash between any two steps leaves enough to go on
from: a pod is counted when its UID is recorded and its finalizer is gone, and never looked at again after that,
because it carries no finalizer. This needs one promise of the caller: the pods it shows are not older than the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from octarbiter.api.meta import Json
from octarbiter.cluster.controllers import job_indexes, job_pods
from octarbiter.cluster.controllers.kinds import JobStatus, Pod

AT_ONCE = 500
"""UIDs recorded in one status: it has to fit into an object."""


class Counts(Struct, frozen=True):
    succeeded: int
    failed: int
    """The sums as recorded: what is uncounted comes on top."""
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    completed: frozenset[int]
    """Indexes; of an Indexed Job only."""
    release: tuple[Pod, ...]
    """Those whose finalizer may go once all this is recorded."""
    is_complete: bool
    """Nobody is left to be counted."""

    @property
    def total_failed(self) -> int:
        return self.failed + len(self.uncounted_failed)

    @property
    def total_succeeded(self) -> int:
        return self.succeeded + len(self.uncounted_succeeded)


def count(status: JobStatus, pods: Sequence[Pod], indexed_completions: int | None) -> Counts:
    """`indexed_completions`: of an Indexed Job; None for others."""
    tracked = {pod.metadata.uid: pod for pod in pods if job_pods.is_tracked(pod)}
    recorded: Json = status.uncounted_terminated_pods or {}
    # Recorded, and the finalizer is gone: from now on it is one of the sum.
    succeeded_before, succeeded = _settled(recorded.get("succeeded") or (), tracked)
    failed_before, failed = _settled(recorded.get("failed") or (), tracked)
    room = AT_ONCE - len(succeeded_before) - len(failed_before)
    known = {*succeeded_before, *failed_before}
    new = [pod for uid, pod in tracked.items() if uid not in known and not job_pods.is_active(pod)]
    completed: frozenset[int] = frozenset()
    release = [tracked[uid] for uid in (*succeeded_before, *failed_before)]
    if indexed_completions is not None:
        done = job_indexes.parse(status.completed_indexes, indexed_completions)
        ended = [pod for pod in new if job_pods.has_succeeded(pod)]
        indexes = {pod.metadata.uid: job_pods.index_of(pod) for pod in ended}
        done |= {index for index in indexes.values() if index is not None and index < indexed_completions}
        completed = frozenset(done)
        release += ended
        new = [pod for pod in new if pod.metadata.uid not in indexes]
    taken = new[: max(0, room)]
    release += taken
    good = [pod.metadata.uid for pod in taken if job_pods.has_succeeded(pod)]
    bad = [pod.metadata.uid for pod in taken if not job_pods.has_succeeded(pod)]
    return Counts(
        succeeded=len(completed) if indexed_completions is not None else status.succeeded + succeeded,
        failed=status.failed + failed,
        uncounted_succeeded=(*succeeded_before, *good),
        uncounted_failed=(*failed_before, *bad),
        completed=completed,
        release=tuple(release),
        is_complete=not tracked and not known and not new,
    )


def _settled(uids: Iterable[str], tracked: dict[str, Pod]) -> tuple[list[str], int]:
    """Those that are still to be settled, and how many are."""
    uids = list(uids)
    waiting = [uid for uid in uids if uid in tracked]
    return waiting, len(uids) - len(waiting)
