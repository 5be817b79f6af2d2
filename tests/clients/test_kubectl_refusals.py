"""What kubectl says, and how it ends, when something is wrong: word for word what it says before a real server."""

import pytest
from kubectl_runner import Kubectl


def manifest(kind: str = "ConfigMap", name: str = "wrong", **content: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **content}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("get pod nope", 'Error from server (NotFound): pods "nope" not found'),
        ("get nonsense", 'error: the server doesn\'t have a resource type "nonsense"'),
        ("delete configmap nope", 'Error from server (NotFound): configmaps "nope" not found'),
        ("create namespace default", 'Error from server (AlreadyExists): namespaces "default" already exists'),
        ("cordon nope", 'Error from server (NotFound): nodes "nope" not found'),
        ("exec nope -- ls", 'Error from server (NotFound): pods "nope" not found'),
        ("set image deployment/nope a=b", 'Error from server (NotFound): deployments.apps "nope" not found'),
        ("top nodes", "error: Metrics API not available"),
        (
            "delete namespace default",
            "Warning: deleting cluster-scoped resources, not scoped to the provided namespace\n"
            'Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted',
        ),
        (
            "get pods --field-selector=spec.nope=1",
            'Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field '
            'selector "spec.nope=1": field label not supported: spec.nope',
        ),
    ],
)
def test_a_refusal_is_worded_as_by_a_real_server(kubectl: Kubectl, arguments: str, said: str) -> None:
    assert kubectl.refusal(*arguments.split()) == said


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            manifest(dta={"a": "1"}),
            'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled '
            'as a ConfigMap: strict decoding error: unknown field "dta"',
        ),
        (
            manifest(data={"a": 1}),
            'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled '
            "as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (manifest("Pod", spec={}), 'The Pod "wrong" is invalid: spec.containers: Required value'),
        (
            manifest("Pod", "Bad_Name", spec={"containers": [{"name": "c", "image": "x"}]}),
            'The Pod "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain '
            "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            manifest("Gizmo") | {"apiVersion": "nobody.example.org/v1"},
            'error: resource mapping not found for name: "wrong" namespace: "" from "STDIN": no matches for kind '
            '"Gizmo" in version "nobody.example.org/v1"\nensure CRDs are installed first',
        ),
    ],
)
def test_a_manifest_is_refused_with_the_reason(kubectl: Kubectl, document: object, said: str) -> None:
    assert kubectl.refusal("apply", "-f", "-", input=document) == said
    assert kubectl("get", "configmap", "wrong", "--ignore-not-found") == ""


def test_a_running_pod_may_not_move(kubectl: Kubectl) -> None:
    kubectl("run", "web", "--image=nginx")
    kubectl("wait", "--for=condition=PodScheduled", "pod/web", "--timeout=30s")
    refusal = kubectl.refusal("patch", "pod", "web", "-p", '{"spec":{"nodeName":"other"}}')

    assert refusal.startswith(
        'The Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than '
        "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
        "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
        "was previously negative)"
    )


def test_whoever_is_not_known_must_log_in(kubectl: Kubectl) -> None:
    assert kubectl.refusal("--token=wrong", "get", "pods") == (
        "error: You must be logged in to the server (Unauthorized)"
    )


def test_a_namespace_that_is_not_there_is_named(kubectl: Kubectl) -> None:
    assert kubectl.refusal("-n", "nonsuch", "create", "configmap", "x") == (
        'error: failed to create configmap: namespaces "nonsuch" not found'
    )
    assert kubectl("-n", "nonsuch", "get", "pods") == ""
