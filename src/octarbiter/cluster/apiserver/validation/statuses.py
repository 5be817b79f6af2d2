"""May the status of an object be this? All problems at once, in the words of the real server.

A status is written by controllers; what is checked is what others rely on: counts that only grow, ends that stay ends.
Rules about a part of a status apply when that part changes, so nobody is blamed for what somebody else left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import job_statuses, names, rules
from octarbiter.cluster.apiserver.validation.problems import Problem
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")
_RESTARTS_ALL: Final = "RestartAllContainers"
_NO_MORE_THAN: Final = "cannot be greater than status.replicas"
_DEPLOYMENT: Final = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_REPLICA_SET: Final = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)
_STATEFUL_SET: Final = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
_DAEMON_SET: Final = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def namespace(obj: Json, old: Json) -> Problems:
    is_going = "deletionTimestamp" in rules.part(obj, "metadata")
    phase, expected = rules.part(obj, "status").get("phase") or "", "Terminating" if is_going else "Active"
    if phase != expected:
        rule = f"may only be '{expected}' if `deletionTimestamp` is {'not ' if is_going else ''}empty"
        yield wording.invalid("status.Phase", phase, rule)


def pod(obj: Json, old: Json) -> Problems:
    status, before, spec = rules.part(obj, "status"), rules.part(old, "status"), rules.part(old, "spec")
    for where, condition in rules.each(status.get("conditions"), "status.conditions"):
        if condition.get("type") not in _SYSTEM_CONDITIONS:
            yield from rules.well_formed(str(condition.get("type") or ""), f"{where}.Type", names.qualified)
    yield from _nomination(status.get("nominatedNodeName"), before.get("nominatedNodeName"), spec)
    yield from rules.unchanged(status.get("qosClass"), before.get("qosClass"), "status.qosClass")
    yield from _transitions(status, before, spec)
    yield from _addresses(status.get("podIPs"), before.get("podIPs"), "status.podIPs")
    hosts = status.get("hostIPs") or []
    if hosts and hosts[0].get("ip") != status.get("hostIP"):
        yield wording.invalid("status.hostIPs[0].ip", hosts[0].get("ip"), "must be equal to `hostIP`")
    yield from _addresses(hosts, before.get("hostIPs") or [], "status.hostIPs")


def _nomination(new: object, old: object, spec: Json) -> Problems:
    if not new or new == old:
        return
    path = "status.nominatedNodeName"
    yield from rules.well_formed(str(new), path, names.subdomain)
    if spec.get("nodeName"):
        yield wording.forbidden(path, "may not be set on pods that are already bound to a node")


def _transitions(status: Json, before: Json, spec: Json) -> Problems:
    """What has ended and is not to be started again does not run again."""
    every = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    if any(rule.get("action") == _RESTARTS_ALL for each in every for rule in each.get("restartPolicyRules") or []):
        return
    for name, kind in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        states = {each.get("name"): rules.part(each, "state") for _, each in rules.each(status.get(name), "")}
        for where, each in rules.each(before.get(name), f"status.{name}"):
            ended, state = rules.part(each, "state").get("terminated"), states.get(each.get("name"))
            if ended is None or state is None or state.get("terminated") is not None:
                continue
            container = next((one for one in spec.get(kind) or [] if one.get("name") == each.get("name")), None)
            if container is None or not _starts_again(container, spec, int(ended.get("exitCode") or 0)):
                yield wording.forbidden(f"{where}.state", "may not be transitioned to non-terminated state")


def _starts_again(container: Json, spec: Json, exit_code: int) -> bool:
    own = container.get("restartPolicy")
    for rule in container.get("restartPolicyRules") or [] if own else []:
        codes = rules.part(rule, "exitCodes")
        if (exit_code in (codes.get("values") or [])) == (codes.get("operator") == "In"):
            return bool(rule.get("action") == "Restart")
    policy = own or spec.get("restartPolicy") or "Always"
    return bool(policy == "Always" or (policy == "OnFailure" and exit_code != 0))


def _addresses(value: object, before: object, path: str) -> Problems:
    """One of each family; what was there stays, however wrong it is."""
    if value == before:
        return
    known = {each.get("ip") for _, each in rules.each(before, "")}
    found = [(where, str(each.get("ip") or "")) for where, each in rules.each(value, path)]
    for where, address in found:
        if address not in known:
            yield from rules.well_formed(address, where, names.ip_address)
    families = [":" in address for _, address in found]
    if len(families) > 1 and sorted(families) != [False, True]:
        shown = wording.in_order([{"IP": address} for _, address in found])
        yield wording.invalid(path, shown, "may specify no more than one IP for each IP family")


def _counted(
    fields: tuple[str, ...], no_more_than_all: tuple[str, ...], ready: str = "readyReplicas"
) -> Callable[[Json, Json], Iterator[Problem]]:
    """Counts of replicas: not negative, and no part larger than the whole. `ready`: as it is called in refusals."""

    def problems(obj: Json, old: Json) -> Problems:
        status = rules.part(obj, "status")
        for name in fields:
            yield from rules.at_least(status.get(name), f"status.{name}")
        everybody = _number(status, "replicas")
        for name in no_more_than_all:
            if (some := _number(status, name)) > everybody:
                yield wording.invalid(f"status.{name}", some, _NO_MORE_THAN)
        if no_more_than_all and (some := _number(status, "availableReplicas")) > _number(status, "readyReplicas"):
            yield wording.invalid("status.availableReplicas", some, f"cannot be greater than {ready}")

    return problems


def _number(status: Json, name: str) -> int:
    found: Any = status.get(name)
    return found if isinstance(found, int) else 0


_PARTS: Final = ("readyReplicas", "availableReplicas")
_RULES: Final[dict[tuple[str, str], Callable[[Json, Json], Iterator[Problem]]]] = {
    ("", "Namespace"): namespace,
    ("", "Pod"): pod,
    ("", "ReplicationController"): _counted(_REPLICA_SET, ("fullyLabeledReplicas", *_PARTS)),
    ("apps", "DaemonSet"): _counted(_DAEMON_SET, ()),
    ("apps", "Deployment"): _counted(_DEPLOYMENT, ("updatedReplicas", *_PARTS)),
    ("apps", "ReplicaSet"): _counted(_REPLICA_SET, ("fullyLabeledReplicas", *_PARTS)),
    ("apps", "StatefulSet"): _counted(
        _STATEFUL_SET,
        ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
        "status.readyReplicas",
    ),
    ("batch", "Job"): job_statuses.job,
}


def validate(group: str, kind: str, obj: Json, old: Json) -> list[Problem]:
    rules_of_kind = _RULES.get((group, kind))
    return list(rules_of_kind(obj, old)) if rules_of_kind is not None else []
