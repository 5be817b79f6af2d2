"""Which options has a controller process, and what did its caller choose?

One struct (or one derived from it, for a process that has more of them) is the whole truth: flags, environment
variables, defaults and their documentation are read off its fields. A flag beats the environment, the environment beats
the default. Nothing here reads the real environment.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from octarbiter.api.errors import FieldProblem, Refused

ENV_PREFIX = "OCTO_"

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

Seconds = Annotated[float, Meta(gt=0, le=3600)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    workers: Annotated[int, Meta(ge=1, le=256, description="How many objects are worked on at the same time.")] = 8
    write_concurrency: Annotated[
        int,
        Meta(ge=1, le=1024, description="How many writes to the API server may be under way; fewer when it is busy."),
    ] = 32
    namespace: Annotated[str, Meta(description="The only namespace to look at; empty means all.")] = ""
    leader_elect: Annotated[
        bool,
        Meta(description="Act only while holding the lease, so that a second process can stand by."),
    ] = True
    lease_name: Annotated[str, Meta(description="Name of the Lease that says who acts.")] = "octarbiter-controller"
    lease_namespace: Annotated[str, Meta(description="Namespace of that Lease.")] = "kube-system"
    lease_duration_s: Annotated[
        Seconds,
        Meta(description="How many seconds after its last sign of life a leader may be replaced."),
    ] = 10.0
    renew_deadline_s: Annotated[
        Seconds,
        Meta(description="A leader that could not renew for so many seconds stops acting."),
    ] = 7.0
    retry_period_s: Annotated[Seconds, Meta(description="Seconds between two looks at the lease.")] = 2.0
    health_address: Annotated[
        str,
        Meta(description="host:port of /healthz, /livez, /readyz and /metrics; empty switches them off."),
    ] = "127.0.0.1:8080"
    log_format: Annotated[
        Literal["auto", "json", "text"],
        Meta(description="json, text, or auto: text on a terminal, else json."),
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important log lines that are still written."),
    ] = "info"
    status_interval_s: Annotated[
        float,
        Meta(ge=0, le=3600, description="Least seconds between two status writes of one object."),
    ] = 1.0

    def problems(self) -> list[FieldProblem]:
        """What contradicts itself, or cannot be."""
        problems = []
        if self.renew_deadline_s >= self.lease_duration_s:
            problems.append(
                FieldProblem(
                    "--renew-deadline-s",
                    f"must be less than --lease-duration-s ({self.lease_duration_s:g}), "
                    f"is {self.renew_deadline_s:g}: a leader must have stopped before another may start",
                )
            )
        if self.retry_period_s * 2 > self.renew_deadline_s:
            problems.append(
                FieldProblem(
                    "--retry-period-s",
                    f"must be at most half of --renew-deadline-s ({self.renew_deadline_s:g}), "
                    f"is {self.retry_period_s:g}: one failed renewal must not cost the lease",
                )
            )
        for flag, label in (
            ("--namespace", self.namespace),
            ("--lease-name", self.lease_name),
            ("--lease-namespace", self.lease_namespace),
        ):
            if not (_LABEL.fullmatch(label) and len(label) <= 63) and not (flag == "--namespace" and not label):
                problems.append(
                    FieldProblem(flag, f"must be lower-case letters, digits and '-', at most 63, is {label!r}")
                )
        if self.health_address:
            try:
                host_and_port(self.health_address)
            except ValueError as error:
                problems.append(FieldProblem("--health-address", str(error)))
        return problems


class Option(msgspec.Struct, frozen=True):
    """One setting as a command line shows it."""

    name: str
    flag: str
    env: str
    default: str | int | float | bool
    choices: tuple[str, ...]
    doc: str


S = TypeVar("S", bound=Settings)


@functools.cache
def options(of: type[Settings] = Settings) -> tuple[Option, ...]:
    hints = get_type_hints(of, include_extras=True)
    return tuple(_option(field, hints[field.name]) for field in msgspec.structs.fields(of))


def parse(flags: Mapping[str, Any], env: Mapping[str, str]) -> Settings:
    return parse_as(Settings, flags, env)


def parse_as(type_: type[S], flags: Mapping[str, Any], env: Mapping[str, str]) -> S:
    """`flags`: what the command line gave, by field name; None means not given. Raises Refused with every problem."""
    chosen: dict[str, Any] = {}
    problems = []
    for field, option in zip(msgspec.structs.fields(type_), options(type_), strict=True):
        where, value = option.flag, flags.get(option.name)
        if value is None:
            where, value = option.env, env.get(option.env)
        if value is None:
            continue
        try:
            chosen[option.name] = _converted(field, value)
        except ValueError as error:  # also msgspec's ValidationError
            problems.append(FieldProblem(where, f"{error} (is {value!r})"))
    if not problems:
        settings = type_(**chosen)
        problems = settings.problems()
    if problems:
        raise Refused(problems, "the configuration")
    return settings


def host_and_port(address: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:8080`, `localhost:0`; `:8080` is every address of the machine."""
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{address!r}: an IPv6 address stands in brackets, e.g. [::1]:8080")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{address!r} is not host:port")
    return host, int(port)


def _converted(field: msgspec.structs.FieldInfo, value: Any) -> Any:
    if isinstance(field.default, bool) and isinstance(value, str):
        if value.lower() not in _BOOLEANS:
            raise ValueError("must be true or false")
        return _BOOLEANS[value.lower()]
    return msgspec.convert(value, field.type, strict=False)


def _option(field: msgspec.structs.FieldInfo, hint: Any) -> Option:
    kind, *notes = get_args(hint)
    return Option(
        name=field.name,
        flag="--" + field.name.replace("_", "-"),
        env=ENV_PREFIX + field.name.upper(),
        default=field.default,
        choices=get_args(kind),
        doc=next(note.description for note in reversed(notes) if note.description),
    )
