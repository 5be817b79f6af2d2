"""`octo validate` and the checks before `octo submit`: one message, every problem, nothing sent."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from octarbiter.cli import access, exits

Octo = Callable[..., Result]


def job(name: str = "demo", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    return {
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
        "kind": "TaskSet",
        "metadata": {"name": name},
        "spec": {"roles": [{"name": "worker", "replicas": 2, "template": template}], **spec},
    }


def with_role(**changes: Any) -> dict[str, Any]:
    body = job()
    body["spec"]["roles"][0].update(changes)
    return body


def always() -> dict[str, Any]:
    body = copy.deepcopy(job())
    body["spec"]["roles"][0]["template"]["spec"]["restartPolicy"] = "Always"
    return body


ROLE = job()["spec"]["roles"][0]
BAD: dict[str, tuple[str, str]] = {
    "unknown event": (
        yaml.safe_dump(with_role(eventPolicy=[{"event": "RoleExploded", "action": "NoAction"}])),
        "spec.roles[0].eventPolicy[0].event: must be one of RoleFailed",
    ),
    "duplicate role": (yaml.safe_dump(job(roles=[ROLE, ROLE])), "spec.roles[1]: name"),
    "maxFailed 0": (
        yaml.safe_dump(with_role(completionPolicy={"maxFailed": 0})),
        "spec.roles[0].completionPolicy.maxFailed: 0 would fail the role before it starts",
    ),
    "minSucceeded above replicas": (
        yaml.safe_dump(with_role(completionPolicy={"minSucceeded": 3})),
        "spec.roles[0].completionPolicy.minSucceeded: must be at most replicas, 2",
    ),
    "no roles": (yaml.safe_dump(job(roles=[])), "spec.roles: must not be empty"),
    "restartPolicy Always": (
        yaml.safe_dump(always()),
        "spec.roles[0].template.spec.restartPolicy: must be one of Never",
    ),
    "name too long": (yaml.safe_dump(job("a" * 62)), "metadata.name: must have at most 61 characters"),
    "unknown field": (
        yaml.safe_dump(with_role(replica=3)),
        "spec.roles[0].replica: unknown field; did you mean replicas?",
    ),
    "10001 replicas": (
        yaml.safe_dump(with_role(replicas=10_001)),
        "spec.roles[0].replicas: must be between 1 and 10000",
    ),
    "no YAML": ("{{{ this: is: no: yaml", "line 1"),
    "a key twice": (
        "apiVersion: v1\nkind: ConfigMap\nkind: Secret\n",
        "kind: is written twice, on line 2 and on line 3",
    ),
    "too large": ("# " + "x" * (2 << 20), "is too large"),
    "empty": ("---\n---\n", "holds no object"),
    "no kind": ("metadata: {name: x}\n", "apiVersion and kind missing"),
    "wrong apiVersion": (
        yaml.safe_dump({**job(), "apiVersion": "octopus.openi.pcl.cn/v1"}),
        "apiVersion: must be octopus.openi.pcl.cn/v1alpha1",
    ),
    "misspelt kind": (yaml.safe_dump({**job(), "kind": "Taskset"}), "kind: must be TaskSet"),
    "nameless": ("apiVersion: v1\nkind: ConfigMap\n", "metadata.name: is required"),
    "name is a number": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}\n", "metadata.name: must be a string"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_told_with_its_file_and_field_and_nothing_is_sent(
    octo: Octo, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(deed: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(access, "run", never)
    text, message = BAD[case]
    file = tmp_path / "job.yaml"
    file.write_text(text)

    for command in (("validate",), ("submit",), ("submit", "--dry-run=server")):
        said = octo(*command, "-f", str(file))

        assert message in said.stderr
        assert "job.yaml" in said.stderr
        assert (said.exit_code, said.stdout) == (exits.Exit.INVALID, "")


def test_all_problems_of_all_objects_of_all_files_come_in_one_message(octo: Octo, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("one.yaml", "two.yaml", "three.yaml"))
    first.write_text(yaml.safe_dump_all([job("good"), with_role(replicas=0, name="Worker")]))
    second.write_text(json.dumps(with_role(completionPolicy={"maxFailed": 0})))
    said = octo("validate", "-f", str(first), "-f", str(second))

    assert said.stderr.splitlines() == [
        f"Error: TaskSet demo ({first}, object 2) is invalid:",
        "  spec.roles[0].name: must be lower-case letters, digits and '-', beginning and ending with a letter or digit,"
        ' is "Worker"',
        "  spec.roles[0].replicas: must be between 1 and 10000, is 0",
        f"TaskSet demo ({second}) is invalid:",
        "  spec.roles[0].completionPolicy.maxFailed: 0 would fail the role before it starts; 1 means the first failure"
        " fails it, -1 never by count",
        f"  metadata.name: is the same as in {first}, object 2",
    ]
    assert octo("validate", "-f", str(third)).exit_code == exits.Exit.INVALID


def test_valid_objects_are_named_and_other_kinds_are_not_judged(octo: Octo, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    group = {"apiVersion": "scheduling.incubator.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "pg-1"}}
    file.write_text(yaml.safe_dump_all([group, job()]))
    said = octo("validate", "-f", str(file))

    assert said.stdout == "pg-1: not checked (PodGroup)\ndemo: valid\n"
    assert said.exit_code == exits.Exit.OK


def test_standard_input_and_directories_are_read(octo: Octo, tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text(yaml.safe_dump(job("b")))
    (tmp_path / "a.json").write_text(json.dumps(job("a")))
    (tmp_path / "notes.txt").write_text("no manifest")
    said = octo("validate", "-f", str(tmp_path), "-f", "-", input=yaml.safe_dump(job("c")))

    assert said.stdout == "a: valid\nb: valid\nc: valid\n"


@pytest.mark.parametrize("what", ["missing.yaml", "."])
def test_what_cannot_be_read_is_said(octo: Octo, what: str, tmp_path: Path) -> None:
    said = octo("validate", "-f", str(tmp_path / what))

    assert str(tmp_path / what) in said.stderr
    assert said.exit_code == exits.Exit.INVALID


def test_a_namespace_in_the_file_must_agree_with_the_command_line(octo: Octo, tmp_path: Path) -> None:
    body = job()
    body["metadata"]["namespace"] = "theirs"
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(body))
    said = octo("submit", "-n", "mine", "--dry-run=client", "-f", str(file))

    assert "metadata.namespace: is theirs, but --namespace says mine" in said.stderr
    assert said.exit_code == exits.Exit.INVALID


def test_a_client_dry_run_prints_and_sends_nothing(octo: Octo, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job()))
    line = octo("submit", "--dry-run=client", "-f", str(file))
    name = octo("submit", "--dry-run=client", "-o", "name", "-f", str(file))
    whole = octo("submit", "--dry-run=client", "-o", "yaml", "-f", str(file))

    assert line.stdout == "taskset.octopus.openi.pcl.cn/demo valid (dry run)\n"
    assert name.stdout == "taskset.octopus.openi.pcl.cn/demo\n"
    assert yaml.safe_load(whole.stdout) == job()
