"""The CRDs of Queue and QueueJob, on a real API server and on ours: they accept and refuse what our validator does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from eventual import eventually

from octarbiter.api import codec, crd, defaults, kinds, queue, queuejob, scheme
from octarbiter.api.arbitrator import ResourceList
from octarbiter.api.kinds import Kind
from octarbiter.api.meta import Condition, Json
from octarbiter.testing import arbitrator_cases as cases
from octarbiter.testing.cases import Bad, Change
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.connection import ApiError

# What the server adds where it skipped CEL because a type was wrong or a field missing.
_SKIPPED = "<nil>"
# The older name of QueueJob would take `taskset` away from the other tests of the same real bed.
_KINDS = (kinds.QUEUE, kinds.QUEUEJOB)


def kind_of(obj: Json) -> Kind:
    found = kinds.meant(obj)
    assert found is not None
    return found


def named(refusal: ApiError) -> set[str]:
    """The fields in a server's answer."""
    said = str(refusal)
    if unknown := re.findall(r'unknown field "([^"]+)"', said):
        return set(unknown)
    fields = re.findall(r"(?:^|[\[ ])([a-z<][^\s:\"']*): (?:Invalid value|Required value|Too many|Forbidden)", said)
    return set(fields) - {_SKIPPED}


@pytest.fixture(scope="module")
def bed_with_crds(any_bed: Testbed) -> Testbed:
    plane = any_bed.control_plane
    made = [crd.render(kind) for kind in _KINDS]
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump_all(made))
    for kind in _KINDS:
        plane.kubectl("wait", "--for=condition=Established", f"crd/{kind.definition}", "--timeout=60s")

    def is_served() -> bool:
        try:
            return all(plane.request("GET", kind.resource.path("default")) for kind in _KINDS)
        except ApiError:
            return False

    eventually(is_served, lambda: "the new kinds to be served", 30)
    return any_bed


@pytest.fixture(scope="module")
def namespace(bed_with_crds: Testbed) -> Iterator[str]:
    name = bed_with_crds.control_plane.create_namespace()
    yield name
    bed_with_crds.control_plane.request("DELETE", scheme.NAMESPACES.path(name=name))


class Server:
    def __init__(self, bed: Testbed, namespace: str) -> None:
        self._plane, self._namespace = bed.control_plane, namespace

    def create(self, obj: Json, query: str = "fieldValidation=Strict") -> Json:
        made: Json = self._plane.request("POST", f"{self._path(obj, name=False)}?{query}", obj)
        return made

    def replace(self, obj: Json) -> Json:
        current = self._plane.request("GET", self._path(obj))
        metadata = {**obj["metadata"], "resourceVersion": current["metadata"]["resourceVersion"]}
        made: Json = self._plane.request("PUT", self._path(obj), {**obj, "metadata": metadata})
        return made

    def tell(self, obj: Json, status: Any) -> Json:
        path = f"{self._path(obj)}/status?fieldValidation=Strict"
        body = {"status": codec.to_json(status)}
        told: Json = self._plane.request("PATCH", path, body, "application/merge-patch+json")
        return told

    def delete(self, obj: Json) -> None:
        self._plane.request("DELETE", self._path(obj))

    def kubectl(self, *arguments: str) -> str:
        return self._plane.kubectl(f"--namespace={self._namespace}", *arguments).stdout

    def _path(self, obj: Json, *, name: bool = True) -> str:
        return kind_of(obj).resource.path(self._namespace, obj["metadata"]["name"] if name else "")


@pytest.fixture
def server(bed_with_crds: Testbed, namespace: str) -> Server:
    return Server(bed_with_crds, namespace)


def refused(server: Server, obj: Json) -> set[str]:
    try:
        server.create(obj, "fieldValidation=Strict&dryRun=All")
    except ApiError as refusal:
        return named(refusal)
    return set()


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.definition)
def test_a_server_takes_each_definition_as_it_is(any_bed: Testbed, kind: Kind) -> None:
    body = crd.render(kind)
    asked = json.loads(json.dumps(body))
    asked["metadata"]["name"] = asked["metadata"]["name"].replace("sets.", "setties.").replace("queue", "tryqueue")
    asked["spec"]["names"] = {
        "kind": f"Try{kind.kind}",
        "listKind": f"Try{kind.kind}List",
        "plural": asked["metadata"]["name"].partition(".")[0],
        "singular": f"try{kind.kind.lower()}",
    }

    made = any_bed.control_plane.request("POST", f"{scheme.CRDS.path()}?dryRun=All&fieldValidation=Strict", asked)

    (version,) = made["spec"]["versions"]
    assert version["schema"] == body["spec"]["versions"][0]["schema"]


@pytest.mark.parametrize("bad", cases.BAD, ids=lambda bad: bad.sentence)
def test_a_bad_object_is_refused_with_each_field_named(server: Server, bad: Bad) -> None:
    assert refused(server, bad.obj) == set(bad.server_fields)


def test_every_good_object_is_stored_with_the_defaults_we_would_write(server: Server) -> None:
    for sentence, good in cases.GOOD.items():
        stored = server.create(good, "fieldValidation=Strict&dryRun=All")

        assert (sentence, stored["spec"]) == (sentence, defaults.with_defaults(good)["spec"])


@pytest.mark.parametrize("change", cases.CHANGES, ids=lambda change: change.sentence)
def test_a_change_is_refused_with_the_fields_that_must_not_change_or_else_accepted(
    server: Server, change: Change
) -> None:
    server.create(change.before)
    try:
        server.replace(change.after)
        found: set[str] = set()
    except ApiError as refusal:
        found = named(refusal)
    finally:
        server.delete(change.before)

    assert found == set(change.server_fields)


_AMOUNTS = ResourceList(resources={"cpu": "1500m", "memory": "3000Ei"})
_CONDITION = Condition(type=queue.SATISFIED, status="True", reason="Satisfied", message="It has all it asks for.")
_QUEUE_STATUS = queue.QueueStatus(
    observed_generation=1,
    demand=_AMOUNTS,
    deserved=_AMOUNTS,
    allocated=_AMOUNTS,
    used=_AMOUNTS,
    preempting=_AMOUNTS,
    share="66.7% cpu",
    conditions=[_CONDITION],
)
_JOB_STATUS = queuejob.QueueJobStatus(
    observed_generation=1, allocated=_AMOUNTS, allocated_no=2, position=1, conditions=[_CONDITION]
)


def test_a_full_status_is_stored_without_loss_also_with_sums_that_no_spec_could_hold(server: Server) -> None:
    for obj, status in ((cases.queue("told"), _QUEUE_STATUS), (cases.queuejob("told"), _JOB_STATUS)):
        server.create(obj)

        assert server.tell(obj, status)["status"] == codec.to_json(status)
        server.delete(obj)


def test_kubectl_shows_queues_and_claims_by_their_names_and_columns(server: Server) -> None:
    tenant, claim = cases.queue("shown", weight=3, parent="company"), cases.queuejob("shown", resourceno=5)
    server.create(tenant)
    server.create(claim)
    server.tell(tenant, _QUEUE_STATUS)
    server.tell(claim, _JOB_STATUS)

    queues, wide = (
        server.kubectl("get", *words).splitlines() for words in (("queue", "shown"), ("q", "shown", "-o", "wide"))
    )
    (claims,) = (server.kubectl("get", *words).splitlines() for words in (("qj", "shown"),))
    everything = server.kubectl("get", "all")

    assert queues[0].split() == ["NAME", "WEIGHT", "SHARE", "SATISFIED", "AGE"]
    assert queues[1].split()[:5] == ["shown", "3", "66.7%", "cpu", "True"]
    assert wide[0].split()[5:] == [*["PARENT", "DESERVED", "CPU", "ALLOCATED", "CPU", "USED", "CPU", "RECLAIMING"]]
    assert wide[1].split()[6:10] == ["company", "1500m", "1500m", "1500m"]
    assert claims[0].split() == ["NAME", "QUEUE", "UNITS", "ALLOCATED", "POSITION", "AGE"]
    assert claims[1].split()[:5] == ["shown", "q", "5", "2", "1"]
    assert "queue.arbitrator.incubator.k8s.io/shown" in everything
    assert "queuejob.arbitrator.incubator.k8s.io/shown" in everything
    server.delete(tenant)
    server.delete(claim)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("queue.spec.weight", "twice the weight"),
        ("queue.spec.request.resources", "a quantity such as 500m"),
        ("queuejob.spec.minResourceno", "at most resourceno"),
        ("queuejob.status.position", "from 1"),
    ],
)
def test_kubectl_explains_the_fields(server: Server, path: str, words: str) -> None:
    assert words in " ".join(server.kubectl("explain", path).split())


def test_the_embedded_cluster_has_both_tasksets_and_means_the_usual_one(embedded_bed: Testbed) -> None:
    plane = embedded_bed.control_plane
    listed = plane.kubectl("get", "taskset", "-o", "name", "-v=6", "-n", "default").stderr
    older = {**cases.queuejob("older"), "kind": "TaskSet"}

    made = plane.request("POST", scheme.ARBITRATOR_TASKSETS.path("default"), older)

    assert "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/default/tasksets" in listed
    assert made["spec"] == defaults.with_defaults(older)["spec"]
    plane.request("DELETE", scheme.ARBITRATOR_TASKSETS.path("default", "older"))
