"""Which rules relate several fields, in the words of the API server (CEL)?

Limits, words, forms and immutability of single fields are `facts`; here is what needs an expression. `taskset_checks`
and `arbitrator_checks` state the same rules in Python, with better messages; tests hold the two together case by case.
Keys are names of types or of fields, as in `facts`.

The server estimates the cost of an expression before it accepts it and counts the cost while it runs, so: `x in list`
rather than `list.exists(...)`, and `'%d'.format([n])` rather than `string(n)`, which it takes for megabytes.
"""

from __future__ import annotations

import msgspec

from octarbiter.api import queue, taskset


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    cel: str
    message: str
    """Said when `explain` is empty or cannot be computed."""
    explain: str = ""
    """CEL as well: the message with names and numbers."""
    field: str = ""
    """Which field below is to blame, e.g. `.completionPolicy.maxFailed`."""
    forbidden: bool = False
    """A change that is not allowed, rather than a value that is wrong."""


FINISHED_PHASES = ("TaskRoleCleaningPending", "TaskRoleCompleted")
"""Of a role: the verdict is out, and there is no way back."""

_FINISHED = (
    "oldSelf.status.roleStatus.exists(s, s.name == r.name && has(s.phase) && s.phase in "
    f"[{', '.join(repr(phase) for phase in FINISHED_PHASES)}])"
)
_RESIZED = "oldSelf.spec.roles.exists(o, o.name == r.name && o.replicas != r.replicas)"
# A list of one list binds a name, which CEL has no other way to do here.
_WITH_NAMES = "[self.roles.map(o, o.name)]"
_UNKNOWN = "has(r.dependsOn) && !r.dependsOn.all(d, d in names)"


def _no_circle(roles: int, dependencies: int) -> str:
    """CEL has no loops, so the loop is unrolled: each step keeps the roles that still wait for one that is left.

    A job with more than so many dependencies in all is let through, because on the most entangled of them the
    server would run out of its budget and refuse the job for that; a circle among those is the controller's to fail.
    Asked first whether there are dependencies at all: the server evaluates this with every write, also of the status.
    """
    keep = "left.filter(r, has(r.dependsOn) && r.dependsOn.exists(d, d != r.name && d in names))"
    step = f".map(left, [left.map(o, o.name)].map(names, {keep})[0])"
    count = "self.roles.map(r, has(r.dependsOn) ? r.dependsOn.size() : 0).sum()"
    none = "!self.roles.exists(r, has(r.dependsOn))"
    return f"{none} || {count} > {dependencies} || [self.roles]{step * roles}.all(left, left.size() == 0)"


RULES: dict[str, tuple[Rule, ...]] = {
    "TaskSet": (
        Rule(
            cel=f"self.metadata.name.size() <= {taskset.MAX_NAME}",
            message=f"must have at most {taskset.MAX_NAME} characters, because it is also a label and a Service name",
            field=".metadata.name",
        ),
        Rule(
            cel="!self.metadata.name.contains('.')",
            message="must not contain dots, because it is also a host name",
            field=".metadata.name",
        ),
        Rule(
            cel=(
                "!has(oldSelf.status) || !has(oldSelf.status.roleStatus) || "
                f"!self.spec.roles.exists(r, {_RESIZED} && {_FINISHED})"
            ),
            message="replicas of a role that has finished cannot change",
            explain=(
                "'replicas of a role that has finished cannot change: %s'"
                f".format([self.spec.roles.filter(r, {_RESIZED} && {_FINISHED}).map(r, r.name)])"
            ),
            field=".spec.roles",
            forbidden=True,
        ),
    ),
    "TaskSetSpec": (
        Rule(
            cel="!has(self.minAvailable) || self.minAvailable <= self.roles.map(r, r.replicas).sum()",
            message="must be at most the sum of all replicas",
            explain="'must be at most the sum of all replicas, %d'.format([self.roles.map(r, r.replicas).sum()])",
            field=".minAvailable",
        ),
        Rule(
            cel=f"{_WITH_NAMES}.all(names, !self.roles.exists(r, {_UNKNOWN}))",
            message="dependsOn names a role that does not exist",
            explain=(
                "'dependsOn names a role that does not exist, in %s'"
                f".format({_WITH_NAMES}.map(names, self.roles.filter(r, {_UNKNOWN}).map(r, r.name)))"
            ),
            field=".roles",
        ),
        Rule(
            cel=_no_circle(taskset.MAX_ROLES, dependencies=256),
            message="roles wait for each other: dependsOn must not form a circle",
            field=".roles",
        ),
        Rule(
            cel="self.roles.map(r, r.name) == oldSelf.roles.map(r, r.name)",
            message="roles cannot be added, removed, renamed or reordered",
            field=".roles",
            forbidden=True,
        ),
    ),
    "Role": (
        Rule(
            cel=f"self.name.size() + 1 + string(self.replicas - 1).size() <= {taskset.MAX_HOSTNAME}",
            message=f"the host name <name>-<index> must have at most {taskset.MAX_HOSTNAME} characters",
            field=".name",
        ),
        Rule(
            cel=(
                "self.replicas < 1 || !has(self.completionPolicy.minSucceeded) "
                "|| self.completionPolicy.minSucceeded <= self.replicas"
            ),
            message="must be at most replicas, or the role could never succeed",
            explain="'must be at most replicas, %d, or the role could never succeed'.format([self.replicas])",
            field=".completionPolicy.minSucceeded",
        ),
        Rule(
            cel="self.replicas < 1 || self.completionPolicy.maxFailed <= self.replicas",
            message="must be at most replicas; -1 means never by count",
            explain="'must be at most replicas, %d; -1 means never by count'.format([self.replicas])",
            field=".completionPolicy.maxFailed",
        ),
        Rule(
            cel="!has(self.dependsOn) || !(self.name in self.dependsOn)",
            message="a role cannot depend on itself",
            field=".dependsOn",
        ),
    ),
    "CompletionPolicy.maxFailed": (
        Rule(
            cel="self != 0",
            message="0 would fail the role before it starts; 1 means the first failure fails it, -1 never by count",
        ),
    ),
    "FailureRule": (
        Rule(
            cel="has(self.exitCodes) != has(self.podReasons)",
            message="needs exactly one of exitCodes and podReasons",
        ),
    ),
    "Queue": (
        Rule(
            cel=f"self.metadata.name.size() <= {queue.MAX_NAME}",
            message=f"must have at most {queue.MAX_NAME} characters, because it is also a label",
            field=".metadata.name",
        ),
        Rule(
            cel="!has(self.spec.parent) || self.spec.parent != self.metadata.name",
            message="a queue cannot be its own parent",
            field=".spec.parent",
        ),
    ),
    "Requirement": (
        Rule(
            cel="(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            message="In and NotIn need values, Exists and DoesNotExist must not have any",
            field=".values",
        ),
    ),
    "QueueJobSpec": (
        Rule(
            cel="!has(self.minResourceno) || self.resourceno < 1 || self.minResourceno <= self.resourceno",
            message="must be at most resourceno, or the job could never start",
            explain="'must be at most resourceno, %d, or the job could never start'.format([self.resourceno])",
            field=".minResourceno",
        ),
    ),
    "QueueJobSpec.resourceunit": (
        Rule(
            cel="!has(self.resources) || !(has(self.cpu) || has(self.memory))",
            message="the amounts stand either in resources or beside it, not both",
        ),
    ),
}
