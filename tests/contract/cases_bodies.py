"""Bodies: content types, YAML, fields that nobody knows, and what is no object at all."""

from __future__ import annotations

import base64

from furniture import GADGETS, config_map, gadget, job, pod
from harness import MERGE_PATCH, PARTIAL, TABLE, Api, case, each

_YAML = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: value\n"
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@case
def yaml_is_understood_and_spoken(api: Api) -> None:
    api.post("configmaps", _YAML, type="application/yaml")
    api.get("configmaps/a", accept="application/yaml")
    api.get("configmaps/absent", accept="application/yaml")
    api.put("configmaps/a", _YAML.replace("value", "other"), type="application/yaml")


@each(
    {
        "a tab": "apiVersion: v1\n\tkind: x\n",
        "a list": "- a\n- b\n",
        "two documents": _YAML + "---\n" + _YAML,
        "open quotes": 'a: "b\n',
        "a wrong type": _YAML.replace("value", "{}"),
        "a boolean word": _YAML.replace("value", "yes"),
        "a number": _YAML.replace("value", "1"),
        "a duplicate": _YAML + "  key: again\n",
        "an alias": "a: &a [x]\nb: *a\n",
    }
)
def yaml_that_is_none(api: Api, body: str) -> None:
    api.post("configmaps", body, type="application/yaml")


@each(
    {
        "empty": "",
        "half": '{"kind":',
        "a list": "[]",
        "a text": '"text"',
        "null": "null",
        "a number": "1",
        "an empty object": "{}",
        "another kind": '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}',
        "another version": '{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}}',
        "another group": '{"apiVersion":"batch/v1","kind":"ConfigMap","metadata":{"name":"a"}}',
        "an unknown kind": '{"apiVersion":"v1","kind":"Nonsense","metadata":{"name":"a"}}',
        "no kind": '{"metadata":{"name":"a"}}',
        "kind without version": '{"kind":"ConfigMap","metadata":{"name":"a"}}',
        "version without kind": '{"apiVersion":"v1","metadata":{"name":"a"}}',
        "more after it": '{"metadata":{"name":"a"}} more',
        "a number as text": '{"metadata":{"name":"a"},"data":{"key":1}}',
        "a text as map": '{"metadata":{"name":"a"},"data":"x"}',
        "metadata as text": '{"metadata":"x"}',
        "a name as number": '{"metadata":{"name":1}}',
        "labels as list": '{"metadata":{"name":"a","labels":[]}}',
        "a bad time": '{"metadata":{"name":"a","creationTimestamp":"yesterday"}}',
        "null metadata": '{"metadata":null}',
        "null data": '{"metadata":{"name":"a"},"data":null}',
        "a null value": '{"metadata":{"name":"a"},"data":{"key":null}}',
        "bad utf-8": b'{"metadata":{"name":"a"},"data":{"key":"\xff"}}',
        "bad base64": '{"metadata":{"name":"a"},"binaryData":{"key":"!"}}',
        "a bad escape": '{"metadata":{"name":"\\q"}}',
        "very deep": "[" * 20000,
    }
)
def json_that_is_no_config_map(api: Api, body: str | bytes) -> None:
    api.post("configmaps", body)


@each(
    {
        "no kind": '{"metadata":{"name":"a"},"spec":{"size":1}}',
        "no version": '{"kind":"Gadget","metadata":{"name":"a"},"spec":{"size":1}}',
        "another kind": '{"apiVersion":"contract.example.com/v1","kind":"Nonsense","metadata":{"name":"a"}}',
        "another version": '{"apiVersion":"contract.example.com/v2","kind":"Gadget","metadata":{"name":"a"}}',
        "an older version": '{"apiVersion":"contract.example.com/v1beta1","kind":"Gadget","metadata":{"name":"a"}}',
        "half": '{"kind":',
        "empty": "",
        "a list": "[]",
        "null": "null",
        "metadata as text": '{"apiVersion":"contract.example.com/v1","kind":"Gadget","metadata":"x"}',
        "labels as list": '{"apiVersion":"contract.example.com/v1","kind":"Gadget","metadata":{"labels":[]}}',
        "a label as number": (
            '{"apiVersion":"contract.example.com/v1","kind":"Gadget","metadata":{"name":"a","labels":{"a":1}}}'
        ),
    }
)
def json_that_is_no_gadget(api: Api, body: str) -> None:
    api.post(GADGETS, body)


@each(
    {
        "an int as text": {"spec": {"parallelism": "2", "template": {}}},
        "a bool as text": {"spec": {"suspend": "yes", "template": {}}},
        "a float as int": {"spec": {"parallelism": 1.5, "template": {}}},
        "a large int": {"spec": {"parallelism": 99999999999, "template": {}}},
        "an object as list": {"spec": {"template": {"spec": {"containers": {}}}}},
        "a quantity": {
            "spec": {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "x"}}}]}}}
        },
        "a list as object": {"spec": []},
    }
)
def types_that_do_not_fit(api: Api, body: dict[str, object]) -> None:
    api.post("batch/v1/jobs", {"metadata": {"name": "a"}, **body})


@each(["Strict", "Warn", "Ignore", "", "nonsense"])
def fields_that_nobody_knows(api: Api, validation: str) -> None:
    query = f"?fieldValidation={validation}" if validation else ""
    body = pod("a")
    body["spec"]["nonsense"] = 1
    body["spec"]["containers"][0]["more"] = {"deep": 1}
    body["metadata"]["other"] = 2
    body["extra"] = []
    answer = api.ask("POST", f"pods{query}", body)
    api.note("answer", [answer.code, answer.headers, answer.body if answer.code >= 300 else "made"])
    answer = api.ask("POST", f"{GADGETS}{query}", gadget("a", nonsense=1, nested={"more": 2}) | {"extra": 1})
    api.note("answer", [answer.code, answer.headers, answer.body if answer.code >= 300 else answer["spec"]])
    answer = api.ask("POST", f"configmaps{query}", '{"metadata":{"name":"a","name":"b"},"data":{"x":"1","x":"2"}}')
    api.note("answer", [answer.code, answer.headers, answer.body])


@each(["Strict", "Warn", "Ignore"])
def fields_that_nobody_knows_in_updates_and_patches(api: Api, validation: str) -> None:
    api.made("configmaps", config_map("a"))
    api.made(GADGETS, gadget("a"))
    query = f"?fieldValidation={validation}"
    api.put(f"configmaps/a{query}", config_map("a", nonsense=1))
    api.patch(f"configmaps/a{query}", {"nonsense": 1, "metadata": {"more": 1}})
    api.patch(f"configmaps/a{query}", [{"op": "add", "path": "/x", "value": 1}], type="application/json-patch+json")
    api.patch(f"configmaps/a{query}", {"nonsense": 1}, type="application/strategic-merge-patch+json")
    api.patch(f"{GADGETS}/a{query}", {"spec": {"nonsense": 1}})
    api.apply(f"configmaps/a{query}&fieldManager=m", config_map("a", nonsense=1))


@case
def upper_case_fields_are_not_known(api: Api) -> None:
    api.post("configmaps?fieldValidation=Strict", {"metadata": {"name": "a"}, "Data": {"key": "value"}})
    api.post("configmaps", {"Metadata": {"name": "a"}})


@each(["text/plain", "application/xml", "application/cbor", "nonsense", "application/json; charset=utf-8", "", "*/*"])
def a_content_type(api: Api, content_type: str) -> None:
    api.post("configmaps", config_map("a"), type=content_type)
    api.put("configmaps/a", config_map("a"), type=content_type)
    api.patch("configmaps/a", {"data": {"x": "y"}}, type=content_type)


@each(
    [
        "text/plain",
        "application/xml",
        "text/plain, application/json",
        "*/*",
        "application/*",
        "",
        "application/json;q=0.5",
        "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        "application/json;as=Table;g=meta.k8s.io;v=v9,application/json",
    ]
)
def an_accept_header(api: Api, accept: str) -> None:
    api.made("configmaps", config_map("a"))
    api.made(GADGETS, gadget("a"))
    api.get("configmaps/a", accept=accept)
    api.get(f"{GADGETS}/a", accept=accept)


@case
def custom_objects_are_not_spoken_in_protobuf(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.get(f"{GADGETS}/a", accept=_PROTOBUF)
    api.get(GADGETS, accept=_PROTOBUF)


@case
def a_view_of_a_thing_without_one_is_not_acceptable(api: Api) -> None:
    review = {"spec": {"resourceAttributes": {"verb": "get"}}}
    for accept in (TABLE.split(",")[0], PARTIAL.split(",")[0]):
        api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, accept=accept)


@case
def a_protobuf_body_is_decoded(api: Api) -> None:
    # A ConfigMap called "a" with one value, as client-go writes it.
    raw = b"\x0a\x0f\x0a\x01a\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x12\x0c\x0a\x03key\x12\x05value"
    unknown = b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12" + bytes([len(raw)]) + raw + b"\x1a\x00\x22\x00"
    api.post("configmaps", b"k8s\x00" + unknown, type=_PROTOBUF)
    api.get("configmaps/a")


@each({"no magic": b"nonsense", "magic alone": b"k8s\x00", "cut off": b"k8s\x00\x0a\x0f\x0a\x02v1", "empty": b""})
def a_protobuf_body_that_is_none(api: Api, body: bytes) -> None:
    api.post("configmaps", body, type=_PROTOBUF)


@case
def a_body_that_is_too_large_is_refused(api: Api) -> None:
    body = config_map("a", data={"key": "x" * (3 * 1024 * 1024 - 90)})
    answer = api.ask("POST", "configmaps", body)
    api.note("answer", [answer.code, answer.body.get("reason"), answer.body.get("message")])
    api.post("configmaps", config_map("a", data={"key": "x" * (1024 * 1024)}))


@case
def numbers_come_back_as_they_were(api: Api) -> None:
    free = {"int": 1, "float": 1.5, "large": 9007199254740993, "exponent": 1e3, "zero": 0, "minus": -1, "text": "1"}
    api.post(GADGETS, gadget("a", free=free, ratio=1, port=8080))
    api.get(f"{GADGETS}/a")


@case
def texts_come_back_as_they_were(api: Api) -> None:
    data = {"quotes": '"', "lines": "a\nb\r\n", "signs": "<&>\u2028", "far": "\U0001f419", "control": "\x01"}
    api.post("configmaps", config_map("a", data=data))


@case
def times_are_brought_into_one_form(api: Api) -> None:
    spec = {"acquireTime": "2020-01-02T03:04:05.123456+00:00", "renewTime": "2020-01-02T03:04:05.1Z"}
    api.post("coordination.k8s.io/v1/leases", {"metadata": {"name": "a"}, "spec": spec})
    api.post(
        "coordination.k8s.io/v1/leases", {"metadata": {"name": "b"}, "spec": {"renewTime": "2020-01-02T03:04:05Z"}}
    )
    api.post("coordination.k8s.io/v1/leases", {"metadata": {"name": "c"}, "spec": {"renewTime": "2020-01-02"}})
    api.post("configmaps", {"metadata": {"name": "a", "creationTimestamp": "2020-01-02T03:04:05+02:00"}})


@case
def quantities_are_brought_into_one_form(api: Api) -> None:
    limits = {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": 1.5e9, "example.com/x": 2}
    body = pod(
        "a", containers=[{"name": "main", "image": "x", "resources": {"limits": limits, "requests": {"cpu": 0.1}}}]
    )
    answer = api.ask("POST", "pods", body)
    api.note("resources", answer["spec"]["containers"][0]["resources"])


@case
def secrets_hold_bytes(api: Api) -> None:
    api.post(
        "secrets", {"metadata": {"name": "a"}, "stringData": {"key": "value", "both": "text"}, "data": {"both": "AA=="}}
    )
    api.post("secrets", {"metadata": {"name": "b"}, "data": {"key": base64.b64encode(b"\x00\xff").decode()}})
    api.post("secrets", {"metadata": {"name": "c"}, "data": {"key": "not base64"}})
    api.post("secrets", {"metadata": {"name": "d"}, "data": {"key": 1}})
    api.patch("secrets/a", {"stringData": {"more": "x"}}, type=MERGE_PATCH)


@case
def jobs_are_read_from_yaml(api: Api) -> None:
    text = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  parallelism: 0x2\n"
        "  template:\n    spec: {restartPolicy: Never, containers: [{name: main, image: x, command: [echo, 'on']}]}\n"
    )
    answer = api.ask("POST", "batch/v1/jobs", text, type="application/yaml")
    api.note("made", [answer.code, answer.body.get("spec", {}).get("parallelism"), answer.body.get("message")])
    api.post("batch/v1/jobs?dryRun=All&fieldValidation=Strict", job("b", nonsense=1))
