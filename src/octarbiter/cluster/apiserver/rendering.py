"""How do stored objects look in the form a client wants?

Whole objects leave as the bytes they are stored as, spliced into their envelope; only tables, metadata and YAML are
worth decoding for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import yaml

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import objects, status, tables
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.apiserver.listing import Page
from octarbiter.cluster.apiserver.negotiation import YAML, Form, View

_Dumper: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def current(value: bytes, served: Served, revision: int) -> bytes:
    """The object as the present rules want it."""
    if revision >= served.settled_since:
        return value
    obj = objects.loaded(value, served.resource)
    served.model.refresh(obj)
    return objects.stored(obj, served.resource)


def one(value: bytes, served: Served, form: Form, include: tables.Include, now: datetime) -> bytes:
    if served.settled_since:
        value = current(value, served, int(objects.meta(value).resource_version))
    if form.view is View.WHOLE:
        return finished(objects.shown(value, served.resource), form)
    if form.view is View.TABLE:
        obj = objects.loaded(value, served.resource)
        list_meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return finished(objects.encode(table([obj], served, form, include, now, list_meta)), form)
    if form.view is View.METADATA_LIST:
        raise status.other_view(form.view, "not a list", served.resource.go_type)
    return finished(objects.encode(metadata_only(value, form)), form)


def many(page: Page, served: Served, form: Form, include: tables.Include, now: datetime) -> bytes:
    resource = served.resource
    list_meta: Json = {"resourceVersion": str(page.revision)}
    if page.continue_ or (resource.custom and form.view is View.WHOLE):
        list_meta["continue"] = page.continue_
        if page.remaining is not None:
            list_meta["remainingItemCount"] = page.remaining
    values = (current(entry.value, served, entry.revision) for entry in page.entries)
    if not served.settled_since:
        values = (entry.value for entry in page.entries)
    if form.view is View.TABLE:
        shown = [objects.loaded(value, resource) for value in values]
        return finished(objects.encode(table(shown, served, form, include, now, list_meta)), form)
    if form.view is View.METADATA:
        raise status.other_view(form.view, "a list", f"{served.resource.go_type}List")
    if form.view is View.METADATA_LIST:
        envelope = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": list_meta,
            "items": [metadata_only(value, form) for value in values],
        }
        return finished(objects.encode(envelope), form)
    if resource.custom:
        head = objects.head(resource)
        items: Iterable[bytes] = (head + value[1:] for value in values)
    else:
        items = values if not resource.stored_as else (objects.bare(value, resource) for value in values)
    start = objects.encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": list_meta})
    return finished(b"".join((start[:-1], b',"items":[', b",".join(items), b"]}")), form)


def plain(obj: Json, form: Form) -> bytes:
    """What is no object of a resource and has no other view: a Status."""
    return finished(objects.encode(obj), form)


def passing(obj: Json, form: Form, include: tables.Include, now: datetime) -> bytes:
    """What is shown and not stored: a Scale, a review."""
    group, kind = obj["apiVersion"].partition("/")[0], obj["kind"]
    if form.view is View.METADATA_LIST:
        raise status.other_view(form.view, "not a list", f"{group.partition('.')[0]}.{kind}")
    if form.view is View.METADATA:
        obj = metadata_only(objects.encode(obj), form)
    elif form.view is View.TABLE:
        list_meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        obj = tables.render(group, kind, [obj], now, include=include, list_meta=list_meta, version=form.version)
    return finished(objects.encode(obj), form)


def table(
    shown: Sequence[Json],
    served: Served,
    form: Form,
    include: tables.Include,
    now: datetime,
    list_meta: Json,
    *,
    headers: bool = True,
) -> Json:
    resource = served.resource
    return tables.render(
        resource.group,
        resource.kind,
        shown,
        now,
        columns=served.columns,
        include=include,
        list_meta=list_meta,
        headers=headers,
        version=form.version,
    )


def metadata_only(value: bytes, form: Form) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": _metadata.decode(value).metadata,
    }


def finished(body: bytes, form: Form) -> bytes:
    if form.media_type == YAML:
        text: str = yaml.dump(msgspec.json.decode(body), Dumper=_Dumper, allow_unicode=True)
        return text.encode()
    if form.pretty:
        return msgspec.json.format(body, indent=2)
    return body


class _OnlyMetadata(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_metadata: Final = msgspec.json.Decoder(_OnlyMetadata)
