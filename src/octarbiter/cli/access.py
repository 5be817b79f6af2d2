"""Which cluster and which namespace does a command speak to, and who runs its deeds?

`--context`, `--kubeconfig`, `--namespace` and `--debug` may stand before the command or after it, as with kubectl;
the later one wins.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from octarbiter.runtime.client import Client
    from octarbiter.runtime.kubeconfig import Connection

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

RETRY_FOR_S = 3.0
"""A person waits at the other end: better told soon that the server is away."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def options(command: F) -> F:
    """Where to: for every command that speaks to a cluster."""
    for option in (
        _option("--kubeconfig", metavar="FILE", help="Else $KUBECONFIG, else ~/.kube/config, else that of `octo up`."),
        _option("--context", metavar="NAME", help="Context of the kubeconfig; else its current one."),
        debug,
    ):
        command = option(command)
    return command


def namespaced(command: F) -> F:
    return options(namespace("Namespace; else that of the context, else default.")(command))


def namespace(meaning: str) -> Callable[[F], F]:
    return _option("-n", "--namespace", metavar="NAME", help=meaning, callback=_checked)


def _option(*names: str, callback: Any = None, **more: Any) -> Callable[[F], F]:
    return click.option(*names, expose_value=False, callback=callback or _keep, **more)


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value and parameter.name:
        context.find_root().ensure_object(dict)[parameter.name] = value


def _checked(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and not _LABEL.fullmatch(value):
        raise click.BadParameter(f"{value!r} cannot be the name of a namespace", context, parameter)
    _keep(context, parameter, value)


debug = _option("--debug", is_flag=True, help="Show where errors come from; also with OCTO_DEBUG=1.")


def chosen(name: str) -> str | None:
    """What the command line says, wherever it says it."""
    context = click.get_current_context(silent=True)
    value = context.find_root().ensure_object(dict).get(name) if context else None
    return str(value) if value is not None else None


def wants_debug() -> bool:
    return bool(chosen("debug")) or os.environ.get("OCTO_DEBUG", "") not in ("", "0", "false")


def connection(file: str | None = None) -> Connection:
    from octarbiter.runtime import kubeconfig

    return kubeconfig.load(file or chosen("kubeconfig") or _of_this_machine(), chosen("context"))


def _of_this_machine() -> str | None:
    """The kubeconfig of `octo up`, for somebody who has no other and has chosen none."""
    usual = Path.home() / ".kube" / "config"
    if os.environ.get("KUBECONFIG") or os.environ.get("KUBERNETES_SERVICE_HOST") or usual.exists():
        return None
    from octarbiter.cli import embedding

    home = embedding.home()
    return str(home / embedding.KUBECONFIG) if embedding.running(home) is not None else None


def run(deed: Callable[[Client, str], Awaitable[T]], *, kubeconfig: str | None = None) -> T:
    """Carries out `deed(client, namespace)`; on the cluster of `kubeconfig`, or the one the caller chose."""
    from octarbiter.runtime import client as clients
    from octarbiter.runtime import telemetry

    telemetry.set_up_logs("text", "debug" if wants_debug() else "warning")
    found = connection(kubeconfig)

    async def inside() -> T:
        async with clients.Client(found, retry_for_s=RETRY_FOR_S) as client:
            return await deed(client, chosen("namespace") or found.namespace)

    return asyncio.run(inside())
