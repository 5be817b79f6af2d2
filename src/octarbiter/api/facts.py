"""What is so of each field that its type does not say: limits, words, defaults, what may change later?

Keys are `<type>.<field as users write it>`, with `[]` for the items of a list and `{}` for the values of a map.
"""

from __future__ import annotations

from typing import Any

import msgspec

from octarbiter.api import queue, selectors, taskset

INT32_MAX = 2**31 - 1

# Bounds on strings and lists that the contract leaves open. The API server multiplies them to estimate what a CEL
# rule may cost and refuses a CRD without them; they are far above anything real. Exceeding one of them (unlike
# every other mistake) makes the server skip CEL, so no rule of the contract is expressed by these.
MAX_STRING = 253
MAX_CONTAINERS = 128
MAX_EVENTS = 16
MAX_RULES = 64


class Form(msgspec.Struct, frozen=True):
    pattern: str
    words: str
    """What must it be?"""


DNS_LABEL = Form(
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "lower-case letters, digits and '-', beginning and ending with a letter or digit",
)
DNS_NAME = Form(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    "lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
)
QUEUE_REFERENCE = Form(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$|^$",
    "the name of a queue in the same namespace, or namespace/name",
)
SOME_WORD = Form(r"\S", "a word")
RESOURCE_NAME = Form(
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    "the name of a resource, such as cpu, memory or nvidia.com/gpu",
)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    minimum: int | None = None
    maximum: int | None = None
    min_items: int = 0
    max_items: int | None = None
    max_length: int | None = None
    words: tuple[str, ...] = ()
    because: str = ""
    """Added to the message when a word or a number is refused."""
    key: str = ""
    """Of a list of objects: the field that tells them apart."""
    default: Any = msgspec.UNSET
    immutable: bool = False
    int64: bool = False
    form: Form | None = None
    """Of a string. Of an int-or-string it is a pattern of the schema rather than a rule, see QUANTITY."""
    is_quantity: bool = False
    min_properties: int = 0
    max_properties: int | None = None
    names: Form | None = None
    """Of a map: what its names must be. Known to us only, because a rule about names would cost the server too much."""


NONE = Facts()

MAX_RESOURCES = 64
MAX_DIGITS = 19
"""As many as the largest quantity has."""
# Not CEL, because servers before 1.34 take every int-or-string for megabytes and would refuse rules about so many.
# Larger ones than the server knows it would cut off in silence; with the suffix E a single digit is enough.
QUANTITY = Facts(
    minimum=0,
    max_length=64,
    is_quantity=True,
    form=Form(
        rf"^\+?(([0-9]{{1,{MAX_DIGITS}}}(\.[0-9]*)?|\.[0-9]+)([numkMGTP]|[KMGTP]i|[eE][+-]?[0-9]{{1,2}})?"
        r"|[0-9](\.[0-9]*)?Ei?)$",
        f"a quantity that is not negative, with at most {MAX_DIGITS} digits before the point",
    ),
)
FACTOR = Facts(
    minimum=1,
    maximum=queue.MAX_FACTOR,
    max_length=16,
    form=Form(
        rf"^([1-9][0-9]?(\.[0-9]{{1,3}})?|{queue.MAX_FACTOR}(\.0{{1,3}})?)$",
        f'a number from 1 to {queue.MAX_FACTOR} with at most three decimals, such as "1.5"',
    ),
)
RESOURCES = Facts(max_properties=MAX_RESOURCES, names=RESOURCE_NAME)

DEFAULT_EVENT_POLICY = [
    {"event": taskset.RoleEvent.ROLE_FAILED.value, "action": taskset.Action.TASKSET_FAILED.value},
    {"event": taskset.RoleEvent.ROLE_SUCCEEDED.value, "action": taskset.Action.NO_ACTION.value},
]


def _words(of: type[Any]) -> tuple[str, ...]:
    return tuple(word.value for word in of)


FACTS: dict[str, Facts] = {
    "TaskSetSpec.roles": Facts(min_items=1, max_items=taskset.MAX_ROLES, key="name"),
    "TaskSetSpec.retryPolicy": Facts(default={}),
    "TaskSetSpec.queue": Facts(max_length=MAX_STRING, immutable=True),
    "TaskSetSpec.priorityClassName": Facts(max_length=MAX_STRING),
    "TaskSetSpec.minAvailable": Facts(minimum=1, maximum=INT32_MAX, immutable=True),
    "TaskSetSpec.activeDeadlineSeconds": Facts(minimum=1, maximum=INT32_MAX, immutable=True),
    "TaskSetSpec.ttlSecondsAfterFinished": Facts(minimum=0, maximum=INT32_MAX),
    "TaskSetSpec.podRetention": Facts(max_length=MAX_STRING, words=_words(taskset.PodRetention), immutable=True),
    "RetryPolicy.retry": Facts(default=False, immutable=True),
    "RetryPolicy.maxRetryCount": Facts(minimum=0, maximum=INT32_MAX, default=0, immutable=True),
    "RetryPolicy.delay": Facts(minimum=0, maximum=INT32_MAX, default=0, immutable=True),
    "Role.name": Facts(max_length=MAX_STRING, form=DNS_LABEL),
    "Role.replicas": Facts(minimum=1, maximum=taskset.MAX_REPLICAS, default=1),
    "Role.completionPolicy": Facts(default={}),
    "Role.retryPolicy": Facts(default={}),
    "Role.eventPolicy": Facts(max_items=MAX_EVENTS, key="event", default=DEFAULT_EVENT_POLICY, immutable=True),
    "Role.template": Facts(immutable=True),
    "Role.dependsOn": Facts(max_items=taskset.MAX_ROLES, immutable=True),
    "Role.dependsOn[]": Facts(max_length=MAX_STRING),
    "Role.failurePolicy": Facts(immutable=True),
    "Role.deletionTimeoutSeconds": Facts(minimum=0, maximum=INT32_MAX, immutable=True),
    "CompletionPolicy.minSucceeded": Facts(minimum=1, maximum=INT32_MAX, immutable=True),
    "CompletionPolicy.maxFailed": Facts(
        minimum=-1, maximum=INT32_MAX, because="-1 means never by count", default=1, immutable=True
    ),
    "EventPolicy.event": Facts(max_length=MAX_STRING, words=_words(taskset.RoleEvent)),
    "EventPolicy.action": Facts(max_length=MAX_STRING, words=_words(taskset.Action)),
    "FailurePolicy.rules": Facts(max_items=MAX_RULES),
    "FailureRule.action": Facts(max_length=MAX_STRING, words=_words(taskset.FailureAction)),
    "FailureRule.exitCodes": Facts(min_items=1, max_items=255),
    "FailureRule.exitCodes[]": Facts(minimum=1, maximum=255),
    "FailureRule.podReasons": Facts(min_items=1, max_items=MAX_RULES),
    "FailureRule.podReasons[]": Facts(max_length=MAX_STRING),
    "template.spec.containers": Facts(min_items=1, max_items=MAX_CONTAINERS, key="name"),
    "template.spec.containers.name": Facts(max_length=MAX_STRING),
    "template.spec.restartPolicy": Facts(
        max_length=MAX_STRING,
        words=("Never", "OnFailure"),
        because="with Always a pod would never end; retryPolicy says what happens after a failure",
    ),
    "TaskSetStatus.observedGeneration": Facts(int64=True),
    "TaskSetStatus.suspendedSeconds": Facts(int64=True),
    "TaskSetStatus.conditions": Facts(key="type"),
    "TaskSetStatus.roleStatus": Facts(max_items=taskset.MAX_ROLES),
    "RoleStatus.name": Facts(max_length=MAX_STRING),
    "RoleStatus.phase": Facts(max_length=MAX_STRING),
    "Condition.observedGeneration": Facts(int64=True),
    "Queue.spec": Facts(default={}),
    "QueueSpec.weight": Facts(minimum=1, maximum=INT32_MAX, default=1),
    "QueueSpec.parent": Facts(max_length=2 * MAX_STRING, form=QUEUE_REFERENCE),
    "QueueSpec.priority": Facts(minimum=-INT32_MAX, maximum=INT32_MAX, default=0),
    "QueueSpec.reclaimable": Facts(default=True),
    "QueueSpec.policy": Facts(max_length=MAX_STRING),
    "QueueSpec.oversubscription": RESOURCES,
    "QueueSpec.oversubscription{}": FACTOR,
    "ResourceList.resources": RESOURCES,
    "ResourceList.resources{}": QUANTITY,
    "LabelSelector.matchLabels": Facts(max_properties=MAX_RULES),
    "LabelSelector.matchLabels{}": Facts(max_length=MAX_STRING),
    "LabelSelector.matchExpressions": Facts(max_items=MAX_RULES),
    "Requirement.key": Facts(max_length=MAX_STRING),
    "Requirement.operator": Facts(max_length=MAX_STRING, words=selectors.OPERATORS),
    "Requirement.values": Facts(max_items=MAX_RULES),
    "Requirement.values[]": Facts(max_length=MAX_STRING),
    "QueueStatus.observedGeneration": Facts(int64=True),
    "QueueStatus.conditions": Facts(key="type"),
    "QueueJobSpec.queue": Facts(max_length=MAX_STRING, form=DNS_NAME, immutable=True),
    "QueueJobSpec.resourceunit": Facts(min_properties=1, max_properties=MAX_RESOURCES),
    "resourceunit.resources": Facts(min_properties=1, max_properties=MAX_RESOURCES, names=RESOURCE_NAME),
    "resourceunit.resources{}": QUANTITY,
    "resourceunit.cpu": QUANTITY,
    "resourceunit.memory": QUANTITY,
    "QueueJobSpec.resourceno": Facts(minimum=1, maximum=INT32_MAX, default=1),
    "QueueJobSpec.minResourceno": Facts(minimum=1, maximum=INT32_MAX),
    "QueueJobSpec.priority": Facts(minimum=-INT32_MAX, maximum=INT32_MAX, default=0),
    "QueueJobSpec.workloadRef": Facts(immutable=True),
    "WorkloadRef.apiVersion": Facts(max_length=MAX_STRING, form=SOME_WORD),
    "WorkloadRef.kind": Facts(max_length=MAX_STRING, form=SOME_WORD),
    "WorkloadRef.name": Facts(max_length=MAX_STRING, form=DNS_NAME),
    "QueueJobStatus.observedGeneration": Facts(int64=True),
    "QueueJobStatus.conditions": Facts(key="type"),
}
