"""What `octo install` prints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from octarbiter.cli import exits, installation
from octarbiter.cli.deployments import Part
from octarbiter.runtime import settings
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.services.webhook import configuration

Octo = Callable[..., Result]
ROOT = Path(__file__).resolve().parents[3]


PARTS = {"controller": settings.Settings, "arbitrator": ArbitratorSettings}


def printed(octo: Octo, *arguments: str) -> dict[tuple[str, str], Any]:
    """By kind and name."""
    bodies = yaml.safe_load_all(octo("install", *arguments).stdout)
    return {(body["kind"], body["metadata"]["name"]): body for body in bodies}


def container(octo: Octo, part: str, *arguments: str) -> Any:
    return printed(octo, *arguments)["Deployment", f"octarbiter-{part}"]["spec"]["template"]["spec"]["containers"][0]


def test_it_prints_what_the_file_in_deploy_holds(octo: Octo) -> None:
    comment, _, rest = (ROOT / "deploy" / "octarbiter.yaml").read_text().partition("\n")

    assert comment.startswith("# ")
    assert octo("install").stdout == rest


@pytest.mark.parametrize("part", PARTS)
def test_options_reach_the_objects(octo: Octo, part: str) -> None:
    found = printed(octo, "--image", "r/i:1", "--namespace", "elsewhere", "--replicas", "3")
    name = f"octarbiter-{part}"
    deployment = found["Deployment", name]
    pod = deployment["spec"]["template"]["spec"]

    assert deployment["spec"]["replicas"] == 3
    assert pod["serviceAccountName"] == name
    assert pod["containers"][0]["image"] == "r/i:1"
    assert pod["containers"][0]["command"] == ["octo", part]
    assert "--lease-namespace=elsewhere" in pod["containers"][0]["args"]
    assert ("Namespace", "elsewhere") in found
    assert {
        found[kind, name]["metadata"]["namespace"] for kind in ("ServiceAccount", "Role", "RoleBinding", "Deployment")
    } == {"elsewhere"}
    assert found["ClusterRoleBinding", name]["subjects"][0]["namespace"] == "elsewhere"


def test_the_webhook_is_reached_through_its_service(octo: Octo) -> None:
    found = printed(octo, "-n", "elsewhere")
    service = found["Service", configuration.NAME]
    template = found["Deployment", "octarbiter-arbitrator"]["spec"]["template"]
    (port,) = service["spec"]["ports"]
    ports = {each["name"]: each["containerPort"] for each in template["spec"]["containers"][0]["ports"]}
    arguments = template["spec"]["containers"][0]["args"]

    assert service["metadata"]["namespace"] == "elsewhere"
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert (
        service["spec"]["selector"] != found["Deployment", "octarbiter-controller"]["spec"]["selector"]["matchLabels"]
    )
    assert port["port"] == configuration.PORT
    assert f"--webhook-address=:{ports[port['targetPort']]}" in arguments
    assert "--webhook-namespace=elsewhere" in arguments


def test_mode_and_policy_are_passed_on_and_absent_otherwise(octo: Octo) -> None:
    chosen = container(octo, "arbitrator", "--mode", "gate", "--policy", "proportion")["args"]

    assert {"--mode=gate", "--policy=proportion"} <= set(chosen)
    assert not any(word.startswith(("--mode", "--policy")) for word in container(octo, "arbitrator")["args"])
    assert not any(
        word.startswith(("--mode", "--policy")) for word in container(octo, "controller", "--mode=deny")["args"]
    )


def test_the_arbitrator_can_be_left_out(octo: Octo) -> None:
    found = printed(octo, "--no-arbitrator")

    assert ("Deployment", "octarbiter-controller") in found
    assert [name for _, name in found if "arbitrator" in name.partition(".")[0] or name == configuration.NAME] == []
    assert octo("install", "--no-arbitrator", "--mode", "deny").exit_code == exits.Exit.INVALID


def test_only_the_crds_if_only_they_are_wanted(octo: Octo) -> None:
    assert {kind for kind, _ in printed(octo, "--crds-only")} == {"CustomResourceDefinition"}


def test_the_older_name_of_a_queuejob_comes_on_request_only_and_with_a_warning(octo: Octo) -> None:
    def definitions(*arguments: str) -> set[str]:
        text = octo("install", "--crds-only", *arguments).stdout
        return {body["metadata"]["name"] for body in yaml.safe_load_all(text)}

    older = "tasksets.arbitrator.incubator.k8s.io"

    assert definitions("--arbitrator-taskset") - definitions() == {older}
    assert octo("install").stderr == ""
    assert f"`kubectl get taskset` will mean {older}" in octo("install", "--arbitrator-taskset").stderr


@pytest.mark.parametrize("part", PARTS)
def test_each_is_started_with_flags_that_exist_and_values_that_are_right(octo: Octo, part: str) -> None:
    words = [word.lstrip("-").partition("=") for word in container(octo, part, "--mode=deny", "--policy=drf")["args"]]
    flags = {name.replace("-", "_"): value if equals else "true" for name, equals, value in words}

    assert flags.keys() <= {option.name for option in settings.options(PARTS[part])}
    assert settings.parse_as(PARTS[part], flags, {})


@pytest.mark.parametrize("part", PARTS)
def test_each_runs_without_privileges(octo: Octo, part: str) -> None:
    pod = printed(octo)["Deployment", f"octarbiter-{part}"]["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("part", [installation.CONTROLLER, installation.ARBITRATOR], ids=lambda part: part.component)
def test_no_rule_is_a_wildcard(part: Part) -> None:
    rules = [*part.rules, *part.rules_at_home]

    assert not any("*" in rule[name] for rule in rules for name in ("apiGroups", "resources", "verbs"))
