"""What does a real API server say about definitions and custom objects?

`python -m tools.record_crd_validation` starts one, asks everything that `tests/unit/cluster/golden/*.yaml` asks, and
writes the answers next to the questions; the tests then hold our answers against them, without a server.
"""

from __future__ import annotations

import copy
import json
import re
import time
from pathlib import Path
from typing import Any

import yaml
from tools.asking import Asking

from octarbiter.testing.kubernetes.controlplane import ControlPlane

GOLDEN = Path(__file__).parents[1] / "tests" / "unit" / "cluster" / "golden"
GROUP = "cases.example.org"
_AT_ONCE = 40
"""Expressions per definition: the server bounds what all of one definition may cost."""

Json = dict[str, Any]


def definition(plural: str, schema: Json) -> Json:
    """A definition whose objects have `spec` of that schema."""
    root = {"type": "object", "properties": {"spec": schema}}
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}],
        },
    }


def changed(base: Json, changes: Json) -> Json:
    """The definition with other things at some places; `schema` stands for the schema of its version."""
    crd = copy.deepcopy(base)
    for path, value in changes.items():
        names = path.replace("schema", "spec.versions.0.schema.openAPIV3Schema", 1).split(".")
        if path.startswith("spec."):
            names = path.split(".")
        place: Any = crd
        for name in names[:-1]:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        if value is None:
            del place[names[-1]]
        else:
            place[names[-1]] = value
    return crd


WIDGETS = changed(
    definition("widgets", {"type": "object", "properties": {"name": {"type": "string"}}}),
    {"metadata.name": "widgets.example.org", "spec.group": "example.org"},
)


def main() -> None:
    with ControlPlane(controller_manager=False, scheduler=False) as plane:
        asking = Asking(plane)
        asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "cases"}})
        _write("crd_objects.json", _objects(asking))
        _write("crd_answers.json", _definitions(asking))
        _write("cel_answers.json", _expressions(asking))


def _write(name: str, answers: Any) -> None:
    (GOLDEN / name).write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


def _read(name: str) -> Any:
    return yaml.safe_load((GOLDEN / name).read_text())


def _objects(asking: Asking) -> list[Json]:
    cases = _read("crd_cases.yaml")
    for name, schema in cases["schemas"].items():
        _define(asking, definition(name, schema))
    answers = []
    for index, case in enumerate(cases["objects"]):
        created = _create(asking, case["schema"], f"case-{index}", case["create"])
        answers.append({"create": _outcome(created), "made": created})
    for name, schema in cases["then"].items():
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}.{GROUP}"
        stored = asking.ask("GET", path)
        stored["spec"]["versions"] = definition(name, schema)["spec"]["versions"]
        asking.ask("PUT", path, stored)
        _wait(asking, name, lambda: _create(asking, "stricter", "probe", {"other": 101}).get("kind") == "Status")
    for answer, case in zip(answers, cases["objects"], strict=True):
        made = answer.pop("made")
        if "update" in case and made.get("kind") != "Status":
            made["spec"] = case["update"]
            path = f"/apis/{GROUP}/v1/namespaces/cases/{case['schema']}/{made['metadata']['name']}"
            answer["update"] = _outcome(asking.ask("PUT", path, made))
    return answers


def _create(asking: Asking, plural: str, name: str, spec: Json) -> Json:
    body = {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": name}, "spec": spec}
    answer: Json = asking.ask("POST", f"/apis/{GROUP}/v1/namespaces/cases/{plural}", body)
    return answer


def _outcome(answer: Json) -> Json:
    """The causes of a refusal, or what was stored."""
    if answer.get("kind") == "Status":
        return {"causes": answer.get("details", {}).get("causes", []), "message": answer["message"]}
    return {"stored": answer["spec"]}


def _define(asking: Asking, crd: Json) -> None:
    answer = asking.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    if answer.get("kind") == "Status":
        raise SystemExit(f"the server refuses {crd['metadata']['name']}: {answer['message']}")
    plural = crd["spec"]["names"]["plural"]
    _wait(asking, plural, lambda: asking.ask("GET", f"/apis/{GROUP}/v1/{plural}").get("kind") != "Status")


def _wait(asking: Asking, what: str, is_so: Any) -> None:
    for _ in range(300):
        if is_so():
            return
        time.sleep(0.05)
    raise SystemExit(f"{what} is not ready")


def _definitions(asking: Asking) -> list[Json]:
    answers = []
    for case in _read("crd_definitions.yaml"):
        crd = changed(WIDGETS, case.get("set", {}))
        answer = asking.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", crd)
        causes = answer.get("details", {}).get("causes", []) if answer.get("kind") == "Status" else []
        answers.append({"says": case["says"], "definition": crd, "causes": causes})
    return answers


def _expressions(asking: Asking) -> Json:
    cases = _read("cel_cases.yaml")
    values = []
    for start in range(0, len(cases["values"]), _AT_ONCE):
        values += _values(asking, cases, start)
    mistakes = []
    for text in cases["mistakes"]:
        schema = {**cases["schema"], "x-kubernetes-validations": [{"rule": text}]}
        crd = definition("mistakes", schema)
        answer = asking.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", crd)
        causes = answer.get("details", {}).get("causes", []) if answer.get("kind") == "Status" else []
        mistakes.append({"rule": text, "messages": [cause["message"] for cause in causes]})
    return {"values": values, "mistakes": mistakes}


def _values(asking: Asking, cases: Json, start: int) -> list[Json]:
    """A rule that never holds says in its message what the expression is worth; one that cannot says `no value`."""
    chunk = dict(enumerate(cases["values"][start : start + _AT_ONCE], start))
    refused = _refused(asking, cases, chunk)
    rules = [_telling(text, number) for number, text in chunk.items() if number not in refused]
    plural = f"values{start}"
    _define(asking, definition(plural, {**cases["schema"], "x-kubernetes-validations": rules}))
    answer = _create(asking, plural, "case", cases["object"])
    told = [cause["message"].removeprefix("Invalid value: ") for cause in answer["details"]["causes"]]
    return [
        {"expression": text, "refused": refused[number]}
        if number in refused
        else {"expression": text, "value": _told(told, number)}
        for number, text in chunk.items()
    ]


def _refused(asking: Asking, cases: Json, chunk: dict[int, str]) -> dict[int, str]:
    """Which expressions the server does not even accept, and its words."""
    rules = [_telling(text, number) for number, text in chunk.items()]
    crd = definition("refused", {**cases["schema"], "x-kubernetes-validations": rules})
    answer = asking.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", crd)
    causes = answer.get("details", {}).get("causes", []) if answer.get("kind") == "Status" else []
    numbers = list(chunk)
    found = [(re.search(r"validations\[(\d+)\]", cause["field"]), cause["message"]) for cause in causes]
    return {numbers[int(match[1])]: message for match, message in found if match}


def _telling(text: str, number: int) -> Json:
    message = f"'#{number}: %s'.format([{text}])"
    return {"rule": "false", "messageExpression": message, "message": f"#{number} has no value"}


def _told(told: list[str], number: int) -> str | None:
    own = next((each for each in told if each.startswith((f"#{number}: ", f"#{number} "))), None)
    return own.removeprefix(f"#{number}: ") if own and own.startswith(f"#{number}: ") else None


if __name__ == "__main__":
    main()
