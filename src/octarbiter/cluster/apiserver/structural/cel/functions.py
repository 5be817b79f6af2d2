"""Which functions are there, for which arguments?

`define` reads a signature: `string.startsWith(string) bool` is a method, `size(list<A>) int` a function. The same table
is asked before anything runs (do the kinds of the arguments fit?) and while it runs (which variant is it?).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from octarbiter.cluster.apiserver.structural.cel import forms
from octarbiter.cluster.apiserver.structural.cel.forms import Form

Run = Callable[..., Any]
Defined = TypeVar("Defined", bound=Run)

_SIGNATURE = re.compile(
    r"(?:(?P<target>[a-zA-Z_]\w*(?:<.*?>)?)\.(?=\w+\())?(?P<name>[^(]+)\((?P<parameters>.*)\)\s+(?P<result>\S+)"
)


class Overload(msgspec.Struct, frozen=True):
    parameters: tuple[Form, ...]
    result: Form
    is_method: bool
    run: Run


TABLE: dict[str, list[Overload]] = {}


def define(*signatures: str, namespace: str = "") -> Callable[[Defined], Defined]:
    def register(run: Defined) -> Defined:
        for signature in signatures:
            _add(signature, namespace, run)
        return run

    return register


def _add(signature: str, namespace: str, run: Run) -> None:
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"not a signature: {signature}")
    written = _split(match["parameters"])
    is_method = match["target"] is not None
    if is_method:
        written.insert(0, match["target"])
    name = f"{namespace}.{match['name']}" if namespace else match["name"]
    parameters = tuple(forms.read(each) for each in written)
    TABLE.setdefault(name, []).append(Overload(parameters, forms.read(match["result"]), is_method, run))


def _split(parameters: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for character in parameters:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current] if current.strip() else parts


def overloads(name: str, *, is_method: bool) -> list[Overload]:
    return [each for each in TABLE.get(name, ()) if each.is_method is is_method]


def at_run_time(found: list[Overload], kinds: tuple[str, ...]) -> Run | None:
    """The variant for arguments of these kinds."""
    for overload in found:
        wanted = overload.parameters
        if len(wanted) == len(kinds) and all(_takes(form, kind) for form, kind in zip(wanted, kinds, strict=True)):
            return overload.run
    return None


def _takes(form: Form, kind: str) -> bool:
    return form.kind == "dyn" or form.kind.isupper() or form.kind == kind
