"""How does the test bed itself speak to its API server?

A blocking client of one kept connection, from the standard library: the bed must work when the client under test does
not.
"""

import http.client
import json
import ssl
import threading
from typing import Any
from urllib.parse import urlsplit

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class ApiError(Exception):
    """The server answered, and refused."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Connection:
    """Safe to share between threads; requests go one after the other."""

    def __init__(self, url: str, ca_pem: bytes, token: str, *, timeout_s: float = 30.0) -> None:
        parts = urlsplit(url)
        self._token = token
        self._lock = threading.Lock()
        context = ssl.create_default_context(cadata=ca_pem.decode())
        self._http = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout_s, context=context)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The decoded answer. OSError if there is no server, ApiError if it says no."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", "Content-Type": content_type}
        payload = None if body is None else json.dumps(body).encode()
        with self._lock:
            try:
                status, answer = self._send(method, path, payload, headers)
            except http.client.HTTPException as problem:
                raise OSError(f"{method} {path}: {problem!r}") from problem
        if status >= 400:
            raise ApiError(status, _message(answer))
        return json.loads(answer) if answer.startswith(b"{") else answer.decode(errors="replace")

    def answers(self, path: str) -> bool:
        try:
            self.request("GET", path)
        except (OSError, ApiError):
            return False
        return True

    def close(self) -> None:
        with self._lock:
            self._http.close()

    def _send(self, method: str, path: str, payload: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        kept = self._http.sock is not None
        try:
            return self._exchange(method, path, payload, headers)
        except (ConnectionError, ssl.SSLError, http.client.HTTPException):
            # A kept connection may have died unnoticed (the server was restarted); a fresh one tells the truth.
            if not kept:
                raise
            return self._exchange(method, path, payload, headers)

    def _exchange(self, method: str, path: str, payload: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            self._http.request(method, path, payload, headers)
            response = self._http.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._http.close()
            raise


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:500]
