"""Which variables a container gets, and what its command becomes."""

from __future__ import annotations

from typing import Any

import pytest
from nodeagent_builders import container, pod

from octarbiter.cluster.nodeagent import environment
from octarbiter.cluster.nodeagent.runtimes.protocol import Place

PLACE = Place("10.0.0.1", "127.64.0.9", {"cpu": "8", "memory": "16Gi"}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
CONFIG = {"c": {"A": b"1", "bad=name": b"x"}, "gone": None}
SECRETS = {"s": {"KEY": b"hid\xffden"}}


def resolved(inherited: dict[str, str] | None = None, **fields: Any) -> dict[str, str]:
    one = pod([container(**fields)], metadata={"labels": {"app": 'we"b'}, "annotations": {"n": "v"}})
    return environment.resolve(one, one.spec.containers[0], PLACE, CONFIG, SECRETS, inherited or {})


def value_of(source: dict[str, Any], **fields: Any) -> str | None:
    return resolved(env=[{"name": "X", "valueFrom": source}], **fields).get("X")


def test_of_our_own_environment_only_what_programs_need_is_passed_on() -> None:
    assert resolved({"PATH": "/bin", "AWS_SECRET": "x"}) == {
        "PATH": "/bin",
        "HOSTNAME": "web",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    }


def test_env_goes_over_env_from_and_later_sources_go_over_earlier_ones() -> None:
    sources = [{"configMapRef": {"name": "c"}}, {"prefix": "P_", "configMapRef": {"name": "c"}}]
    made = resolved(envFrom=sources, env=[{"name": "A", "value": "2"}])

    assert (made["A"], made["P_A"]) == ("2", "1")


def test_names_that_no_process_can_have_are_passed_over() -> None:
    assert "bad=name" not in resolved(envFrom=[{"configMapRef": {"name": "c"}}])


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("100$", "100$"),
        ("", ""),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, becomes: str) -> None:
    assert environment.expand(text, {"A": "1", "B": "2"}) == becomes


def test_a_variable_sees_those_before_it_and_not_those_after() -> None:
    made = resolved(env=[{"name": "A", "value": "$(B)"}, {"name": "B", "value": "2"}, {"name": "C", "value": "$(B)"}])

    assert (made["A"], made["C"]) == ("$(B)", "2")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", 'we"b'),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['n']", "v"),
        ("spec.nodeName", "n1"),
        ("status.hostIP", "10.0.0.1"),
        ("status.podIP", "127.64.0.9"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert value_of({"fieldRef": {"fieldPath": path}}) == value


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "512"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "16"),
        ({"resource": "requests.ephemeral-storage"}, "0"),
    ],
)
def test_resources_are_rounded_up_and_a_missing_limit_is_what_the_node_has(ref: dict[str, str], value: str) -> None:
    resources = {"limits": {"cpu": "1500m"}, "requests": {"memory": "512Mi"}}

    assert value_of({"resourceFieldRef": ref}, resources=resources) == value


def test_bytes_of_a_secret_reach_the_process_unchanged() -> None:
    value = value_of({"secretKeyRef": {"name": "s", "key": "KEY"}})

    assert value is not None
    assert value.encode("utf-8", "surrogateescape") == b"hid\xffden"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"configMapKeyRef": {"name": "gone", "key": "A"}}, 'configmap "gone" not found'),
        ({"configMapKeyRef": {"name": "c", "key": "Z"}}, "couldn't find key Z in ConfigMap team/c"),
        ({"secretKeyRef": {"name": "s", "key": "Z"}}, "couldn't find key Z in Secret team/s"),
        ({"fieldRef": {"fieldPath": "spec.nope"}}, "unsupported fieldPath: spec.nope"),
        ({"fileKeyRef": {"path": "x"}}, "valueFrom names no source"),
    ],
)
def test_what_is_missing_is_named(source: dict[str, Any], words: str) -> None:
    with pytest.raises(environment.Missing, match=words):
        value_of(source)


@pytest.mark.parametrize("ref", [{"name": "gone", "key": "A"}, {"name": "c", "key": "Z"}])
def test_what_is_optional_may_be_missing(ref: dict[str, str]) -> None:
    assert value_of({"configMapKeyRef": ref | {"optional": True}}) is None


def test_needs_names_everything_that_must_be_fetched() -> None:
    env = [
        {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c1", "key": "k"}}},
        {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "s1", "key": "k"}}},
    ]
    one = pod([container(env=env, envFrom=[{"configMapRef": {"name": "c2"}}, {"secretRef": {"name": "s2"}}])])

    needs = environment.needs(one.spec.containers[0])
    assert (needs.config_maps, needs.secrets) == ({"c1", "c2"}, {"s1", "s2"})


def test_command_and_arguments_are_expanded_and_arguments_alone_are_the_command() -> None:
    whole = pod([container(command=["echo", "$(A)"], args=["$(B)"])]).spec.containers[0]
    part = pod([container(command=[], args=["x"])]).spec.containers[0]

    assert environment.command_line(whole, {"A": "1", "B": "2"}) == ["echo", "1", "2"]
    assert environment.command_line(part, {}) == ["x"]
