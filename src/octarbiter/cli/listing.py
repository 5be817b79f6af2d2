"""How is a list of objects shown, once or as it changes?

Works on plain JSON: what the server says is shown whole, and an object that our types cannot read is listed, too. Which
columns a kind has, stands in `columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

import click
import msgspec

from octarbiter.api import codec, errors
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import Resource
from octarbiter.cli import access, exits, following, sending, text
from octarbiter.runtime import clock, requests
from octarbiter.runtime.client import Client


class How(msgspec.Struct, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    selector: str = ""
    everywhere: bool = False
    form: str | None = None
    bare: bool = False
    """No line of column names."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What is listed, and how one of it becomes a line."""

    resource: Resource[Any]
    header: list[str]
    wide: list[str]
    """More columns, with `-o wide`."""
    cells: Callable[[Json, datetime, bool], list[Any]]
    """Of the object, at this moment, wide or not; nothing where there is nothing to say."""

    def columns(self, *, wide: bool, with_namespace: bool) -> list[str]:
        return [*(["NAMESPACE"] if with_namespace else []), *self.header, *(self.wide if wide else [])]

    def row(self, body: Json, now: datetime, *, wide: bool, with_namespace: bool) -> list[str]:
        metadata = body.get("metadata")
        place = [metadata.get("namespace") if isinstance(metadata, dict) else None] if with_namespace else []
        cells = [*place, *self.cells(body, now, wide)]
        return [text.NOTHING if cell in (None, "") else str(cell) for cell in cells]


class Whole(Object, frozen=True):
    """An object of which nothing is interpreted."""

    spec: Json = {}
    status: Json = {}


def run(
    listed: Listed, names: Sequence[str], *, everywhere: bool, selector: str, watch: bool, form: str | None, bare: bool
) -> None:
    """What a command with `arguments.listed` does."""
    if names and (everywhere or selector):
        raise click.UsageError("names cannot be combined with --all-namespaces or --selector")
    how = How(names=tuple(names), selector=selector, everywhere=everywhere, form=form, bare=bare)

    async def deed(client: Client, namespace: str) -> None:
        await (follow if watch else show)(client, namespace, listed, how)

    access.run(deed)


async def show(client: Client, namespace: str, listed: Listed, how: How) -> None:
    if how.names:
        await _show_named(client, namespace, listed, how)
        return
    raw = await client.list_raw(listed.resource, "" if how.everywhere else namespace, label_selector=how.selector)
    found = [sending.without_bookkeeping(codec.decode(item, dict)) for item in raw.items]
    if how.form in ("json", "yaml"):
        whole = {"apiVersion": "v1", "kind": "List", "items": found}
        click.echo(text.to_json(whole) if how.form == "json" else text.to_yaml(whole), nl=False)
    elif found:
        _print(found, listed, how)
    else:
        where = "the cluster" if how.everywhere else f"namespace {namespace}"
        click.echo(f"No {listed.resource.kind}s found in {where}.", err=True)


async def _show_named(client: Client, namespace: str, listed: Listed, how: How) -> None:
    found: list[Json] = []
    missing: list[errors.NotFound] = []
    for name in how.names:
        try:
            found.append(await sending.answer_of(client, requests.get(listed.resource, namespace, name)))
        except errors.NotFound as problem:
            missing.append(problem)
    if found:
        _print(found, listed, how)
    if missing:
        raise exits.together([exits.failure_of(problem) for problem in missing])


async def follow(client: Client, namespace: str, listed: Listed, how: How) -> None:
    """Each state as a line, or as a whole object, under columns as wide as the first lines needed."""
    selector = f"metadata.name={how.names[0]}" if len(how.names) == 1 else ""
    of = listed.resource
    whole = Resource(of.group, of.version, of.kind, of.plural, of.namespaced, Whole)
    if how.names:
        for name in how.names:
            await client.get(whole, namespace, name)  # what is not there is told, and not waited for
    changes = following.changes(
        client, whole, "" if how.everywhere else namespace, label_selector=how.selector, field_selector=selector
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
                least = _print(bodies, listed, how, least)


def _print(bodies: Sequence[Json], listed: Listed, how: How, least: Sequence[int] = ()) -> list[int]:
    """The widths of the columns, for what comes later."""
    if how.form == "name":
        click.echo("\n".join(sending.short(body) for body in bodies))
        return []
    if how.form in ("json", "yaml"):
        click.echo(text.objects(bodies, how.form), nl=False)
        return []
    now, wide = clock.SYSTEM.now(), how.form == "wide"
    rows = [listed.row(body, now, wide=wide, with_namespace=how.everywhere) for body in bodies]
    if not how.bare and not least:
        rows.insert(0, listed.columns(wide=wide, with_namespace=how.everywhere))
    click.echo("\n".join(text.columns(rows, least)))
    return [max(pair) for pair in zip(text.widths(rows), least or text.widths(rows), strict=True)]
