"""Which rules has a schema, and where do they stand?

Rules are compiled once per schema and remembered: the same type is asked with every write of its objects.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.structural.cel import checking, forms, running, syntax
from octarbiter.cluster.apiserver.structural.cel.forms import BOOL, STRING, Form
from octarbiter.cluster.apiserver.structural.cel.machine import Program
from octarbiter.cluster.apiserver.structural.cel.parsing import parse
from octarbiter.cluster.apiserver.structural.cel.syntax import Mistake
from octarbiter.cluster.apiserver.types import Shape, Type

_REMEMBERED = 256
_remembered: OrderedDict[int, tuple[Type, Place | None]] = OrderedDict()


class Rule:
    """One rule, ready to run; or why it cannot."""

    def __init__(self, written: Json, form: Form, type: Type) -> None:
        self.written = written
        self.text = str(written.get("rule") or "")
        self.optional_old = bool(written.get("optionalOldSelf"))
        self.problem = ""
        self.message_problem = ""
        self.uses_old = False
        self.program: Program | None = None
        self.message_program: Program | None = None
        self.path = field_path(str(written.get("fieldPath") or ""), type) or ""
        variables = {"self": form, "oldSelf": Form(kind="optional", of=(form,)) if self.optional_old else form}
        try:
            checked = _checked(self.text, variables, BOOL, "cel expression must evaluate to a bool", "")
        except ValueError as problem:
            self.problem = str(problem)
            return
        self.uses_old = "oldSelf" in checked.names
        self.program = running.program(self.text, ("self", "oldSelf"))
        self._compile_message(variables)

    def _compile_message(self, variables: dict[str, Form]) -> None:
        text = self.written.get("messageExpression")
        if not text:
            return
        try:
            _checked(text, variables, STRING, "messageExpression must evaluate to a string", "messageExpression ")
        except ValueError as problem:
            self.message_problem = str(problem)
            return
        self.message_program = running.program(text, ("self", "oldSelf"))

    @property
    def name(self) -> str:
        """What errors call it."""
        return str(self.written.get("message") or self.text).strip()

    @property
    def message(self) -> str:
        written = str(self.written.get("message") or "")
        return written.strip() or f"failed rule: {self.text.strip()}"


def _checked(text: str, variables: dict[str, Form], wanted: Form, refusal: str, what: str) -> checking.Checked:
    try:
        checked = checking.check(parse(text), variables)
    except Mistake as mistake:
        raise ValueError(f"{what}compilation failed: {syntax.located(text, mistake)}") from None
    except RecursionError:
        raise ValueError(f"{what}compilation failed: the expression is nested too deeply") from None
    # Also `dyn` is refused: the server wants to know beforehand.
    if checked.form.kind != wanted.kind:
        raise ValueError(refusal)
    return checked


class Place:
    """A node of a schema with rules at it or below it."""

    def __init__(self, type: Type, form: Form) -> None:
        self.type = type
        self.form = form
        self.rules = [Rule(written, form, type) for written in _written(type)]
        self.fields: dict[str, Place] = {}
        self.element: Place | None = None


def place_of(type: Type) -> Place | None:
    """None: there are no rules."""
    found = _remembered.get(id(type))
    if found is None or found[0] is not type:
        form = forms.form_of(type)
        # The type is held, so that no other one can get its address.
        found = _remembered[id(type)] = (type, None if form is None else _place(type, form))
        if len(_remembered) > _REMEMBERED:
            _remembered.popitem(last=False)
    else:
        _remembered.move_to_end(id(type))
    return found[1]


def _place(type: Type, form: Form) -> Place | None:
    place = Place(type, form)
    for name, below in type.properties.items():
        inner = form.fields.get(forms.escaped(name) or "") or forms.form_of(below)
        if inner is not None and (found := _place(below, inner)) is not None:
            place.fields[name] = found
    if type.element is not None and type.shape in (Shape.LIST, Shape.MAP) and form.of:
        place.element = _place(type.element, form.of[-1])
    return place if place.rules or place.fields or place.element else None


def _written(type: Type) -> list[Json]:
    rules: Any = type.schema.get("x-kubernetes-validations")
    return [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


_STEP = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\.)*)'\]")


def field_path(path: str, type: Type) -> str | None:
    """The field that a rule blames, as problems name it; None if there is no such field."""
    found, at = "", 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return None
        name = match[1] or re.sub(r"\\(.)", r"\1", match[2] or "")
        below = type.field(name)
        if below is None or (type.properties and name not in type.properties):
            return None
        found = wording.child(found, name) if type.properties else wording.key(found, name)
        type, at = below, match.end()
    return found
