"""What of an answer must differ between two servers, and what stands in its place?

Values that each server draws for itself (uids, revisions, times, generated names, addresses) are replaced by
placeholders that keep how they relate: what was equal stays equal, what grew stays growing.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_GENERATED = re.compile(r"\b([Gg]en)-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_CLUSTER_IP = re.compile(r"\b10\.96\.\d+\.\d+\b")
_OWN_ADDRESS = re.compile(r"\b127\.0\.0\.1:\d+\b")
_AGE = re.compile(r"^\d+(s|ms)( ago)?$")
_REVISION_IN_TEXT = re.compile(
    r"(current: |in object meta: |too old resource version: \d+ \(|ResourceVersion in (precondition: |record \())\d+"
)
_REVISION_IN_JSON = re.compile(r'("resourceVersion\\?":\\?")\d+')
_REVISION_IN_QUERY = re.compile(r"resourceVersion=(\d+)")
_CONTINUE_IN_QUERY = re.compile(r"continue=eyJ[\w=-]+")
_DUMP = re.compile(r"(core\.PodSpec\{|\n@@).*", re.DOTALL)
"""Go's comparison of two values: its form differs from run to run, so that nobody relies on it."""
_WORDS = re.compile(r"(?![Gg]en-)[A-Za-z:./]{0,60}")
"""Most texts are short and hold nothing to replace: they are let through at once."""
_NODE_PORTS = range(30000, 32768)
_LATELY = timedelta(days=2)


class Normaliser:
    """For all answers of one server in one case: `see` each of them first, then ask for each."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._revisions: set[int] = set()

    def see(self, body: Any) -> None:
        """Remember the revisions of objects; those of lists lie between them."""
        if isinstance(body, list):
            for each in body:
                self.see(each)
        elif isinstance(body, dict):
            revision = _revision(body) if not _is_collection(body) else _own_revision(body)
            if revision is not None:
                self._revisions.add(revision)
            for each in body.values():
                self.see(each)

    def of_title(self, title: str) -> str:
        """A request, whose query may name a revision or a page that the server gave before."""
        title = _CONTINUE_IN_QUERY.sub("continue=<token>", title)
        return _REVISION_IN_QUERY.sub(self._of_query, self._of_text(title))

    def of(self, body: Any) -> Any:
        match body:
            case dict():
                return self._of_dict(body)
            case list():
                return [self.of(each) for each in body]
            case str():
                return self._of_text(body)
        return body

    def _of_dict(self, body: dict[str, Any]) -> dict[str, Any]:
        found = {self._of_text(key): self.of(value) for key, value in body.items()}
        if (own := _own_revision(body)) is not None:
            found["resourceVersion"] = self._place(own, collection=False)
        revision = _revision(body)
        if revision is not None:
            found["metadata"]["resourceVersion"] = self._place(revision, collection=_is_collection(body))
        if isinstance(token := body.get("continue"), str):
            found["continue"] = _token(token)
        if isinstance(fields := found.get("managedFields"), list):
            # Writes of one second are ordered by manager, of two seconds by time: chance, which it was.
            found["managedFields"] = sorted(fields, key=lambda each: json.dumps(each, sort_keys=True))
        if isinstance(cells := found.get("cells"), list):
            found["cells"] = ["<age>" if isinstance(cell, str) and _AGE.match(cell) else cell for cell in cells]
        if isinstance(columns := found.get("columnDefinitions"), list):
            # What a column means, each server says in its own words.
            for column in columns:
                column["description"] = bool(column["description"])
        if found.get("nodePort") in _NODE_PORTS:
            found["nodePort"] = "<node port>"
        return found

    def _place(self, revision: int, *, collection: bool) -> str:
        """An object's revision is the n-th seen; a collection's is after the n-th. Other writers lie in between."""
        rank = sum(1 for each in self._revisions if each <= revision)
        return f"<not before the revision {rank}>" if collection else f"<revision {rank}>"

    def _of_query(self, found: re.Match[str]) -> str:
        revision = int(found[1])
        return f"resourceVersion={self._place(revision, collection=False) if revision in self._revisions else revision}"

    def _of_text(self, text: str) -> str:
        if _WORDS.fullmatch(text):
            return text
        text = _UID.sub(lambda found: self._uids.setdefault(found[0], f"<uid {len(self._uids) + 1}>"), text)
        text = _TIME.sub(_time, text)
        text = _GENERATED.sub(r"\1-<generated>", text)
        text = _CLUSTER_IP.sub("<cluster ip>", text)
        text = _OWN_ADDRESS.sub("<address>", text)
        text = _DUMP.sub("<dump>", text)
        text = _REVISION_IN_JSON.sub(r"\1<revision>", text)
        return _REVISION_IN_TEXT.sub(r"\1<revision>", text)


def _is_collection(body: dict[str, Any]) -> bool:
    return "items" in body or "rows" in body or _is_bookmark(body)


def _is_bookmark(body: dict[str, Any]) -> bool:
    metadata = body.get("metadata")
    return isinstance(metadata, dict) and "resourceVersion" in metadata and "uid" not in metadata


def _revision(body: dict[str, Any]) -> int | None:
    metadata = body.get("metadata")
    text = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return int(text) if isinstance(text, str) and text.isdigit() else None


def _own_revision(body: dict[str, Any]) -> int | None:
    """Of metadata that was kept alone."""
    text = body.get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isdigit() and "uid" in body else None


def _time(found: re.Match[str]) -> str:
    """Only times that are now: a time from a request must come back unchanged."""
    if abs(datetime.fromisoformat(found[0]) - datetime.now(UTC)) > _LATELY:
        return found[0]
    return "<time with fractions>" if found[1] else "<time>"


def _token(token: str) -> Any:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, binascii.Error):
        return token
    return {**content, "rv": "<revision>" if content.get("rv", 0) > 0 else content.get("rv")}
