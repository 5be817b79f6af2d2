"""Types of built-in kinds, from the generated table."""

from __future__ import annotations

import recorded

from octarbiter.cluster.apiserver import schemas
from octarbiter.cluster.apiserver.schemas import table
from octarbiter.cluster.apiserver.types import ListType, Presence, Shape, Type
from octarbiter.testing.kubernetes import versions


def type_at(kind: tuple[str, str, str], *path: str) -> Type:
    found = schemas.type_of(*kind)
    assert found is not None
    for name in path:
        below = found.element if name == "[]" else found.field(name)
        assert below is not None, (kind, path, name)
        found = below
    return found


POD = ("", "v1", "Pod")


def test_every_kind_of_the_table_has_a_type() -> None:
    kinds = table.kinds()

    assert all(type_at(kind).shape is Shape.OBJECT for kind in kinds if kind[2] != "WatchEvent")
    assert len(kinds) > 200


def test_the_table_describes_the_kubernetes_of_the_test_bed() -> None:
    assert table.version() == versions.KUBERNETES


def test_an_unknown_kind_has_none() -> None:
    assert schemas.type_of("", "v1", "Foo") is None
    assert schemas.type_of("apps", "v9", "Deployment") is None


def test_every_kind_that_the_tests_send_is_known() -> None:
    for case in recorded.of("defaults"):
        assert schemas.type_of(*recorded.kind_of(case["output"])) is not None, case["name"]


def test_a_type_is_built_once() -> None:
    assert schemas.type_of(*POD) is schemas.type_of(*POD)


def test_containers_merge_and_are_owned_by_name() -> None:
    containers = type_at(POD, "spec", "containers")

    assert (containers.shape, containers.list_type, containers.list_keys) == (Shape.LIST, ListType.MAP, ("name",))
    assert (containers.merge_key, containers.patch_strategies) == ("name", {"merge"})


def test_ports_of_a_service_merge_by_port_and_are_owned_by_port_and_protocol() -> None:
    ports = type_at(("", "v1", "Service"), "spec", "ports")

    assert ports.merge_key == "port"
    assert ports.list_keys == ("port", "protocol")


def test_volumes_are_merged_but_their_sources_replaced() -> None:
    assert type_at(POD, "spec", "volumes").patch_strategies == {"merge", "retainKeys"}


def test_finalizers_are_a_set_and_commands_a_whole() -> None:
    assert type_at(POD, "metadata", "finalizers").list_type is ListType.SET
    assert type_at(POD, "spec", "containers", "[]", "command").list_type is ListType.ATOMIC


def test_selectors_are_owned_as_a_whole() -> None:
    assert type_at(("apps", "v1", "Deployment"), "spec", "selector").atomic
    assert type_at(POD, "spec", "nodeSelector").atomic
    assert not type_at(POD, "spec").atomic


def test_special_values_have_shapes_of_their_own() -> None:
    container = ("spec", "containers", "[]")

    assert type_at(POD, *container, "resources", "limits", "cpu").shape is Shape.QUANTITY
    assert type_at(POD, *container, "livenessProbe", "httpGet", "port").shape is Shape.INT_OR_STRING
    assert type_at(POD, "metadata", "creationTimestamp").shape is Shape.TIME
    assert type_at(("coordination.k8s.io", "v1", "Lease"), "spec", "renewTime").shape is Shape.MICRO_TIME
    assert type_at(("", "v1", "Secret"), "data", "any").shape is Shape.BYTES
    assert type_at(("apps", "v1", "ControllerRevision"), "data").shape is Shape.ANY
    assert type_at(POD, "metadata", "managedFields", "[]", "fieldsV1").shape is Shape.ANY


def test_error_messages_can_name_go_types() -> None:
    assert type_at(POD, "spec").name == "v1.PodSpec"
    assert type_at(POD, "spec", "containers").name == "[]v1.Container"
    assert type_at(POD, "spec", "restartPolicy").name == "v1.RestartPolicy"
    assert type_at(("", "v1", "ConfigMap"), "data").name == "map[string]string"


def test_it_is_known_what_becomes_of_zeros() -> None:
    spec = type_at(POD, "spec").properties

    assert spec["hostNetwork"].presence is Presence.DROPPED
    assert spec["terminationGracePeriodSeconds"].presence is Presence.KEPT
    assert spec["containers"].presence is Presence.NULL
    assert type_at(POD, "spec", "containers", "[]", "resources").presence is Presence.FILLED


def test_types_may_have_circles() -> None:
    crd = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    schema = type_at(crd, "spec", "versions", "[]", "schema", "openAPIV3Schema")

    assert schema.properties["properties"].element is not None
    assert schema.properties["properties"].element.properties is schema.properties
