"""How is a real API server asked in its own words? For the tools that record its answers.

Refusals are answers, too, and headers matter: neither is what the test bed's own client is for.
"""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from octarbiter.testing.kubernetes.controlplane import ControlPlane


class Asking:
    def __init__(self, plane: ControlPlane) -> None:
        parts = urlsplit(plane.url)
        context = ssl.create_default_context(cadata=plane.authority.pem.decode())
        self._http = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=30, context=context)
        self._token = plane.admin_token

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, "Content-Type": "application/json"}
        self._http.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        answer = self._http.getresponse().read()
        # What is not there yet is answered in plain text.
        return json.loads(answer) if answer[:1] in b"{[" else {"kind": "Status", "message": answer.decode()}
