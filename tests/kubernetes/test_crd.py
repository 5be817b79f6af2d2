"""The CRD on a real API server: it accepts and refuses what our validator does, field by field."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from octarbiter.api import codec, crd, defaults, kinds, scheme, taskset, validation
from octarbiter.api.meta import Condition, Json
from octarbiter.runtime import manifest
from octarbiter.testing import taskset_cases
from octarbiter.testing.cases import Bad, Change
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.taskset_cases import job, role

ROOT = Path(__file__).resolve().parents[2]

# What the server adds where it skipped CEL because a type was wrong or a field missing.
_SKIPPED = "<nil>"


class Cluster:
    """kubectl in one namespace."""

    def __init__(self, bed: Testbed, namespace: str) -> None:
        self._bed = bed
        self._namespace = namespace

    def kubectl(self, *arguments: str, stdin: Any = None, check: bool = False) -> subprocess.CompletedProcess[str]:
        text = None if stdin is None else json.dumps(stdin)
        return self._bed.control_plane.kubectl(f"--namespace={self._namespace}", *arguments, input=text, check=check)

    def names(self) -> list[str]:
        return self.kubectl("get", "ts", "-o", "name", check=True).stdout.split()

    def tasksets(self, name: str) -> str:
        return scheme.TASKSETS.path(self._namespace, name)


def named(said: str) -> set[str]:
    """The fields in kubectl's answer: one after `is invalid: `, or several, each after a `* `."""
    lines = [re.sub(r'^(The TaskSet ".*" is invalid: |\* )', "", line) for line in said.splitlines()]
    return {line.split(": ", 1)[0] for line in lines if line} - {_SKIPPED}


@pytest.fixture(scope="module")
def installed(bed: Testbed) -> Testbed:
    file = ROOT / "deploy" / "crds" / f"{kinds.TASKSET.definition}.yaml"
    bed.control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    bed.control_plane.kubectl("wait", "--for=condition=Established", f"crd/{kinds.TASKSET.definition}", "--timeout=60s")
    return bed


@pytest.fixture(scope="module")
def empty(installed: Testbed) -> Iterator[Cluster]:
    """A namespace in which nothing may ever be created."""
    name = installed.control_plane.create_namespace()
    yield Cluster(installed, name)
    installed.control_plane.request("DELETE", scheme.NAMESPACES.path(name=name))


@pytest.fixture
def cluster(installed: Testbed, namespace: str) -> Cluster:
    return Cluster(installed, namespace)


def test_the_server_takes_the_crd_as_it_is_and_establishes_it(installed: Testbed) -> None:
    path = scheme.CRDS.path(name=kinds.TASKSET.definition)
    stored = installed.control_plane.request("GET", path)
    conditions = {one["type"]: one["status"] for one in stored["status"]["conditions"]}

    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert stored["spec"]["versions"][0]["schema"] == crd.render(kinds.TASKSET)["spec"]["versions"][0]["schema"]


@pytest.mark.parametrize("bad", taskset_cases.BAD, ids=lambda bad: bad.sentence)
def test_a_bad_taskset_is_refused_with_each_field_named_and_nothing_created(empty: Cluster, bad: Bad) -> None:
    answer = empty.kubectl("create", "-f", "-", stdin=bad.obj)

    assert answer.returncode != 0
    if bad.is_strict:
        assert all(f'unknown field "{field}"' in answer.stderr for field in bad.server_fields)
    else:
        assert named(answer.stderr) == set(bad.server_fields)
    assert empty.names() == []


def test_every_good_taskset_is_stored_with_the_defaults_we_would_write(cluster: Cluster) -> None:
    for sentence, good in taskset_cases.GOOD.items():
        answer = cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=good)

        assert (sentence, answer.stderr) == (sentence, "")
        assert json.loads(answer.stdout)["spec"] == defaults.with_defaults(good)["spec"]


@pytest.mark.parametrize("change", taskset_cases.CHANGES, ids=lambda change: change.sentence)
def test_a_change_is_refused_with_the_fields_that_must_not_change_or_else_accepted(
    cluster: Cluster, change: Change
) -> None:
    cluster.kubectl("create", "-f", "-", stdin=change.before, check=True)
    if change.status:
        patch = json.dumps({"status": change.status})
        cluster.kubectl("patch", "ts", "job", "--subresource=status", "--type=merge", "-p", patch, check=True)

    answer = cluster.kubectl("replace", "-f", "-", stdin=change.after)

    assert named(answer.stderr) == set(change.server_fields)
    assert (answer.returncode == 0) is (not change.server_fields)


def test_a_refused_change_of_several_fields_names_them_all(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", stdin=job(queue="a"), check=True)
    after = job(role("ps", retryPolicy={"delay": 1}), role("worker", replicas=0), queue="b")
    expected = {"spec.queue", "spec.roles[0].retryPolicy.delay", "spec.roles[1].replicas"}

    answer = cluster.kubectl("replace", "-f", "-", stdin=after)

    assert named(answer.stderr) == expected
    assert {problem.path for problem in validation.validate_update(job(queue="a"), after, None)} == expected


def test_an_absent_min_succeeded_follows_the_replicas(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", stdin=job(role("worker", replicas=3)), check=True)

    for replicas in (5, 1):
        answer = cluster.kubectl("replace", "-f", "-", stdin=job(role("worker", replicas=replicas)))
        assert answer.stderr == ""


def test_a_name_that_the_server_makes_up_is_held_to_the_same_length(cluster: Cluster) -> None:
    longest, too_long = ({**job(), "metadata": {"generateName": "a" * length}} for length in (56, 57))

    assert cluster.kubectl("create", "-f", "-", stdin=longest).stderr == ""
    assert named(cluster.kubectl("create", "-f", "-", stdin=too_long).stderr) == {"metadata.name"}
    assert not validation.validate(longest)
    assert validation.validate(too_long)


def test_a_taskset_of_almost_1_mib_stays_within_the_servers_budget(cluster: Cluster) -> None:
    def large(replicas: int) -> Json:
        roles = [role(f"r{index}", replicas=replicas) for index in range(taskset.MAX_ROLES)]
        for one in roles:
            (container,) = one["template"]["spec"]["containers"]
            container["env"] = [{"name": f"VARIABLE_{index}", "value": "x" * 110} for index in range(100)]
        return job(*roles)

    assert 900_000 < len(json.dumps(large(1))) < manifest.MAX_BYTES
    cluster.kubectl("create", "-f", "-", stdin=large(1), check=True)
    cluster.kubectl("replace", "-f", "-", stdin=large(2), check=True)


def test_a_circle_among_too_many_dependencies_to_check_is_let_through_to_the_controller(cluster: Cluster) -> None:
    names = [f"r{index}" for index in range(20)]
    tangled = job(*(role(name, dependsOn=[other for other in names if other != name]) for name in names))

    assert cluster.kubectl("create", "-f", "-", stdin=tangled).stderr == ""
    assert validation.validate(tangled)


def test_the_manuals_examples_are_accepted_as_they_are(cluster: Cluster) -> None:
    for file in sorted((ROOT / "examples").glob("*.yaml")):
        # The PodGroup in one of them is another project's kind.
        (example,) = (obj for obj in manifest.read(file.read_bytes()) if obj["kind"] == "TaskSet")
        example["metadata"]["name"] = file.stem

        assert cluster.kubectl("create", "-f", "-", stdin=example).stderr == ""


def test_a_full_status_is_stored_without_loss(installed: Testbed, cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", stdin=job(), check=True)
    path, status = cluster.tasksets("job"), codec.to_json(_filled(taskset.TaskSetStatus))
    api = installed.control_plane

    api.request("PATCH", f"{path}/status?fieldValidation=Strict", {"status": status}, "application/merge-patch+json")

    assert api.request("GET", path)["status"] == status


def _filled(type_: Any) -> Any:
    """An instance with every field set to something that is not its default."""
    info = msgspec.inspect.type_info(type_)
    return _value_of(info)


def _value_of(info: Any) -> Any:
    match info:
        case msgspec.inspect.StructType():
            return info.cls(**{field.name: _value_of(field.type) for field in info.fields})
        case msgspec.inspect.ListType():
            return [_value_of(info.item_type)]
        case msgspec.inspect.UnionType():
            return _value_of(next(one for one in info.types if not isinstance(one, msgspec.inspect.NoneType)))
        case msgspec.inspect.IntType():
            return 7
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.DateTimeType():
            return datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
        case _:
            return "text"


def test_kubectl_knows_the_short_name_the_category_and_the_columns(cluster: Cluster, installed: Testbed) -> None:
    cluster.kubectl("create", "-f", "-", stdin=job(queue="research"), check=True)
    status = taskset.TaskSetStatus(
        state="Running",
        phase="TaskSetAttemptRunning",
        total_retried_count=2,
        conditions=[Condition(type="A", status="True")],
    )
    installed.control_plane.request(
        "PATCH",
        f"{cluster.tasksets('job')}/status",
        {"status": codec.to_json(status)},
        "application/merge-patch+json",
    )

    header, row = cluster.kubectl("get", "ts", check=True).stdout.splitlines()
    wide, wide_row = cluster.kubectl("get", "taskset", "-o", "wide", check=True).stdout.splitlines()

    assert header.split() == ["NAME", "STATE", "PHASE", "RETRIES", "AGE"]
    assert row.split()[:4] == ["job", "Running", "TaskSetAttemptRunning", "2"]
    assert wide.split() == ["NAME", "STATE", "PHASE", "RETRIES", "AGE", "QUEUE"]
    assert wide_row.split()[-1] == "research"
    assert "taskset.octopus.openi.pcl.cn/job" in cluster.kubectl("get", "all", check=True).stdout


def test_kubectl_explains_every_level(cluster: Cluster) -> None:
    explained = cluster.kubectl("explain", "ts.spec.roles.completionPolicy.maxFailed", check=True).stdout

    assert "never by count" in " ".join(explained.split())


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "y", "n", "Off", "'y'", "~", "''", "! 12", "!!str 12", "!!int '12'", "22:22", "010", "08", "0o17"),
        *("0b101", "-0x1F", "1_000", "3.0", "1e3", "1.5e-7", ".5", "2024-01-01", "2024-01-01T00:00:00Z", "_1", "+5"),
        *("1.", "0x", "123456789012345678901234567890", "{y: 1, 1: 2, 1.5: 3, off: 4}", "[a, &b {c: d}, {<<: *b}]"),
    ],
)
def test_a_manifest_is_read_as_kubectl_reads_it(empty: Cluster, tmp_path: Path, text: str) -> None:
    obj = job(role("ps"))
    obj["spec"]["roles"][0]["template"]["spec"]["extra"] = "PLACE"
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(obj).replace("PLACE", text))

    theirs = empty.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", str(file), check=True)

    extra = json.loads(theirs.stdout)["spec"]["roles"][0]["template"]["spec"]["extra"]
    (ours,) = manifest.read(file.read_bytes())
    assert ours["spec"]["roles"][0]["template"]["spec"]["extra"] == extra
