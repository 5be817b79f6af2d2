"""kubectl and objects: every way to make, show, change and remove them. The words are those a real server leads to."""

import json
import re
from pathlib import Path

import pytest
from kubectl_runner import Kubectl

from octarbiter.testing.kubernetes import versions


def configmap(name: str = "settings", **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def settings(kubectl: Kubectl) -> str:
    kubectl("create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b=2")
    return "settings"


def data_of(kubectl: Kubectl, name: str = "settings") -> dict[str, str]:
    data: dict[str, str] = kubectl.json("get", "configmap", name).get("data", {})
    return data


# --- get


def test_what_was_created_is_shown_as_a_table(kubectl: Kubectl, settings: str) -> None:
    header, row = kubectl("get", "configmaps", settings).splitlines()

    assert header.split() == ["NAME", "DATA", "AGE"]
    assert row.split()[:2] == [settings, "2"]


def test_a_watch_prints_what_happens(kubectl: Kubectl, settings: str) -> None:
    watch = kubectl.start(
        "get", "configmap", settings, "--watch", "--output-watch-events", "-o=jsonpath={.type} {.object.data.a}{'\\n'}"
    )
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline() == "ADDED 1\n"
        kubectl("patch", "configmap", settings, "-p", '{"data":{"a":"7"}}')
        assert watch.stdout.readline() == "MODIFIED 7\n"
        kubectl("delete", "configmap", settings)
        assert watch.stdout.readline() == "DELETED 7\n"
    finally:
        watch.terminate()
        watch.communicate()


def test_a_watch_goes_on_with_rows_of_the_same_table(kubectl: Kubectl, settings: str) -> None:
    watch = kubectl.start("get", "configmap", settings, "--watch", "--label-columns=x")
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().split() == ["NAME", "DATA", "AGE", "X"]
        assert watch.stdout.readline().split()[:2] == [settings, "2"]
        kubectl("label", "configmap", settings, "x=y")
        assert watch.stdout.readline().split()[3:] == ["y"]
    finally:
        watch.terminate()
        watch.communicate()


def test_lists_come_in_pages_in_any_order_and_with_any_columns(kubectl: Kubectl) -> None:
    items = [configmap(f"item-{number}", n=str(9 - number)) for number in range(5)]
    kubectl("create", "-f", "-", input={"apiVersion": "v1", "kind": "List", "items": items})
    label = "--field-selector=metadata.name!=kube-root-ca.crt"

    assert kubectl("get", "cm", label, "--chunk-size=2", "-o=name").splitlines() == [
        f"configmap/item-{number}" for number in range(5)
    ]
    assert kubectl("get", "cm", label, "--sort-by=.data.n", "-o=custom-columns=:.metadata.name").split() == [
        f"item-{number}" for number in reversed(range(5))
    ]
    table = kubectl("get", "cm", label, "-o=custom-columns=WHO:.metadata.name,N:.data.n", "--chunk-size=3")
    assert table.splitlines()[:2] == ["WHO      N", "item-0   9"]


def test_objects_are_found_by_their_labels(kubectl: Kubectl, settings: str) -> None:
    kubectl("label", "configmap", settings, "tier=front")

    assert kubectl("get", "cm", "-l", "tier in (front,back)", "-o=name") == "configmap/settings"
    assert kubectl("get", "cm", "-l", "tier=front", "--show-labels").splitlines()[1].endswith("tier=front")
    assert kubectl("get", "cm", "-l", "tier=front", "-L", "tier").splitlines()[1].endswith("front")
    assert "configmap/settings" not in kubectl("get", "cm", "-l", "tier notin (front)", "-o=name").split()


def test_several_kinds_are_asked_for_at_once(kubectl: Kubectl, settings: str) -> None:
    kubectl("create", "secret", "generic", "hush", "--from-literal=p=1")

    assert kubectl("get", "cm/settings", "secret/hush", "-o=name").split() == ["configmap/settings", "secret/hush"]


# --- apply, diff, edit, replace


def test_apply_creates_then_changes_then_leaves_alone(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", input=configmap(a="1", b="2")) == "configmap/settings created"
    assert kubectl("apply", "-f", "-", input=configmap(a="1", b="2")) == "configmap/settings unchanged"
    assert kubectl("apply", "-f", "-", input=configmap(b="3")) == "configmap/settings configured"
    assert data_of(kubectl) == {"b": "3"}


def test_applying_on_the_server_says_who_else_owns_a_field(kubectl: Kubectl) -> None:
    assert (
        kubectl("apply", "--server-side", "-f", "-", input=configmap(a="1")) == "configmap/settings serverside-applied"
    )
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    refusal = kubectl.refusal(*other, input=configmap(a="2"))

    assert refusal.startswith('error: Apply failed with 1 conflict: conflict with "kubectl": .data.a\n')
    assert data_of(kubectl) == {"a": "1"}
    kubectl(*other, "--force-conflicts", input=configmap(a="2"))
    assert data_of(kubectl) == {"a": "2"}


@pytest.mark.parametrize("side", ["--server-side=false", "--server-side=true"])
def test_diff_shows_what_apply_would_change_and_changes_nothing(kubectl: Kubectl, side: str) -> None:
    kubectl("apply", side, "-f", "-", input=configmap(a="1"))
    shown = kubectl.run("diff", side, "-f", "-", input=configmap(a="2"))

    assert shown.returncode == 1, shown.stderr
    assert {'-  a: "1"', '+  a: "2"'} <= set(shown.stdout.splitlines())
    assert kubectl("diff", side, "-f", "-", input=configmap(a="1")) == ""


def test_a_dry_run_on_the_server_answers_in_full_and_keeps_nothing(kubectl: Kubectl) -> None:
    answer = kubectl.json("create", "configmap", "ghost", "--from-literal=a=1", "--dry-run=server")

    assert answer["metadata"]["uid"]
    assert kubectl.refusal("get", "configmap", "ghost").endswith('configmaps "ghost" not found')


def test_what_is_no_longer_applied_is_pruned(kubectl: Kubectl) -> None:
    def labelled(name: str) -> dict[str, object]:
        return configmap(name) | {"metadata": {"name": name, "labels": {"app": "pruned"}}}

    prune = ("apply", "--prune", "-l", "app=pruned", "--prune-allowlist=core/v1/ConfigMap", "-f", "-")
    assert kubectl(*prune, input=labelled("one")) == "configmap/one created"
    assert kubectl(*prune, input=labelled("two")).splitlines() == ["configmap/two created", "configmap/one pruned"]


def test_a_kustomization_is_applied(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("configMapGenerator: [{name: made, literals: [a=b]}]\n")
    created = kubectl("apply", "-k", str(tmp_path))

    assert re.fullmatch(r"configmap/made-\w+ created", created)
    assert kubectl("apply", "-k", str(tmp_path)) == created.replace("created", "unchanged")


def test_edit_sends_what_the_editor_left(kubectl: Kubectl, settings: str) -> None:
    edited = kubectl("edit", "configmap", settings, editor="sed -i '/^  a:/s/1/7/'")

    assert edited == "configmap/settings edited"
    assert data_of(kubectl) == {"a": "7", "b": "2"}
    assert kubectl.run("edit", "configmap", settings, editor="true").stderr == "Edit cancelled, no changes made.\n"


def test_replace_knows_when_somebody_was_faster(kubectl: Kubectl, settings: str) -> None:
    read = kubectl.json("get", "configmap", settings)
    assert kubectl("replace", "-f", "-", input=read | {"data": {"c": "3"}}) == "configmap/settings replaced"

    refusal = kubectl.refusal("replace", "-f", "-", input=read)
    assert refusal == (
        'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps '
        '"settings": the object has been modified; please apply your changes to the latest version and try again'
    )
    assert data_of(kubectl) == {"c": "3"}


def test_replace_by_force_makes_it_anew(kubectl: Kubectl, settings: str) -> None:
    uid = kubectl.json("get", "configmap", settings)["metadata"]["uid"]
    told = kubectl("replace", "--force", "-f", "-", input=configmap(z="1"))

    assert told.splitlines() == [
        kubectl.deleted('configmap "settings"'),
        "configmap/settings replaced",
    ]
    assert kubectl.json("get", "configmap", settings)["metadata"]["uid"] != uid


# --- patch, label, annotate


@pytest.mark.parametrize(
    ("kind", "patch", "after"),
    [
        ("strategic", '{"data":{"c":"3"}}', {"a": "1", "b": "2", "c": "3"}),
        ("merge", '{"data":{"a":null}}', {"b": "2"}),
        ("json", '[{"op":"move","from":"/data/a","path":"/data/z"}]', {"b": "2", "z": "1"}),
    ],
)
def test_patches_of_every_kind(kubectl: Kubectl, settings: str, kind: str, patch: str, after: dict[str, str]) -> None:
    assert kubectl("patch", "configmap", settings, f"--type={kind}", "-p", patch) == "configmap/settings patched"
    assert (
        kubectl("patch", "configmap", settings, "--type=merge", "-p", "{}") == "configmap/settings patched (no change)"
    )
    assert data_of(kubectl) == after


def test_labels_and_annotations_come_and_go(kubectl: Kubectl, settings: str) -> None:
    assert kubectl("label", "cm", settings, "x=y") == "configmap/settings labeled"
    assert kubectl.refusal("label", "cm", settings, "x=z") == (
        "error: 'x' already has a value (y), and --overwrite is false"
    )
    assert kubectl("label", "cm", settings, "x=z", "--overwrite") == "configmap/settings labeled"
    assert kubectl("label", "cm", settings, "x-") == "configmap/settings unlabeled"
    done = "annotated" if kubectl.minor > 27 else "annotate"
    assert kubectl("annotate", "cm", settings, "note=hi") == f"configmap/settings {done}"
    metadata = kubectl.json("get", "cm", settings)["metadata"]
    assert metadata["annotations"] == {"note": "hi"}
    assert "labels" not in metadata


# --- delete


def test_delete_takes_one_or_those_with_a_label_or_all(kubectl: Kubectl) -> None:
    for name in ("one", "two", "three", "four"):
        kubectl("create", "configmap", name)
    kubectl("label", "cm", "two", "three", "x=y")

    assert kubectl("delete", "cm", "one") == kubectl.deleted('configmap "one"')
    assert kubectl("delete", "cm", "-l", "x=y").splitlines() == [
        kubectl.deleted('configmap "three"'),
        kubectl.deleted('configmap "two"'),
    ]
    assert kubectl.deleted('configmap "four"') in kubectl("delete", "cm", "--all").splitlines()
    assert kubectl("delete", "cm", "four", "--ignore-not-found") == ""


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl, settings: str) -> None:
    assert kubectl("delete", "namespace", kubectl.namespace) == f'namespace "{kubectl.namespace}" deleted'
    assert kubectl.refusal("get", "cm", settings) == (
        f'Error from server (NotFound): namespaces "{kubectl.namespace}" not found'
    )


# --- what there is


def test_explain_knows_every_field_and_says_which_it_does_not(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "pod.spec.containers.image")

    assert re.match(r"KIND: +Pod\nVERSION: +v1\n\nFIELD: image <string>\n", explained)
    assert "Container image name." in explained
    assert re.match(r"GROUP: +octopus\.openi\.pcl\.cn\nKIND: +TaskSet\n", kubectl("explain", "taskset.spec.roles"))
    assert kubectl.refusal("explain", "job.spec.nope") == 'error: field "nope" does not exist'


def test_api_resources_lists_built_in_and_custom_kinds(kubectl: Kubectl) -> None:
    table = kubectl("api-resources")
    rows = {tuple(line.split()) for line in table.splitlines()}

    assert ("pods", "po", "v1", "true", "Pod") in rows
    assert ("jobs", "batch/v1", "true", "Job") in rows
    assert ("tasksets", "ts", "octopus.openi.pcl.cn/v1alpha1", "true", "TaskSet") in rows
    assert "namespaces" in kubectl("api-resources", "--namespaced=false", "--verbs=list", "-o=name").split()


def test_api_versions_lists_every_group(kubectl: Kubectl) -> None:
    assert {"v1", "batch/v1", "apps/v1", "octopus.openi.pcl.cn/v1alpha1"} <= set(kubectl("api-versions").split())


def test_server_and_client_say_their_versions(kubectl: Kubectl) -> None:
    version = kubectl.json("version")

    assert version["clientVersion"]["gitVersion"] == kubectl.version
    assert version["serverVersion"]["gitVersion"].startswith(versions.KUBERNETES)
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert json.loads(kubectl("get", "--raw", "/openapi/v2"))["swagger"] == "2.0"
