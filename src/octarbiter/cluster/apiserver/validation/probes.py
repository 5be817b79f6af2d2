"""Are probes and lifecycle hooks in order?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def of_container(container: Json, path: str) -> Problems:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(name), dict):
            yield from _probe(probe, f"{path}.{name}")
            if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
                yield wording.invalid(f"{path}.{name}.successThreshold", probe["successThreshold"], "must be 1")
    if isinstance(seconds := rules.part(container, "readinessProbe").get("terminationGracePeriodSeconds"), int):
        where = f"{path}.readinessProbe.terminationGracePeriodSeconds"
        yield wording.invalid(where, seconds, "must not be set for readinessProbes")
    for name in ("postStart", "preStop"):
        if isinstance(handler := rules.part(container, "lifecycle").get(name), dict):
            yield from _handler(handler, f"{path}.lifecycle.{name}")


def _probe(probe: Json, path: str) -> Problems:
    yield from _handler(probe, path)
    for name in _NUMBERS:
        yield from rules.at_least(probe.get(name), f"{path}.{name}")
    seconds = probe.get("terminationGracePeriodSeconds")
    if isinstance(seconds, int) and seconds <= 0:
        yield wording.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")


def _handler(handler: Json, path: str) -> Problems:
    chosen = [name for name in _HANDLERS if isinstance(handler.get(name), dict)]
    if not chosen:
        yield wording.required(path, "must specify a handler type")
    for name in chosen[1:]:
        yield wording.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    for name in chosen[:1]:
        yield from _action(name, handler[name], f"{path}.{name}")


def _action(name: str, action: Json, path: str) -> Problems:
    if name == "exec":
        if not action.get("command"):
            yield wording.required(f"{path}.command")
    elif name == "httpGet":
        if not action.get("path"):
            yield wording.required(f"{path}.path")
        yield from port(action.get("port"), f"{path}.port")
        yield from rules.one_of(action.get("scheme"), f"{path}.scheme", ("HTTP", "HTTPS"))
    elif name in ("tcpSocket", "grpc"):
        yield from port(action.get("port"), f"{path}.port")


def port(value: object, path: str) -> Problems:
    """A number, or the name of one."""
    if isinstance(value, str):
        yield from rules.well_formed(value, path, names.port_name)
    elif isinstance(value, int):
        for wrong in names.port(value):
            yield wording.invalid(path, value, wrong)
