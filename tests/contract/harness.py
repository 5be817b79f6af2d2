"""How does a case ask a server, and what is kept of the answers?

    @case
    def getting_what_is_not_there_is_not_found(api: Api) -> None:
        api.get("configmaps/absent")

A case makes requests and checks nothing: its transcript on one server must equal that on the other.
"""

from __future__ import annotations

import http
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import yaml
from normalising import Normaliser

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

_HEADERS = (
    "Content-Type",
    "Warning",
    "Cache-Control",
    "Retry-After",
    "Allow",
    "Location",
    "Vary",
    "X-Content-Type-Options",
)
_SILENCE_S = 8.0
_PATIENCE_S = 10.0

Case = Callable[["Api"], None]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Register a case by its name."""
    assert function.__name__ not in CASES, function.__name__
    CASES[function.__name__] = function
    return function


def each(parameters: Mapping[str, Any] | Sequence[str]) -> Callable[[Callable[[Api, Any], None]], None]:
    """Register a family of cases: one for each parameter, called by its label."""
    pairs = parameters.items() if isinstance(parameters, Mapping) else [(each, each) for each in parameters]

    def register(function: Callable[[Api, Any], None]) -> None:
        for label, value in pairs:
            name = f"{function.__name__}[{label}]"
            assert name not in CASES, name
            CASES[name] = lambda api, value=value: function(api, value)  # type: ignore[misc]

    return register


class Answer:
    def __init__(self, code: int, headers: dict[str, str], body: Any) -> None:
        self.code = code
        self.headers = headers
        self.body = body

    def __getitem__(self, key: str) -> Any:
        return self.body[key]

    @property
    def revision(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])


class Server:
    """Where a server is and how it is spoken to."""

    def __init__(self, url: str, ca_pem: bytes, token: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port)
        self._tls = ssl.create_default_context(cadata=ca_pem.decode())
        self.token = token
        self._kept = self.connect()

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(*self._address, timeout=30.0, context=self._tls)

    def exchange(self, method: str, path: str, payload: bytes | None, headers: dict[str, str]) -> Answer:
        try:
            return self._exchange(method, path, payload, headers)
        except (ConnectionError, ssl.SSLError, http.client.HTTPException):
            # The server may end a connection that it kept, for instance after a body it did not want to read.
            self._kept.close()
            return self._exchange(method, path, payload, headers)

    def close(self) -> None:
        self._kept.close()

    def _exchange(self, method: str, path: str, payload: bytes | None, headers: dict[str, str]) -> Answer:
        self._kept.request(method, path, payload, headers)
        response = self._kept.getresponse()
        headers = chosen_headers(response)
        return Answer(response.status, headers, _decoded(response.read(), headers.get("Content-Type", "")))


class Stream:
    """The events of one watch."""

    def __init__(self, api: Api, response: http.client.HTTPResponse) -> None:
        self._api = api
        self._response = response

    def take(self, count: int) -> list[Any]:
        """The next events; fewer if the server ends the stream or says nothing for long."""
        events: list[Any] = []
        if self._response.status != http.HTTPStatus.OK:
            content_type = self._response.headers.get("Content-Type", "")
            events.append(_decoded(self._response.read(), content_type))
            count = 0
        while len(events) < count:
            try:
                line = self._response.readline()
            except (TimeoutError, ConnectionError, http.client.HTTPException):
                events.append("<nothing>")
                break
            if not line:
                events.append("<end>")
                break
            events.append(_decoded(line))
        self._api.note("events", events)
        return events

    def rest(self) -> list[Any]:
        """All events until the server ends the stream."""
        return self.take(1_000)


class Api:
    """One server, as one case sees it: in a namespace of its own, with every answer kept."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self._kept: list[tuple[str, Any]] = []
        self._seen: list[Any] = []
        self._has_account = False

    def transcript(self) -> list[str]:
        """The answers as lines of text, without what must differ."""
        normaliser = Normaliser()
        for body in self._seen:
            normaliser.see(body)
        lines = []
        for title, content in self._kept:
            text = json.dumps(normaliser.of(content), indent=1, sort_keys=True, ensure_ascii=False)
            lines += [f"== {normaliser.of_title(title)}", *text.splitlines()]
        return lines

    def path(self, path: str) -> str:
        """`configmaps/x` and `batch/v1/jobs/x` lie in the case's namespace, `/...` does not."""
        if path.startswith("/"):
            return path
        parts = path.split("/", 2)
        if len(parts) == 3 and parts[1][0] == "v" and parts[1][1:2].isdigit():
            return f"/apis/{parts[0]}/{parts[1]}/namespaces/{self.namespace}/{parts[2]}"
        return f"/api/v1/namespaces/{self.namespace}/{path}"

    def ask(self, method: str, path: str, body: Any = None, **how: str) -> Answer:
        """A request whose answer is not kept."""
        if path.startswith("pods") and not self._has_account:
            # Whoever makes it elsewhere is not there. Without a token, pods stay as they were written.
            self._has_account = True
            self.made("serviceaccounts", {"metadata": {"name": "default"}, "automountServiceAccountToken": False})
        payload = body if body is None or isinstance(body, bytes) else _encoded(body)
        answer = self.server.exchange(method, self.path(path), payload, self._headers(how, payload))
        self._seen.append(answer.body)
        return answer

    def request(self, method: str, path: str, body: Any = None, **how: str) -> Answer:
        """A request whose answer is kept. `how`: type, accept, agent, token, if_none_match."""
        answer = self.ask(method, path, body, **how)
        shown = {name: value for name, value in how.items() if name != "token" or len(value) < len("a real one")}
        title = f"{method} {path} {json.dumps(shown)}"
        self._kept.append((title, {"code": answer.code, "headers": answer.headers, "body": answer.body}))
        return answer

    def get(self, path: str, **how: str) -> Answer:
        return self.request("GET", path, **how)

    def post(self, path: str, body: Any = None, **how: str) -> Answer:
        return self.request("POST", path, body, **how)

    def put(self, path: str, body: Any = None, **how: str) -> Answer:
        return self.request("PUT", path, body, **how)

    def patch(self, path: str, body: Any = None, **how: str) -> Answer:
        return self.request("PATCH", path, body, **{"type": MERGE_PATCH, **how})

    def apply(self, path: str, body: Any = None, **how: str) -> Answer:
        return self.request("PATCH", path, body, **{"type": APPLY_PATCH, **how})

    def delete(self, path: str, body: Any = None, **how: str) -> Answer:
        return self.request("DELETE", path, body, **how)

    def given(self, method: str, path: str, body: Any = None, **how: str) -> Answer:
        """A step towards what the case is about: it must succeed, and what it says is not compared."""
        answer = self.ask(method, path, body, **how)
        assert answer.code < 300, f"{method} {path}: {answer.code} {answer.body}"
        return answer

    def made(self, path: str, body: Any) -> Answer:
        return self.given("POST", path, body)

    def until(self, method: str, path: str, body: Any, code: int) -> Answer:
        """Ask until the server answers so: a real one takes some things into account only after a moment."""
        last = time.monotonic() + _PATIENCE_S
        while True:
            answer = self.ask(method, path, body)
            if answer.code == code or time.monotonic() > last:
                return answer
            time.sleep(0.02)

    def note(self, title: str, content: Any) -> None:
        """Keep something beside answers."""
        self._seen.append(content)
        self._kept.append((title, content))

    @contextmanager
    def watching(self, path: str, **how: str) -> Iterator[Stream]:
        """A watch beside the other requests; how it begins is kept."""
        connection = self.server.connect()
        try:
            connection.request("GET", self.path(path), headers=self._headers(how, None))
            response = connection.getresponse()
            if connection.sock is not None:
                connection.sock.settimeout(_SILENCE_S)
            self.note(f"WATCH {path} {json.dumps(how)}", {"code": response.status, "headers": chosen_headers(response)})
            yield Stream(self, response)
        finally:
            connection.close()

    def watch(self, path: str, count: int, **how: str) -> list[Any]:
        with self.watching(path, **how) as stream:
            return stream.take(count)

    def _headers(self, how: Mapping[str, str], payload: bytes | None) -> dict[str, str]:
        headers = {"User-Agent": how.get("agent", "contract/1.0"), "Accept": how.get("accept", "application/json")}
        if token := how.get("token", self.server.token):
            headers["Authorization"] = f"Bearer {token}"
        if payload is not None and (content_type := how.get("type", "application/json")):
            headers["Content-Type"] = content_type
        if tag := how.get("if_none_match"):
            headers["If-None-Match"] = tag
        return {name: value for name, value in headers.items() if value}


def chosen_headers(response: http.client.HTTPResponse) -> dict[str, str]:
    found = {name: response.headers.get_all(name) for name in _HEADERS}
    return {name: " | ".join(sorted(values)) for name, values in found.items() if values}


def _encoded(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _decoded(body: bytes, content_type: str = "") -> Any:
    if content_type == "application/yaml":
        return yaml.safe_load(body)
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
