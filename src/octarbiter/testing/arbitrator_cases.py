"""Which Queues and QueueJobs must be refused, which accepted, and by whom for what?

The API server writes names in maps behind a dot where we write them in brackets. What needs sums or comparisons of
amounts only the validator sees.
"""

from __future__ import annotations

from typing import Any

from octarbiter.api import arbitrator
from octarbiter.api.meta import Json
from octarbiter.testing.cases import Bad, Change, bad

_UNIT: Json = {"resources": {"cpu": "1", "memory": "1Gi"}}


def queue(name: str = "q", **spec: Any) -> Json:
    return {"apiVersion": arbitrator.API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def queuejob(name: str = "claim", **spec: Any) -> Json:
    return {
        "apiVersion": arbitrator.API_VERSION,
        "kind": "QueueJob",
        "metadata": {"name": name},
        "spec": {"queue": "q", "resourceunit": _UNIT, **spec},
    }


def _asks(**amounts: Any) -> Json:
    return queue(request={"resources": amounts})


def _lists(**parts: Json) -> Json:
    spec: Json = {name: {"resources": amounts} for name, amounts in parts.items()}
    return queue(**spec)


def _selects(*requirements: Json) -> Json:
    return queue(namespaceSelector={"matchExpressions": list(requirements)})


def _workload(**fields: Any) -> Json:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": "train", **fields}


_CPU, _CPU_THERE = "spec.request.resources[cpu]", ("spec.request.resources.cpu",)
_SELECTED = "spec.namespaceSelector.matchExpressions[0]"
_FACTOR, _FACTOR_THERE = "spec.oversubscription[cpu]", ("spec.oversubscription.cpu",)

BAD: list[Bad] = [
    bad("weight 0", queue(weight=0), "spec.weight"),
    bad("a weight with a fraction", queue(weight=1.5), "spec.weight"),
    bad("a weight as text", queue(weight="2"), "spec.weight"),
    bad("an amount with two points", _asks(cpu="1.5.5"), _CPU, server=_CPU_THERE),
    bad("an amount of 2^70", _asks(cpu=str(2**70)), _CPU, server=_CPU_THERE),
    bad("an amount of 2^70 as a number", _asks(cpu=2**70), _CPU, server=_CPU_THERE),
    bad("an amount of 2^70 with a suffix", _asks(cpu="1024Ei"), _CPU, server=_CPU_THERE),
    bad("an amount a little above the largest", _asks(cpu=str(2**63)), _CPU, server=()),
    bad("a negative amount", _asks(cpu="-1"), _CPU, server=_CPU_THERE),
    bad("a negative number", _asks(cpu=-1), _CPU, server=_CPU_THERE),
    bad("an amount with a fraction that is no text", _asks(cpu=0.5), _CPU, server=_CPU_THERE),
    bad("an amount with an unknown suffix", _asks(memory="1GB"), "spec.request.resources[memory]",
        server=["spec.request.resources.memory"]),
    bad("an amount finer than there is", _asks(cpu="0.0000000001"), _CPU, server=()),
    bad("an empty amount", _asks(cpu=""), _CPU, server=_CPU_THERE),
    bad("an amount that is an object", _asks(cpu={}), _CPU, server=_CPU_THERE),
    bad("an amount that is true", _asks(cpu=True), _CPU, server=_CPU_THERE),
    bad("a name that no resource can have", _lists(request={"cpu!": 1}), "spec.request.resources[cpu!]", server=()),
    bad("65 resources", _lists(request={f"example.com/r{n}": 1 for n in range(65)}), "spec.request.resources"),
    bad("amounts without resources", queue(request={"cpu": 1}), "spec.request.cpu", is_strict=True),
    bad("a bad guarantee", _lists(guarantee={"cpu": "x"}), "spec.guarantee.resources[cpu]",
        server=["spec.guarantee.resources.cpu"]),
    bad("a bad capability", _lists(capability={"cpu": "x"}), "spec.capability.resources[cpu]",
        server=["spec.capability.resources.cpu"]),
    bad("a bad promise", _lists(deserved={"cpu": "x"}), "spec.deserved.resources[cpu]",
        server=["spec.deserved.resources.cpu"]),
    bad("a guarantee above the capability", _lists(guarantee={"cpu": 2}, capability={"cpu": "1500m"}),
        "spec.guarantee.resources[cpu]", server=()),
    bad("a promise above the capability", _lists(deserved={"cpu": 2}, capability={"cpu": 1}),
        "spec.deserved.resources[cpu]", server=()),
    bad("a guarantee above the promise", _lists(guarantee={"memory": "2Gi"}, deserved={"memory": "2G"}),
        "spec.guarantee.resources[memory]", server=()),
    bad("its own parent", queue("q", parent="q"), "spec.parent"),
    bad("a parent with upper case", queue(parent="Root"), "spec.parent"),
    bad("a parent with two slashes", queue(parent="a/b/c"), "spec.parent"),
    bad("a priority beyond 32 bits", queue(priority=2**31), "spec.priority"),
    bad("reclaimable as a word", queue(reclaimable="never"), "spec.reclaimable"),
    bad("a factor below 1", queue(oversubscription={"cpu": "0.5"}), _FACTOR, server=_FACTOR_THERE),
    bad("a factor above 100", queue(oversubscription={"cpu": "100.1"}), _FACTOR, server=_FACTOR_THERE),
    bad("a factor of 0 as a number", queue(oversubscription={"cpu": 0}), _FACTOR, server=_FACTOR_THERE),
    bad("a factor that is no text", queue(oversubscription={"cpu": 1.5}), _FACTOR, server=_FACTOR_THERE),
    bad("a factor with a suffix", queue(oversubscription={"cpu": "1500m"}), _FACTOR, server=_FACTOR_THERE),
    bad("a requirement with an unknown operator", _selects({"key": "a", "operator": "Is", "values": ["b"]}),
        f"{_SELECTED}.operator", server=[f"{_SELECTED}.operator", f"{_SELECTED}.values"]),
    bad("a requirement without a key", _selects({"operator": "Exists"}), f"{_SELECTED}.key"),
    bad("In without values", _selects({"key": "a", "operator": "In"}), f"{_SELECTED}.values"),
    bad("Exists with values", _selects({"key": "a", "operator": "Exists", "values": ["b"]}), f"{_SELECTED}.values"),
    bad("an unknown field of a queue", queue(wieght=2), "spec.wieght", is_strict=True),
    bad("a queue's name of 64 characters", queue("q" * 64), "metadata.name"),
    bad("several mistakes of a queue at once",
        queue("q", weight=0, parent="q", priority=2**31, request={"resources": {"cpu": "-1", "memory": "x"}}),
        "spec.weight", "spec.parent", "spec.priority", _CPU, "spec.request.resources[memory]",
        server=["spec.weight", "spec.parent", "spec.priority", *_CPU_THERE, "spec.request.resources.memory"]),
    bad("a claim on no queue", {**queuejob(), "spec": {"resourceunit": _UNIT}}, "spec.queue"),
    bad("a claim on an empty name", queuejob(queue=""), "spec.queue"),
    bad("a claim without a unit", {**queuejob(), "spec": {"queue": "q"}}, "spec.resourceunit"),
    bad("an empty unit", queuejob(resourceunit={}), "spec.resourceunit"),
    bad("a unit of no resources", queuejob(resourceunit={"resources": {}}), "spec.resourceunit.resources"),
    bad("a unit of zeros", queuejob(resourceunit={"cpu": 0, "memory": "0"}), "spec.resourceunit", server=()),
    bad("a unit of zeros inside", queuejob(resourceunit={"resources": {"cpu": 0}}), "spec.resourceunit", server=()),
    bad("a unit in both ways", queuejob(resourceunit={"resources": {"cpu": 1}, "memory": 1}), "spec.resourceunit"),
    bad("a unit in both ways with a rare resource",
        queuejob(resourceunit={"resources": {"cpu": 1}, "nvidia.com/gpu": 1}), "spec.resourceunit", server=()),
    bad("a bad amount in a unit", queuejob(resourceunit={"resources": {"cpu": "1.5.5"}}),
        "spec.resourceunit.resources[cpu]", server=["spec.resourceunit.resources.cpu"]),
    bad("a bad amount in a unit without resources", queuejob(resourceunit={"cpu": "1.5.5"}), "spec.resourceunit.cpu"),
    bad("a bad amount of a rare resource", queuejob(resourceunit={"nvidia.com/gpu": "one"}),
        "spec.resourceunit[nvidia.com/gpu]", server=()),
    bad("0 units", queuejob(resourceno=0), "spec.resourceno"),
    bad("units beyond 32 bits", queuejob(resourceno=2**31), "spec.resourceno"),
    bad("a minimum of 0 units", queuejob(minResourceno=0), "spec.minResourceno"),
    bad("a minimum above the number", queuejob(resourceno=2, minResourceno=3), "spec.minResourceno"),
    bad("a minimum above the usual number", queuejob(minResourceno=2), "spec.minResourceno"),
    bad("a workload without a kind", queuejob(workloadRef={"apiVersion": "batch/v1", "name": "a"}),
        "spec.workloadRef.kind"),
    bad("a workload with an empty apiVersion", queuejob(workloadRef=_workload(apiVersion="")),
        "spec.workloadRef.apiVersion"),
    bad("a workload whose name is none", queuejob(workloadRef=_workload(name="A b")), "spec.workloadRef.name"),
    bad("an unknown field of a claim", queuejob(resourceNo=2), "spec.resourceNo", is_strict=True),
]  # fmt: skip

_FULL_QUEUE = queue(
    weight=3,
    parent="company/research",
    request={"resources": {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": "2", "example.com/any_Thing.v2": 1}},
    guarantee={"resources": {"cpu": "500m"}},
    deserved={"resources": {"cpu": 2, "memory": "4Gi"}},
    capability={"resources": {"cpu": "8", "hugepages-2Mi": "1Gi"}},
    priority=-5,
    reclaimable=False,
    namespaceSelector={
        "matchLabels": {"team": "vision"},
        "matchExpressions": [
            {"key": "stage", "operator": "In", "values": ["test"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    },
    policy="my-policy",
    oversubscription={"cpu": "1.5", "memory": 2, "nvidia.com/gpu": "100"},
)
_FULL_JOB = queuejob(priority=10, resourceno=5, minResourceno=2, workloadRef=_workload())

GOOD: dict[str, Json] = {
    "a queue with nothing": queue(),
    "a queue without a spec": {name: value for name, value in queue().items() if name != "spec"},
    "every field of a queue used": _FULL_QUEUE,
    "a queue's name of 63 characters": queue("q" * 63),
    "a queue's name with a dot": queue("team.vision"),
    "an empty parent": queue(parent=""),
    "a null where there is a default": queue(weight=None, reclaimable=None),
    "nothing of something": _asks(cpu=0),
    "amounts in every form": _asks(
        **{f"example.com/r{n}": text for n, text in enumerate(["1", "0.5", ".5", "5.", "+1", "1e3", "1E-3", "100n"])},
        **{f"example.com/s{n}": text for n, text in enumerate(["7u", "3m", "1k", "1M", "1G", "1T", "1P", "9E", "7Ei"])},
        **{f"example.com/t{n}": text for n, text in enumerate(["1Ki", "1Mi", "1Gi", "1Ti", "1Pi", 2**63 - 1])},
    ),
    "64 resources": _asks(**{f"example.com/r{n}": 1 for n in range(64)}),
    "a selector of everything": queue(namespaceSelector={}),
    "a claim": queuejob(),
    "every field of a claim used": _FULL_JOB,
    "a unit without resources": queuejob(resourceunit={"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}),
    "a claim with a long name": queuejob("c" * 253),
    "2^31-1 units": queuejob(resourceno=2**31 - 1, minResourceno=2**31 - 1),
}


def _changed(obj: Json, **spec: Any) -> Json:
    return {**obj, "spec": {name: value for name, value in {**obj["spec"], **spec}.items() if value is not None}}


def _queue_change(sentence: str, **spec: Any) -> Change:
    return Change(sentence, _FULL_QUEUE, _changed(_FULL_QUEUE, **spec))


def _job_change(sentence: str, *fields: str, **spec: Any) -> Change:
    return Change(sentence, _FULL_JOB, _changed(_FULL_JOB, **spec), fields, fields)


CHANGES: list[Change] = [
    _queue_change("a queue's weight", weight=9),
    _queue_change("a queue's parent", parent="other"),
    _queue_change("a queue's parent taken away", parent=None),
    _queue_change("a queue's request", request={"resources": {"cpu": 1}}),
    _queue_change("a queue's selector taken away", namespaceSelector=None),
    _job_change("a claim's priority", priority=11),
    _job_change("a claim's units", resourceno=7),
    _job_change("a claim's units below the minimum", "spec.minResourceno", resourceno=1),
    _job_change("a claim's unit", resourceunit={"cpu": 1}),
    _job_change("a claim's queue", "spec.queue", queue="other"),
    _job_change("a claim's workload", "spec.workloadRef", workloadRef=_workload(name="other")),
    _job_change("a claim's workload taken away", "spec.workloadRef", workloadRef=None),
]
