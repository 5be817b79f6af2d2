"""How is a list of TaskSets shown, once or as it changes?

Works on plain JSON: what the server says is shown whole, and an object that our types cannot read is listed, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from octarbiter.api import codec, errors, scheme
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import TASKSETS, Resource
from octarbiter.cli import exits, following, sending, text
from octarbiter.runtime import clock, requests
from octarbiter.runtime.client import Client

HEADER = ["NAME", "STATE", "PHASE", "RETRIES", "AGE"]
WIDE = ["QUEUE", "ROLES", "MESSAGE"]


class How(msgspec.Struct, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    selector: str = ""
    everywhere: bool = False
    form: str | None = None
    bare: bool = False
    """No line of column names."""


class Whole(Object, frozen=True):
    """A TaskSet of which nothing is interpreted."""

    spec: Json = {}
    status: Json = {}


WHOLE = Resource(TASKSETS.group, TASKSETS.version, TASKSETS.kind, TASKSETS.plural, True, Whole)


async def show(client: Client, namespace: str, how: How) -> None:
    if how.names:
        await _show_named(client, namespace, how)
        return
    raw = await client.list_raw(scheme.TASKSETS, "" if how.everywhere else namespace, label_selector=how.selector)
    found = [sending.without_bookkeeping(codec.decode(item, dict)) for item in raw.items]
    if how.form in ("json", "yaml"):
        whole = {"apiVersion": "v1", "kind": "List", "items": found}
        click.echo(text.to_json(whole) if how.form == "json" else text.to_yaml(whole), nl=False)
    elif found:
        _print(found, how)
    else:
        where = "the cluster" if how.everywhere else f"namespace {namespace}"
        click.echo(f"No TaskSets found in {where}.", err=True)


async def _show_named(client: Client, namespace: str, how: How) -> None:
    found: list[Json] = []
    missing: list[errors.NotFound] = []
    for name in how.names:
        try:
            found.append(await sending.answer_of(client, requests.get(scheme.TASKSETS, namespace, name)))
        except errors.NotFound as problem:
            missing.append(problem)
    if found:
        _print(found, how)
    if missing:
        raise exits.together([exits.failure_of(problem) for problem in missing])


async def watch(client: Client, namespace: str, how: How) -> None:
    """Each state as a line, or as a whole object, under columns as wide as the first lines needed."""
    selector = f"metadata.name={how.names[0]}" if len(how.names) == 1 else ""
    if how.names:
        for name in how.names:
            await client.get(WHOLE, namespace, name)  # what is not there is told, and not waited for
    changes = following.changes(
        client, WHOLE, "" if how.everywhere else namespace, label_selector=how.selector, field_selector=selector
    )
    least: list[int] = []
    async with aclosing(changes):
        async for batch in changes:
            bodies = [
                codec.to_json(seen)
                for _, seen in sorted(batch.items())
                if seen is not None and (not how.names or seen.metadata.name in how.names)
            ]
            if bodies:
                least = _print(bodies, how, least)


def _print(bodies: Sequence[Json], how: How, least: Sequence[int] = ()) -> list[int]:
    """The widths of the columns, for what comes later."""
    if how.form == "name":
        click.echo("\n".join(sending.short(body) for body in bodies))
        return []
    if how.form in ("json", "yaml"):
        click.echo(text.objects(bodies, how.form), nl=False)
        return []
    now = clock.SYSTEM.now()
    rows = [row(body, now, wide=how.form == "wide", with_namespace=how.everywhere) for body in bodies]
    if not how.bare and not least:
        rows.insert(0, header(wide=how.form == "wide", with_namespace=how.everywhere))
    click.echo("\n".join(text.columns(rows, least)))
    return [max(pair) for pair in zip(text.widths(rows), least or text.widths(rows), strict=True)]


def header(*, wide: bool, with_namespace: bool) -> list[str]:
    return [*(["NAMESPACE"] if with_namespace else []), *HEADER, *(WIDE if wide else [])]


def row(body: Json, now: datetime, *, wide: bool, with_namespace: bool) -> list[str]:
    metadata, spec, status = (_object(body.get(name)) for name in ("metadata", "spec", "status"))
    cells = [
        *([metadata.get("namespace")] if with_namespace else []),
        metadata.get("name"),
        "Terminating" if metadata.get("deletionTimestamp") else status.get("state"),
        status.get("phase"),
        status.get("totalRetriedCount", 0),
        text.age(_time(metadata.get("creationTimestamp")), now),
    ]
    if wide:
        cells += [spec.get("queue"), _roles(spec, status), text.line(str(status.get("stateMessage") or ""))]
    return [text.NOTHING if cell in (None, "") else str(cell) for cell in cells]


def _roles(spec: Json, status: Json) -> str:
    succeeded = {role.get("name"): role.get("succeeded", 0) for role in map(_object, status.get("roleStatus") or [])}
    roles = map(_object, spec.get("roles") or [])
    return ",".join(f"{r.get('name')}:{succeeded.get(r.get('name'), 0)}/{r.get('replicas', 1)}" for r in roles)


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError):
        return None
