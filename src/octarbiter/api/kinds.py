"""Which kinds are ours, and what is there to know about each besides its fields?"""

from __future__ import annotations

from typing import Any

import msgspec

from octarbiter.api import queue, schema, scheme, taskset
from octarbiter.api.meta import Json
from octarbiter.api.schema import Node
from octarbiter.api.scheme import Resource

_AGE: Json = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_UNAPPROVED = {
    "api-approved.kubernetes.io": "unapproved, the group's name was chosen by the project whose kinds these are"
}
"""Without it a server refuses every definition whose group ends in k8s.io."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    resource: Resource[Any]
    meaning: str
    root: Node
    """The tree of its fields: spec and status."""
    columns: list[Json]
    """What `kubectl get` shows."""
    short_names: tuple[str, ...] = ()
    annotations: dict[str, str] = {}
    """Of its definition."""
    max_name: int = 253
    name_because: str = ""
    """Why the name must not be longer."""
    no_dots_because: str = ""

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def group(self) -> str:
        return self.resource.group

    @property
    def api_version(self) -> str:
        return self.resource.api_version

    @property
    def definition(self) -> str:
        """The name of its CustomResourceDefinition."""
        return f"{self.resource.plural}.{self.resource.group}"

    @property
    def struct(self) -> str:
        """Under which the rules know it; two names of one kind share it."""
        return self.root.struct

    @property
    def spec(self) -> Node:
        return self.root.fields["spec"]

    @property
    def status(self) -> Node:
        return self.root.fields["status"]


def _column(name: str, path: str, type_: str = "string", *, wide: bool = False) -> Json:
    column: Json = {"name": name, "type": type_, "jsonPath": path}
    return {**column, "priority": 1} if wide else column


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


TASKSET = Kind(
    resource=scheme.TASKSETS,
    meaning="One job of several roles, driven from Waiting through Running to Succeeded or Failed.",
    root=schema.tree(scheme.TASKSETS.type),
    columns=[
        _column("State", ".status.state"),
        _column("Phase", ".status.phase"),
        _column("Retries", ".status.totalRetriedCount", "integer"),
        _AGE,
        _column("Queue", ".spec.queue", wide=True),
    ],
    short_names=("ts",),
    max_name=taskset.MAX_NAME,
    name_because="it is also a label and a Service name",
    no_dots_because="it is also a host name",
)

QUEUE = Kind(
    resource=scheme.QUEUES,
    meaning="One tenant: what it asks for, and what of the cluster it deserves, may use now, and uses.",
    root=schema.tree(scheme.QUEUES.type),
    columns=[
        _column("Weight", ".spec.weight", "integer"),
        _column("Share", ".status.share"),
        _column("Satisfied", _condition(queue.SATISFIED)),
        _AGE,
        _column("Parent", ".spec.parent", wide=True),
        _column("Deserved CPU", ".status.deserved.resources.cpu", wide=True),
        _column("Allocated CPU", ".status.allocated.resources.cpu", wide=True),
        _column("Used CPU", ".status.used.resources.cpu", wide=True),
        _column("Reclaiming", _condition(queue.RECLAIMING), wide=True),
    ],
    short_names=("q",),
    annotations=_UNAPPROVED,
    max_name=queue.MAX_NAME,
    name_because="it is also a label",
)

_QUEUEJOB = Kind(
    resource=scheme.QUEUEJOBS,
    meaning="The claim of one batch job inside a queue: so many equal units of resources.",
    root=schema.tree(scheme.QUEUEJOBS.type),
    columns=[
        _column("Queue", ".spec.queue"),
        _column("Units", ".spec.resourceno", "integer"),
        _column("Allocated", ".status.allocatedNo", "integer"),
        _column("Position", ".status.position", "integer"),
        _AGE,
        _column("Priority", ".spec.priority", "integer", wide=True),
        _column("Workload", ".spec.workloadRef.name", wide=True),
    ],
    annotations=_UNAPPROVED,
)
QUEUEJOB = msgspec.structs.replace(_QUEUEJOB, short_names=("qj",))
OLDER_TASKSET = msgspec.structs.replace(
    _QUEUEJOB,
    resource=scheme.ARBITRATOR_TASKSETS,
    meaning="The older name of QueueJob: the same fields, the same behaviour.",
)

ALL = (TASKSET, QUEUE, QUEUEJOB, OLDER_TASKSET)
INSTALLED = (TASKSET, QUEUE, QUEUEJOB)
"""On a real cluster: there the older TaskSet would take the name away from the other one, whose group comes later."""


def meant(obj: Any) -> Kind | None:
    """Which of ours is this, or was it to be? A wrong version or upper case is for `validation` to tell.

    Others have a Queue as well; a TaskSet is taken for the usual one whatever its apiVersion says.
    """
    if not isinstance(obj, dict):
        return None
    group, kind = str(obj.get("apiVersion")).partition("/")[0], str(obj.get("kind"))
    found = (each for each in ALL if each.group == group and each.kind.lower() == kind.lower())
    return next(found, TASKSET if kind == TASKSET.kind else None)
