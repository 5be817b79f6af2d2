"""What `octo install` prints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from click.testing import Result

from octarbiter.cli import installation
from octarbiter.runtime import settings

Octo = Callable[..., Result]
ROOT = Path(__file__).resolve().parents[3]


def printed(octo: Octo, *arguments: str) -> dict[str, Any]:
    return {body["kind"]: body for body in yaml.safe_load_all(octo("install", *arguments).stdout)}


def test_it_prints_what_the_file_in_deploy_holds(octo: Octo) -> None:
    comment, _, rest = (ROOT / "deploy" / "octarbiter.yaml").read_text().partition("\n")

    assert comment.startswith("# ")
    assert octo("install").stdout == rest


def test_options_reach_the_objects(octo: Octo) -> None:
    found = printed(octo, "--image", "r/i:1", "--namespace", "elsewhere", "--replicas", "3")
    pod = found["Deployment"]["spec"]["template"]["spec"]

    assert found["Deployment"]["spec"]["replicas"] == 3
    assert pod["containers"][0]["image"] == "r/i:1"
    assert "--lease-namespace=elsewhere" in pod["containers"][0]["args"]
    assert found["Namespace"]["metadata"]["name"] == "elsewhere"
    assert {
        found[kind]["metadata"]["namespace"] for kind in ("ServiceAccount", "Role", "RoleBinding", "Deployment")
    } == {"elsewhere"}
    assert found["ClusterRoleBinding"]["subjects"][0]["namespace"] == "elsewhere"


def test_only_the_crds_if_only_they_are_wanted(octo: Octo) -> None:
    assert list(printed(octo, "--crds-only")) == ["CustomResourceDefinition"]


def test_the_controller_is_started_with_flags_that_exist() -> None:
    deployment = installation.objects("i")[-1]
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]

    assert {argument.partition("=")[0] for argument in arguments} <= {option.flag for option in settings.options()}


def test_the_controller_runs_without_privileges() -> None:
    pod = installation.objects("i")[-1]["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_no_rule_is_a_wildcard() -> None:
    rules = [*installation.RULES, *installation.LEASE_RULES]

    assert not any("*" in rule[part] for rule in rules for part in ("apiGroups", "resources", "verbs"))
