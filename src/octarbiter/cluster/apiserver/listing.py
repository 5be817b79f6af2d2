"""Which objects are in a list, and as of when?

A list is consistent: all its pages show the state of one revision, the first page's. The token for the next page holds
that revision and where to go on. Formats and words are the real server's, clients parse them.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import msgspec

from octarbiter.cluster.apiserver import objects, options, selectors, status
from octarbiter.cluster.apiserver.decoding import json_text
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.store.entries import Entry
from octarbiter.cluster.store.errors import Compacted, Future
from octarbiter.cluster.store.store import Store

_TOKEN_VERSION: Final = "meta.k8s.io/v1"  # noqa: S105
_INCONSISTENT: Final = -1
"""In place of a revision: go on with whatever there is now."""

_LEGAL: Final = re.compile("[A-Za-z0-9_-]*")
_BAD_TOKEN: Final = "invalid continue token: continue key is not valid"  # noqa: S105
_TOO_OLD_TO_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(msgspec.Struct, frozen=True):
    entries: Sequence[Entry]
    revision: int
    continue_: str = ""
    remaining: int | None = None


class Token(msgspec.Struct, frozen=True):
    v: str = ""
    rv: int = 0
    start: str = ""


async def page(store: Store, resource: Resource, namespace: str, wanted: options.Listing) -> Page:
    """Raises refusals."""
    prefix = resource.prefix(narrowed(resource, namespace, wanted.fields))
    if wanted.continue_:
        if wanted.resource_version not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        token = decode_token(wanted.continue_)
        revision = store.revision if token.rv == _INCONSISTENT else token.rv
        try:
            entries = await store.list_at(prefix, revision)
        except Compacted:
            again = _encode_token(Token(_TOKEN_VERSION, _INCONSISTENT, token.start))
            raise status.expired(_TOO_OLD_TO_CONTINUE, metadata={"continue": again}) from None
        except Future as future:
            raise status.version_too_large(future.asked, future.present) from None
        return _cut(entries, prefix, token.start, revision, resource, wanted)
    asked = options.revision(wanted.resource_version, of_list=True)
    if asked > store.revision:
        raise status.version_too_large(asked, store.revision)
    if asked and (wanted.match == "Exact" or (not wanted.match and wanted.limit > 0)):
        try:
            entries = await store.list_at(prefix, asked)
        except Compacted:
            raise status.expired("The resourceVersion for the provided list is too old.") from None
        return _cut(entries, prefix, "", asked, resource, wanted)
    name = wanted.fields.exact("metadata.name")
    if name is not None and (prefix != resource.root or not resource.namespaced):
        key = resource.key(prefix.removeprefix(resource.root).rstrip("/"), name)
        single = store.get(key)
        return _cut([single] if single else [], prefix, "", store.revision, resource, wanted)
    return _cut(store.list(prefix), prefix, "", store.revision, resource, wanted)


def narrowed(resource: Resource, namespace: str, fields: selectors.Fields) -> str:
    """The namespace that is left when the field selector names one, too."""
    if namespace or not resource.namespaced:
        return namespace
    chosen = fields.exact("metadata.namespace") or ""
    return "" if "/" in chosen else chosen


def is_chosen(value: bytes, resource: Resource, wanted: options.Listing) -> bool:
    if not wanted.labels and not wanted.fields:
        return True
    if not wanted.fields:
        return wanted.labels.matches(objects.meta(value).labels or {})
    seen = objects.glimpser(resource.selectable)(value)
    return wanted.labels.matches(seen.labels) and wanted.fields.matches(seen.field)


def decode_token(text: str) -> Token:
    """Raises a refusal (400)."""
    if (illegal := _first_illegal(text)) is not None:
        raise status.bad_request(f"{_BAD_TOKEN}: illegal base64 data at input byte {illegal}")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    try:
        token = msgspec.json.decode(raw, type=Token)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise status.bad_request(f"{_BAD_TOKEN}: {json_text.why_not(raw) or problem}") from None
    if token.v != _TOKEN_VERSION:
        what = f"{_BAD_TOKEN}: server does not recognize this encoded version {token.v}"
        raise status.bad_request(what)
    if token.rv == 0 or token.rv < _INCONSISTENT:
        what = f"{_BAD_TOKEN}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        raise status.bad_request(what)
    if not token.start:
        raise status.bad_request(f"{_BAD_TOKEN}: encoded start key empty (version meta.k8s.io/v1)")
    parts = token.start.removeprefix("/").rstrip("\0").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise status.bad_request(f"{_BAD_TOKEN}: {token.start}")
    return token


def _first_illegal(text: str) -> int | None:
    """Where it stops being what such tokens are written in."""
    legal = _LEGAL.match(text)
    assert legal is not None
    if legal.end() < len(text):
        return legal.end()
    return len(text) - 1 if len(text) % 4 == 1 else None


def _encode_token(token: Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def _cut(
    entries: Sequence[Entry], prefix: str, start: str, revision: int, resource: Resource, wanted: options.Listing
) -> Page:
    """So many of the chosen ones from `start` on, and how to go on."""
    first = bisect_left(entries, prefix + start.removeprefix("/"), key=lambda entry: entry.key) if start else 0
    everything = not wanted.labels and not wanted.fields
    if everything and not wanted.limit and not first:
        return Page(entries, revision)
    chosen: list[Entry] = []
    for position in range(first, len(entries)):
        entry = entries[position]
        if wanted.limit and len(chosen) == wanted.limit:
            last = "/" + chosen[-1].key.removeprefix(prefix)
            remaining = len(entries) - position if everything else None
            return Page(chosen, revision, _encode_token(Token(_TOKEN_VERSION, revision, last + "\0")), remaining)
        if everything or is_chosen(entry.value, resource, wanted):
            chosen.append(entry)
    return Page(chosen, revision)
