"""What does a TaskSet wait for? One sentence from what its replicas say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle.observe import Refusal, short
from octarbiter.core.lifecycle.phases import ReplicaPhase

SENTENCES = 3
NAMES = 3


def sentence(
    roles: Iterable[api.RoleStatus], refusals: Mapping[tuple[str, int], Refusal], extra: Iterable[str] = ()
) -> str:
    parts = [*extra, *_refused(roles, refusals), *_grouped(roles, refusals)]
    if not parts and any(r.phase == ReplicaPhase.CREATION_REQUESTED for role in roles for r in role.replica_status):
        # Not their names: they change with every look, and the moment passes.
        return "pods are being made"
    shown = parts[:SENTENCES]
    if len(parts) > SENTENCES:
        shown.append(f"and {len(parts) - SENTENCES} more reasons")
    return "; ".join(shown)


def _refused(roles: Iterable[api.RoleStatus], refusals: Mapping[tuple[str, int], Refusal]) -> list[str]:
    """quota: 2 of 4 pods refused: exceeded quota ..."""
    said: dict[tuple[str, str], int] = {}
    total = 0
    for role in roles:
        total += len(role.replica_status)
        for replica in role.replica_status:
            refusal = refusals.get((role.name, replica.index))
            if refusal is not None and _has_no_pod(replica):
                key = (refusal.kind, short(_tail(refusal.message)))
                said[key] = said.get(key, 0) + 1
    return [f"{kind}: {count} of {total} pods refused: {message}" for (kind, message), count in said.items()]


def _has_no_pod(replica: api.ReplicaStatus) -> bool:
    return not replica.pod_uid and not replica.outcome


def _tail(message: str) -> str:
    """The server begins with the pod's own name (`pods "x" is forbidden: ...`); the rest is alike for all of them."""
    _, found, rest = message.partition(" is forbidden: ")
    return rest if found else message


def _grouped(roles: Iterable[api.RoleStatus], refusals: Mapping[tuple[str, int], Refusal]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for role in roles:
        for replica in role.replica_status:
            refused = (role.name, replica.index) in refusals and _has_no_pod(replica)
            if not refused and not replica.outcome and (told := _told(replica)):
                groups.setdefault(told, []).append(replica.name)
    return [f"{_listed(members)}: {message}" for message, members in groups.items()]


def _told(replica: api.ReplicaStatus) -> str:
    if replica.phase == ReplicaPhase.RETRY_PENDING and replica.retry_at is not None:
        # A large status does not keep the words.
        return f"{replica.phase_message or 'retry'}, at {replica.retry_at:%H:%M:%SZ}"
    return replica.phase_message


def _listed(members: list[str]) -> str:
    if len(members) <= NAMES:
        return ", ".join(members)
    return f"{', '.join(members[:NAMES])} and {len(members) - NAMES} more"
