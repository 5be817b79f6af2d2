"""Changes a Queue that is there: checked before it is sent, and refused if somebody else has changed it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from octarbiter.api import scheme, validation
from octarbiter.api.errors import Refused
from octarbiter.api.meta import Json
from octarbiter.cli import queue_fields, sending
from octarbiter.runtime import requests
from octarbiter.runtime.client import Client


async def change_queue(client: Client, namespace: str, name: str, new: Callable[[Json], dict[str, Any]]) -> None:
    """`new`: the spec as it is to be, from the one that there is."""
    before = await sending.answer_of(client, requests.get(scheme.QUEUES, namespace, name))
    spec = before.get("spec", {})
    after = {**before, "spec": new(spec)}
    if problems := validation.validate_update(before, after, None):
        raise Refused(problems, f"{scheme.QUEUES.kind} {name}")
    patch = queue_fields.patch(spec, after["spec"])
    short = sending.short(before)
    if not patch:
        click.echo(f"{short} unchanged")
        return
    body = {"metadata": {"resourceVersion": before["metadata"]["resourceVersion"]}, "spec": patch}
    request = requests.merge_patch(scheme.QUEUES, namespace, name, body)
    await sending.answer_of(client, sending.with_query(request, fieldManager=sending.FIELD_MANAGER))
    click.echo(f"{short} changed")
