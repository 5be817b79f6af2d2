"""Did a finished TaskSet come to what it had to come to?

Its stored status is held against what was known beforehand (`sweep_cases`), and both against the pods that the observer
saw made and ended: the counters must tell what really happened, not only agree with each other.
"""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterator
from typing import Any

from sweep_cases import Case, Ending, Meddling, Replica
from sweep_observer import Seen

Json = dict[str, Any]

HISTORY = 10
ROBBED: Replica = ("worker", 0)
RESCALED = (2, 3)
_RUN = re.compile(r"(\d+)x(\d+)(?:r(\d+))?(?:l(\d+))?([SFX])")
_OUTCOMES = {"S": "Succeeded", "F": "Failed", "X": "Stopped"}


def wrong_with(case: Case, seen: Seen, robberies: int) -> Iterator[str]:
    """`robberies`: how many of its pods somebody has deleted."""
    yield from seen.problems
    if case.vanishes and not seen.is_gone:
        yield "it is still there"
    if case.meddling is Meddling.DELETE:
        yield from _left(seen, set())
        return
    status = seen.status
    attempt = case.retried + (case.meddling is Meddling.TAKE_UNIT)
    yield from _differs("phase", status.get("phase"), "TaskSetCompleted")
    yield from _differs("state", status.get("state"), case.state)
    yield from _differs("totalRetriedCount", status.get("totalRetriedCount", 0), case.retried)
    yield from _differs("attempt", status.get("attempt", 0), attempt)
    told = [record["attempt"] for record in status.get("history", ())]
    yield from _differs("history", told, list(range(attempt + 1))[-HISTORY:])
    replicas = dict(_replicas(status))
    yield from _differs("the replicas", sorted(replicas), sorted(case.replicas))
    for replica, found in replicas.items():
        if replica in case.replicas:
            yield from _replica(case, seen, attempt, replica, found, robberies if replica == ROBBED else 0)
    yield from _roles(status, replicas)
    yield from _names(case, seen)
    yield from _left(seen, _kept(case, seen, attempt))
    for pod in seen.pods.values():
        if pod.made_at > seen.finished_at:
            yield f"{pod.name} was made after the end"


def wrong_with_list(case: Case, lists: list[Json]) -> Iterator[str]:
    """What stands beside the status of a large TaskSet: a line for every replica."""
    lines = [json.loads(line) for item in lists for text in item["data"].values() for line in text.splitlines()]
    told = {line["name"]: (line.get("outcome"), line.get("totalRetriedCount", 0)) for line in lines}
    right = {f"{role}-{index}": (end.outcome, end.retried) for (role, index), end in case.replicas.items()}
    if told != right:
        other = [name for name in told.keys() | right.keys() if told.get(name) != right.get(name)]
        yield f"the replica list is wrong on {len(other)} replicas: {other[0]} is {told.get(other[0])}"


def _differs(what: str, found: object, right: object) -> Iterator[str]:
    if found != right:
        yield f"{what} is {found!r}, must be {right!r}"


def _replicas(status: Json) -> Iterator[tuple[Replica, Json]]:
    """Every replica; of a large TaskSet as its ledger tells."""
    for role in status.get("roleStatus", ()):
        listed = {each["index"]: each for each in role.get("replicaStatus", ())}
        index = 0
        for run in filter(None, role.get("ledger", "").split(";")):
            match = _RUN.fullmatch(run)
            if match is None:
                raise ValueError(f"the ledger of a finished role holds {run!r}")
            for _ in range(int(match[1])):
                facts = {
                    "outcome": _OUTCOMES[match[5]],
                    "stopped": match[5] == "X",
                    "phase": "TaskRoleReplicaCompleted",
                }
                counts = {"totalRetriedCount": int(match[3] or 0), "lostCount": int(match[4] or 0)}
                yield (role["name"], index), {**facts, **counts, **listed.pop(index, {})}
                index += 1
        for each in listed.values():
            yield (role["name"], each["index"]), each


def _replica(case: Case, seen: Seen, attempt: int, replica: Replica, found: Json, robberies: int) -> Iterator[str]:
    right = case.replicas[replica]
    name = "{}-{}".format(*replica)
    outcome, lost = found.get("outcome", ""), found.get("lostCount", 0)
    yield from _differs(f"{name}: outcome", outcome, right.outcome)
    yield from _differs(f"{name}: totalRetriedCount", found.get("totalRetriedCount", 0), right.retried)
    yield from _differs(f"{name}: stopped", found.get("stopped", False), outcome == "Stopped")
    yield from _differs(f"{name}: phase", found.get("phase"), "TaskRoleReplicaCompleted")
    if case.meddling is Meddling.SNATCH and robberies:
        if not 1 <= lost <= robberies:
            yield f"{name}: lostCount is {lost}, but {robberies} of its pods were deleted"
    else:
        yield from _differs(f"{name}: lostCount", lost, robberies)
    if outcome == "Stopped":
        return
    pods = seen.attempts(attempt, replica)
    failed = [pod for pod in pods if pod.phase == "Failed" and pod.ended_by_itself]
    yield from _differs(f"{name}: pods that failed", len(failed), _failures(right))
    if case.meddling not in (Meddling.SUSPEND, Meddling.SNATCH):
        yield from _differs(f"{name}: pods", len(pods), 1 + right.retried + right.free + lost)


def _failures(right: Ending) -> int:
    return right.retried + right.free + (right.outcome == "Failed")


def _roles(status: Json, replicas: dict[Replica, Json]) -> Iterator[str]:
    """The sums agree with what they are sums of, and nothing is left in a phase that goes on."""
    for role in status.get("roleStatus", ()):
        name = role["name"]
        yield from _differs(f"role {name}: phase", role.get("phase"), "TaskRoleCompleted")
        outcomes = collections.Counter(each.get("outcome") for (of, _), each in replicas.items() if of == name)
        for key in ("succeeded", "failed", "stopped", "active"):
            yield from _differs(f"role {name}: {key}", role.get(key, 0), outcomes[key.title()])
    ends = [each["finishAt"] for each in replicas.values() if "finishAt" in each]
    if ends and max(ends) > status.get("finishAt", ""):
        yield f"finishAt is {status.get('finishAt')}, a replica's {max(ends)}"


def _names(case: Case, seen: Seen) -> Iterator[str]:
    """Attempts are numbered from 0 without a gap, and no number is used twice.

    But a pod that was deleted before anybody wrote down that it was there leaves no trace: its name may come again. So
    may that of an index which left when `replicas` was lowered.
    """
    numbers = collections.defaultdict(list)
    for pod in seen.pods.values():
        numbers[pod.taskset_attempt, pod.replica].append(pod.attempt)
    for (attempt, replica), used in numbers.items():
        excused = (case.meddling is Meddling.SNATCH and replica == ROBBED) or (
            case.meddling is Meddling.RESCALE and replica[1] in RESCALED
        )
        if used != list(range(len(used))) and not excused:
            yield f"attempts of {replica[0]}-{replica[1]} in attempt {attempt} are numbered {used}"


def _kept(case: Case, seen: Seen, attempt: int) -> set[str]:
    """Names of the pods that stay after the end."""
    wanted = {"None": (), "Failed": ("Failed",), "All": ("Succeeded", "Failed")}[case.retention]
    last = {
        replica: seen.attempts(attempt, replica)[-1:] for replica, end in case.replicas.items() if end.outcome in wanted
    }
    return {pod.name for pods in last.values() for pod in pods}


def _left(seen: Seen, right: set[str]) -> Iterator[str]:
    yield from _differs("pods that stayed", sorted(p.name for p in seen.pods.values() if not p.is_gone), sorted(right))
