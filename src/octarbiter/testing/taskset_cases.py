"""Which TaskSets must be refused, which accepted, and by whom for what?

Where a rule relates roles, the API server can only name the field above.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from octarbiter.api import taskset
from octarbiter.api.meta import Json
from octarbiter.testing.cases import Bad, Change, bad

Edit = Callable[[Json], None]


def role(name: str, **fields: Any) -> Json:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 0"]}
    return {"name": name, "template": {"spec": {"containers": [container]}}, **fields}


def job(*roles: Json, name: str = "job", **fields: Any) -> Json:
    return {
        "apiVersion": taskset.API_VERSION,
        "kind": taskset.KIND,
        "metadata": {"name": name},
        "spec": {"roles": list(roles) or [role("ps"), role("worker", replicas=3)], **fields},
    }


def _edited(obj: Json, edit: Edit) -> Json:
    result = copy.deepcopy(obj)
    edit(result)
    return result


def _worker(**fields: Any) -> Json:
    return job(role("ps"), role("worker", **{"replicas": 3, **fields}))


def _pod(**fields: Any) -> Json:
    return job({"name": "ps", "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}], **fields}}})


def _event(event: str, action: str) -> Json:
    return {"event": event, "action": action}


def _rule(**fields: Any) -> Json:
    return _worker(failurePolicy={"rules": [fields]})


_ROLE = "spec.roles[1]"
_RULE = f"{_ROLE}.failurePolicy.rules[0]"

BAD: list[Bad] = [
    bad("no roles", {**job(), "spec": {"roles": []}}, "spec.roles"),
    bad("roles absent", {**job(), "spec": {}}, "spec.roles"),
    bad("a role given twice", job(role("ps"), role("ps")), "spec.roles[1]"),
    bad("a role name with upper case", job(role("Worker")), "spec.roles[0].name"),
    bad("a role name with a dot", job(role("a.b")), "spec.roles[0].name"),
    bad("a role name too long for a host name", job(role("a" * 62)), "spec.roles[0].name"),
    bad("a role name too long with the largest index", job(role("a" * 60, replicas=101)), "spec.roles[0].name"),
    bad("a role without a name", job({"template": role("x")["template"]}), "spec.roles[0].name"),
    bad("a role without a template", job({"name": "ps"}), "spec.roles[0].template"),
    bad("a name of 62 characters", job(name="a" * 62), "metadata.name"),
    bad("a name with upper case", job(name="Job"), "metadata.name"),
    bad("a name with a dot", job(name="a.b"), "metadata.name"),
    bad("0 replicas", job(role("ps", replicas=0)), "spec.roles[0].replicas"),
    bad("10,001 replicas", job(role("ps", replicas=10_001)), "spec.roles[0].replicas"),
    bad("replicas as text", job(role("ps", replicas="3")), "spec.roles[0].replicas"),
    bad("replicas with a fraction", job(role("ps", replicas=2.5)), "spec.roles[0].replicas"),
    bad(
        "minSucceeded above replicas",
        _worker(completionPolicy={"minSucceeded": 4}),
        f"{_ROLE}.completionPolicy.minSucceeded",
    ),
    bad("minSucceeded 0", _worker(completionPolicy={"minSucceeded": 0}), f"{_ROLE}.completionPolicy.minSucceeded"),
    bad("maxFailed 0", _worker(completionPolicy={"maxFailed": 0}), f"{_ROLE}.completionPolicy.maxFailed"),
    bad("maxFailed -2", _worker(completionPolicy={"maxFailed": -2}), f"{_ROLE}.completionPolicy.maxFailed"),
    bad("maxFailed above replicas", _worker(completionPolicy={"maxFailed": 4}), f"{_ROLE}.completionPolicy.maxFailed"),
    bad("a negative delay", job(retryPolicy={"delay": -1}), "spec.retryPolicy.delay"),
    bad("a negative retry count", _worker(retryPolicy={"maxRetryCount": -1}), f"{_ROLE}.retryPolicy.maxRetryCount"),
    bad("a retry count beyond 32 bits", job(retryPolicy={"maxRetryCount": 2**31}), "spec.retryPolicy.maxRetryCount"),
    bad("retry as a word", job(retryPolicy={"retry": "always"}), "spec.retryPolicy.retry"),
    bad(
        "an unknown event",
        _worker(eventPolicy=[_event("RoleFaild", "TaskSetFailed")]),
        f"{_ROLE}.eventPolicy[0].event",
    ),
    bad("an unknown action", _worker(eventPolicy=[_event("RoleFailed", "Explode")]), f"{_ROLE}.eventPolicy[0].action"),
    bad(
        "an event declared twice",
        _worker(eventPolicy=[_event("RoleFailed", "NoAction"), _event("RoleFailed", "TaskSetFailed")]),
        f"{_ROLE}.eventPolicy[1]",
    ),
    bad("an event without an action", _worker(eventPolicy=[{"event": "RoleFailed"}]), f"{_ROLE}.eventPolicy[0].action"),
    bad("a role that depends on itself", _worker(dependsOn=["worker"]), f"{_ROLE}.dependsOn"),
    bad("a role that depends on nobody known", _worker(dependsOn=["pss"]), f"{_ROLE}.dependsOn", server=["spec.roles"]),
    bad(
        "two roles that wait for each other",
        job(role("a", dependsOn=["b"]), role("b", dependsOn=["a"])),
        "spec.roles[0].dependsOn",
        server=["spec.roles"],
    ),
    bad(
        "a circle behind other roles",
        job(
            role("x", dependsOn=["a"]),
            role("a", dependsOn=["b"]),
            role("b", dependsOn=["c"]),
            role("c", dependsOn=["a"]),
        ),
        "spec.roles[1].dependsOn",
        server=["spec.roles"],
    ),
    bad("a failure rule with an unknown action", _rule(action="Retry", exitCodes=[1]), f"{_RULE}.action"),
    bad("a failure rule with both criteria", _rule(action="Fail", exitCodes=[1], podReasons=["Evicted"]), _RULE),
    bad("a failure rule without criteria", _rule(action="Fail"), _RULE),
    bad("a failure rule for no exit code", _rule(action="Fail", exitCodes=[]), f"{_RULE}.exitCodes"),
    bad("a failure rule for no reason", _rule(action="Fail", podReasons=[]), f"{_RULE}.podReasons"),
    bad("a failure rule for exit code 0", _rule(action="Fail", exitCodes=[0]), f"{_RULE}.exitCodes[0]"),
    bad("a failure rule for exit code 256", _rule(action="Fail", exitCodes=[1, 256]), f"{_RULE}.exitCodes[1]"),
    bad("a negative deletion timeout", _worker(deletionTimeoutSeconds=-1), f"{_ROLE}.deletionTimeoutSeconds"),
    bad("restartPolicy Always", _pod(restartPolicy="Always"), "spec.roles[0].template.spec.restartPolicy"),
    bad("no containers", _pod(containers=[]), "spec.roles[0].template.spec.containers"),
    bad(
        "a pod without containers",
        job({"name": "ps", "template": {"spec": {}}}),
        "spec.roles[0].template.spec.containers",
    ),
    bad("a template without a pod", job({"name": "ps", "template": {}}), "spec.roles[0].template.spec"),
    bad(
        "two containers of one name",
        _pod(containers=[{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]),
        "spec.roles[0].template.spec.containers[1]",
    ),
    bad(
        "a container without a name",
        _pod(containers=[{"image": "x"}]),
        "spec.roles[0].template.spec.containers[0].name",
    ),
    bad("minAvailable 0", job(minAvailable=0), "spec.minAvailable"),
    bad("minAvailable above the sum of replicas", job(minAvailable=5), "spec.minAvailable"),
    bad("an unknown pod retention", job(podRetention="Some"), "spec.podRetention"),
    bad("a deadline of 0 seconds", job(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds"),
    bad("a negative time to live", job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished"),
    bad("a suspend that is no boolean", job(suspend="yes"), "spec.suspend"),
    bad("an unknown field of the spec", job(retryPolcy={}), "spec.retryPolcy", is_strict=True),
    bad("an unknown field of a role", job(role("ps", replica=2)), "spec.roles[0].replica", is_strict=True),
    bad(
        "an unknown field deep inside",
        _worker(completionPolicy={"maxFail": 1}),
        f"{_ROLE}.completionPolicy.maxFail",
        is_strict=True,
    ),
    bad(
        "seven mistakes at once",
        job(
            role("ps", replicas=0, completionPolicy={"maxFailed": 0}),
            role("ps", dependsOn=["ps"], eventPolicy=[_event("RoleFailed", "Explode")]),
            name="a" * 62,
            podRetention="Some",
        ),
        "metadata.name",
        "spec.podRetention",
        "spec.roles[0].completionPolicy.maxFailed",
        "spec.roles[0].replicas",
        "spec.roles[1]",
        "spec.roles[1].dependsOn",
        "spec.roles[1].eventPolicy[0].action",
    ),
]

_FULL = job(
    role(
        "ps",
        deletionTimeoutSeconds=30,
        failurePolicy={
            "rules": [{"action": "Fail", "exitCodes": [2]}, {"action": "Ignore", "podReasons": ["Evicted"]}]
        },
    ),
    role(
        "worker",
        replicas=3,
        completionPolicy={"minSucceeded": 2, "maxFailed": 2},
        retryPolicy={"retry": True, "maxRetryCount": 2, "delay": 10},
        eventPolicy=[_event("RoleSucceeded", "TaskSetSucceeded"), _event("RoleFailed", "TaskSetFailed")],
        dependsOn=["ps"],
    ),
    retryPolicy={"retry": True, "maxRetryCount": 1, "delay": 5},
    suspend=False,
    queue="research",
    priorityClassName="high",
    minAvailable=4,
    activeDeadlineSeconds=3600,
    ttlSecondsAfterFinished=600,
    podRetention="Failed",
)

GOOD: dict[str, Json] = {
    "one role with nothing but a container": job(role("main")),
    "every field used": _FULL,
    "a name that begins with a digit": job(name="2024-run"),
    "a name of 61 characters": job(name="a" * 61),
    "a role name as long as a host name allows": job(role("a" * 61, replicas=10)),
    "10,000 replicas": job(role("worker", replicas=10_000)),
    "maxFailed -1": _worker(completionPolicy={"maxFailed": -1}),
    "an empty eventPolicy": _worker(eventPolicy=[]),
    "a null where there is a default": _worker(eventPolicy=None, retryPolicy=None),
    "64 roles in a row": job(
        role("r0"), *(role(f"r{i}", dependsOn=[f"r{i - 1}"]) for i in range(1, taskset.MAX_ROLES))
    ),
    # More than the server checks for circles; it must not run out of its budget over them.
    "64 roles that each depend on all before": job(
        *(role(f"r{i}", dependsOn=[f"r{k}" for k in range(i)]) for i in range(taskset.MAX_ROLES))
    ),
    # The costliest that the server does check: a long chain whose roles name the first ones first.
    "256 dependencies": job(
        role("r0"), *(role(f"r{i}", dependsOn=["r0"] * 3 + [f"r{i - 1}"]) for i in range(1, taskset.MAX_ROLES))
    ),
    "restartPolicy OnFailure": _pod(restartPolicy="OnFailure"),
    "fields of pods that we do not know": _pod(hostPID=True, futureField={"x": [1, None, {"y": 2.5}]}),
}


def _change(sentence: str, edit: Edit, *fields: str, server: Iterable[str] = (), status: Json | None = None) -> Change:
    return Change(sentence, _FULL, _edited(_FULL, edit), fields, tuple(server) or fields, status)


def _set(path: str, value: Any) -> Edit:
    """`path` as in `roles.1.replicas`, below spec; UNSET takes the field away."""

    def edit(obj: Json) -> None:
        target: Any = obj["spec"]
        *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
        for parent in parents:
            target = target[parent]
        if value is msgspec.UNSET:
            del target[last]
        else:
            target[last] = value

    return edit


def _reorder(obj: Json) -> None:
    obj["spec"]["roles"].reverse()


_FINISHED = {
    "roleStatus": [{"name": "ps", "phase": "TaskRoleCompleted"}, {"name": "worker", "phase": "TaskRoleRunning"}]
}
_DECIDED = {"roleStatus": [{"name": "worker", "phase": "TaskRoleCleaningPending"}]}
_AWAY = msgspec.UNSET

CHANGES: list[Change] = [
    _change("suspend", _set("suspend", True)),
    _change("suspend taken away", _set("suspend", _AWAY)),
    _change("the time to live", _set("ttlSecondsAfterFinished", 5)),
    _change("the time to live taken away", _set("ttlSecondsAfterFinished", _AWAY)),
    _change("the priority class", _set("priorityClassName", "low")),
    _change("replicas raised", _set("roles.1.replicas", 5)),
    _change("replicas raised beside a finished role", _set("roles.1.replicas", 5), status=_FINISHED),
    _change("replicas lowered too far for the gang", _set("roles.1.replicas", 2), "spec.minAvailable"),
    _change(
        "replicas lowered below stated numbers",
        _set("roles.1.replicas", 1),
        "spec.minAvailable",
        "spec.roles[1].completionPolicy.maxFailed",
        "spec.roles[1].completionPolicy.minSucceeded",
    ),
    _change(
        "replicas of a finished role",
        _set("roles.0.replicas", 2),
        "spec.roles[0].replicas",
        server=["spec.roles"],
        status=_FINISHED,
    ),
    _change(
        "replicas of a role whose verdict is out",
        _set("roles.1.replicas", 4),
        "spec.roles[1].replicas",
        server=["spec.roles"],
        status=_DECIDED,
    ),
    _change("the queue", _set("queue", "other"), "spec.queue"),
    _change("the queue taken away", _set("queue", _AWAY), "spec.queue"),
    _change("minAvailable", _set("minAvailable", 2), "spec.minAvailable"),
    _change("the deadline", _set("activeDeadlineSeconds", 1), "spec.activeDeadlineSeconds"),
    _change("pod retention", _set("podRetention", "All"), "spec.podRetention"),
    _change("whether the TaskSet is retried", _set("retryPolicy.retry", False), "spec.retryPolicy.retry"),
    _change("the TaskSet's retry count", _set("retryPolicy.maxRetryCount", 9), "spec.retryPolicy.maxRetryCount"),
    _change("the TaskSet's delay", _set("retryPolicy.delay", 9), "spec.retryPolicy.delay"),
    _change("a role's delay", _set("roles.1.retryPolicy.delay", 9), f"{_ROLE}.retryPolicy.delay"),
    _change("minSucceeded", _set("roles.1.completionPolicy.minSucceeded", 1), f"{_ROLE}.completionPolicy.minSucceeded"),
    _change(
        "minSucceeded taken away",
        _set("roles.1.completionPolicy.minSucceeded", _AWAY),
        f"{_ROLE}.completionPolicy.minSucceeded",
    ),
    _change("maxFailed", _set("roles.1.completionPolicy.maxFailed", 1), f"{_ROLE}.completionPolicy.maxFailed"),
    _change("an action", _set("roles.1.eventPolicy.0.action", "NoAction"), f"{_ROLE}.eventPolicy"),
    _change(
        "the order of events", lambda obj: obj["spec"]["roles"][1]["eventPolicy"].reverse(), f"{_ROLE}.eventPolicy"
    ),
    _change("dependsOn", _set("roles.1.dependsOn", []), f"{_ROLE}.dependsOn"),
    _change("dependsOn taken away", _set("roles.1.dependsOn", _AWAY), f"{_ROLE}.dependsOn"),
    _change("a failure rule", _set("roles.0.failurePolicy.rules.0.exitCodes", [3]), "spec.roles[0].failurePolicy"),
    _change("the deletion timeout", _set("roles.0.deletionTimeoutSeconds", 1), "spec.roles[0].deletionTimeoutSeconds"),
    _change("an image", _set("roles.1.template.spec.containers.0.image", "other"), f"{_ROLE}.template"),
    _change("a field of the pod", _set("roles.1.template.spec.nodeSelector", {"a": "b"}), f"{_ROLE}.template"),
    _change("a label of the pods", _set("roles.0.template.metadata", {"labels": {"a": "b"}}), "spec.roles[0].template"),
    _change(
        "one more container",
        lambda obj: obj["spec"]["roles"][0]["template"]["spec"]["containers"].append({"name": "second", "image": "x"}),
        "spec.roles[0].template",
    ),
    _change(
        "a role's name", _set("roles.0.name", "server"), "spec.roles", "spec.roles[1].dependsOn", server=["spec.roles"]
    ),
    _change("one more role", lambda obj: obj["spec"]["roles"].append(role("third")), "spec.roles"),
    _change("the order of roles", _reorder, "spec.roles"),
]
