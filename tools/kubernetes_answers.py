"""Ask a real API server again what the tests of the embedded one compare with.

`python -m tools.kubernetes_answers` starts the API server of the test bed, sends it every question in
`tests/unit/cluster/answers/` and writes its answers beside them. A new question is a new entry without an answer.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from octarbiter.testing.kubernetes import controlplane

Json = dict[str, Any]

DIRECTORY = Path(__file__).resolve().parent.parent / "tests/unit/cluster/answers"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_CHANGING = ("uid", "creationTimestamp", "resourceVersion", "managedFields")


class Server:
    def __init__(self, url: str, ca: str, token: str) -> None:
        parts = urlsplit(url)
        context = ssl.create_default_context(cadata=ca)
        self._http = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=30, context=context)
        self._token = token

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, "Content-Type": content_type}
        self._http.request(method, path, body, headers)
        return self._http.getresponse().read()

    def object(self, method: str, path: str, body: Any = None) -> Json:
        found: Json = json.loads(self.ask(method, path, None if body is None else json.dumps(body).encode()))
        return found


def defaulted(server: Server, case: Json) -> Json:
    """`path`, `input` -> `output`: the object as it would be kept."""
    return {**case, "output": _steady(server.object("POST", f"{case['path']}?dryRun=All", case["input"]))}


def refused(server: Server, case: Json) -> Json:
    """`path`, `old` if it is an update, `input` -> `message`, `causes`; none if it is accepted."""
    if old := case.get("old"):
        made = server.object("POST", case["path"], old)
        if made.get("kind") == "Status":
            raise ValueError(f"{case['name']}: {made['message']}")
        name = made["metadata"]["name"]
        changed = {**case["input"], "metadata": {**made["metadata"], **case["input"].get("metadata", {})}}
        answer = server.object("PUT", f"{case['path']}/{name}?dryRun=All", changed)
        _remove(server, f"{case['path']}/{name}")
    else:
        answer = server.object("POST", f"{case['path']}?dryRun=All", case["input"])
    is_status = answer.get("kind") == "Status"
    causes = answer.get("details", {}).get("causes", []) if is_status else []
    return {**case, "reason": answer.get("reason", "") if is_status else "", "causes": causes}


def decoded(server: Server, case: Json) -> Json:
    """`path`, `text`, `content_type` -> `message`; empty if it is accepted."""
    text, content_type = case["text"].encode(), case["content_type"]
    answer = json.loads(server.ask("POST", f"{case['path']}?dryRun=All&fieldValidation=Strict", text, content_type))
    return {**case, "message": answer["message"] if answer["kind"] == "Status" else ""}


def encoded(server: Server, case: Json) -> Json:
    """`path`, `input` -> `protobuf`, `json`: two answers that say the same."""
    made = server.object("POST", case["path"], case["input"])
    if "name" not in made.get("metadata", {}):
        # A review is an answer and is not kept: it says the same twice.
        asked = json.dumps(case["input"]).encode()
        answer = server.ask("POST", case["path"], asked, accept=_PROTOBUF)
        return {**case, "protobuf": base64.b64encode(answer).decode(), "json": made}
    where = f"{case['path']}/{made['metadata']['name']}"
    answer = server.ask("GET", where, accept=_PROTOBUF)
    kept = server.object("GET", where)
    _remove(server, where)
    return {**case, "protobuf": base64.b64encode(answer).decode(), "json": kept}


def _remove(server: Server, where: str) -> None:
    server.object("DELETE", where, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    # Nobody is there who would do what finalizers wait for.
    server.ask("PATCH", where, b'{"metadata":{"finalizers":null}}', "application/merge-patch+json")


def _steady(answer: Json) -> Json:
    metadata = {key: value for key, value in answer["metadata"].items() if key not in _CHANGING}
    return {**answer, "metadata": metadata}


QUESTIONS = {"defaults": defaulted, "refusals": refused, "decoding": decoded, "protobuf": encoded}


def refresh(server: Server) -> None:
    for name, ask in QUESTIONS.items():
        file = DIRECTORY / f"{name}.json"
        cases = [ask(server, case) for case in json.loads(file.read_text())]
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        file.write_text(f"[\n{lines}\n]\n")
        print(f"asked {len(cases)} questions of {file.name}")


def main() -> int:
    with controlplane.ControlPlane(controller_manager=False, scheduler=False, stream=sys.stderr) as plane:
        refresh(Server(plane.url, plane.authority.pem.decode(), plane.admin_token))
    return 0


if __name__ == "__main__":
    sys.exit(main())
