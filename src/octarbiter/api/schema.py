"""What does a TaskSet look like, field by field?

One tree of `Node`s: the shape comes from the types in `taskset`, what types cannot say (limits, words, defaults, what
may change later) from `FACTS`, the meaning from `fields`. The CRD, the defaults, the validator and the reference page
all read this tree; that is why they cannot disagree about a single field. Rules that relate several fields are the
only thing written twice: as CEL in `crd`, in Python in `validation`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from octarbiter.api import fields, taskset

INT32_MAX = 2**31 - 1
DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_LABEL_WORDS = "lower-case letters, digits and '-', beginning and ending with a letter or digit"
MAX_HOSTNAME = 63

# Bounds on strings and lists that the contract leaves open. The API server multiplies them to estimate what a CEL
# rule may cost and refuses a CRD without them; they are far above anything real. Exceeding one of them (unlike
# every other mistake) makes the server skip CEL, so no rule of the contract is expressed by these.
MAX_STRING = 253
MAX_CONTAINERS = 128
MAX_EVENTS = 16
MAX_RULES = 64


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


NONE = Facts()

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
    "Role.name": Facts(max_length=MAX_STRING),
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
}


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One field, or the items of a list, or the values of a map."""

    type: str
    """object, array, string, integer, boolean or time"""
    key: str = ""
    """Under which FACTS, fields.MEANING and the CEL rules know it, e.g. `Role.replicas`, `Role.dependsOn[]`."""
    struct: str = ""
    """Of an object: the name of its type, e.g. `Role`."""
    required: bool = False
    fields: dict[str, Node] = {}
    is_open: bool = False
    """Fields that are not listed pass through."""
    items: Node | None = None
    values: Node | None = None

    @property
    def facts(self) -> Facts:
        return FACTS.get(self.key, NONE)

    @property
    def meaning(self) -> str:
        return fields.MEANING.get(self.key, "")

    @property
    def is_always_there(self) -> bool:
        return self.required or self.facts.default is not msgspec.UNSET


_SCALARS: dict[type[inspect.Type], str] = {
    inspect.IntType: "integer",
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.DateTimeType: "time",
}


def _node(type_: inspect.Type, key: str, required: bool) -> Node:
    if isinstance(type_, inspect.UnionType):
        (type_,) = (option for option in type_.types if not isinstance(option, inspect.NoneType))
    if isinstance(type_, inspect.StructType):
        name = type_.cls.__name__
        children = {
            field.encode_name: _node(field.type, f"{name}.{field.encode_name}", field.required)
            for field in type_.fields
        }
        return Node(type="object", key=key, struct=name, required=required, fields=children)
    if isinstance(type_, inspect.ListType):
        return Node(type="array", key=key, required=required, items=_node(type_.item_type, f"{key}[]", required=False))
    if isinstance(type_, inspect.DictType):
        return _template(key, required)
    return Node(type=_SCALARS[type(type_)], key=key, required=required)


def _template(key: str, required: bool) -> Node:
    """Of a pod template only what we look at; the rest is the business of the API server that makes the pods."""
    container = Node(
        type="object",
        is_open=True,
        fields={"name": Node(type="string", key="template.spec.containers.name", required=True)},
    )
    strings = Node(type="string")
    metadata = {
        "labels": Node(type="object", key="template.metadata.labels", values=strings),
        "annotations": Node(type="object", key="template.metadata.annotations", values=strings),
    }
    spec = {
        "containers": Node(type="array", key="template.spec.containers", required=True, items=container),
        "restartPolicy": Node(type="string", key="template.spec.restartPolicy"),
    }
    return Node(
        type="object",
        key=key,
        required=required,
        is_open=True,
        fields={
            "metadata": Node(type="object", key="template.metadata", is_open=True, fields=metadata),
            "spec": Node(type="object", key="template.spec", required=True, is_open=True, fields=spec),
        },
    )


def _root() -> tuple[Node, Node]:
    info = inspect.type_info(taskset.TaskSet)
    by_name = _node(info, "TaskSet", required=True).fields
    return by_name["spec"], by_name["status"]


SPEC, STATUS = _root()
