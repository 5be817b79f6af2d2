"""Do the rules of a schema (`x-kubernetes-validations`, in CEL) hold?

Each rule sees its own part of the object as `self` and, in an update, what it was before as `oldSelf`. A rule that
speaks of `oldSelf` is skipped where there is none. What did not change is not held against an update, unless the rule
is about the change.

The language is our own reading of CEL as Kubernetes configures it (types from the schema, cost limits, its functions):
`syntax`, `lexing` and `parsing` read it, `forms` and `checking` know what fits, `values`, `functions` and `running`
compute.
"""

from __future__ import annotations

import contextlib
from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import correlation, wording
from octarbiter.cluster.apiserver.structural.cel import forms, rules, running, values
from octarbiter.cluster.apiserver.structural.cel.machine import CALL_LIMIT, CostExceeded, Machine, Program
from octarbiter.cluster.apiserver.structural.cel.rules import Place, Rule
from octarbiter.cluster.apiserver.structural.cel.values import CelError
from octarbiter.cluster.apiserver.structural.correlation import Pair
from octarbiter.cluster.apiserver.types import Shape, Type
from octarbiter.cluster.apiserver.validation.problems import Problem

BUDGET = 10_000_000
"""What all rules of one object may cost together."""
_LONGEST_MESSAGE = 5 * 1024
_NO_MORE = "no further validation rules will be run"


def has_rules(type: Type) -> bool:
    return rules.place_of(type) is not None


def validate(obj: Json, old: Json | None, type: Type) -> list[Problem]:
    """Of an object that fits its schema."""
    place = rules.place_of(type)
    if place is None:
        return []
    validation = _Validation()
    pair = None if old is None else Pair(obj, old, type)
    with contextlib.suppress(_OutOfBudget):
        validation.at(place, obj, old, "", pair, None)
    return validation.problems


class _OutOfBudget(Exception):
    """The problem is noted; nothing else is looked at."""


class _Validation:
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._budget = BUDGET

    def at(self, place: Place, new: Any, old: Any, path: str, pair: Pair | None, parent: Pair | None) -> None:
        """`parent` is the nearest pair above: where an item has no past, that of its list counts."""
        if new is None:
            return
        for rule in place.rules:
            self._rule(rule, place, new, old, path, pair or parent)
        if isinstance(new, list) and place.element is not None:
            before = correlation.by_key(old, place.type)
            for index, item in enumerate(new):
                was = before.get(correlation.item_key(item, place.type))
                below = pair.index(index) if pair else None
                self.at(place.element, item, was, f"{path}[{index}]", below, pair or parent)
        elif isinstance(new, dict):
            self._fields(place, new, old if isinstance(old, dict) else {}, path, pair, parent)

    def _fields(self, place: Place, new: Json, old: Json, path: str, pair: Pair | None, parent: Pair | None) -> None:
        is_map = place.type.shape is Shape.MAP
        for name, item in new.items():
            below = place.fields.get(name) or (place.element if is_map else None)
            if below is None:
                continue
            here = wording.key(path, name) if is_map else wording.child(path, name)
            self.at(below, item, old.get(name), here, pair.key(name) if pair else None, pair or parent)

    def _rule(self, rule: Rule, place: Place, new: Any, old: Any, path: str, pair: Pair | None) -> None:
        type = forms.schema_type(place.type)
        if rule.problem or rule.program is None:
            self.problems.append(wording.invalid(path, type, f"rule compile error: {rule.problem}"))
            return
        if rule.uses_old and old is None and not rule.optional_old:
            return
        try:
            variables = _variables(rule, place, new, old)
            holds = self._spend(rule.program, variables, path, type, rule)
        except CelError as error:
            self.problems.append(wording.invalid(path, type, _failure(str(error), rule)))
            return
        if holds is True or (not rule.uses_old and pair is not None and pair.unchanged):
            return
        detail = self._message(rule, _variables(rule, place, new, old), path, type)
        self.problems.append(_problem(rule, path, new, detail))

    def _spend(self, program: Program, variables: dict[str, Any], path: str, type: str, rule: Rule) -> Any:
        if self._budget <= 0:
            self._stop(path, type, f"validation failed due to running out of cost budget, {_NO_MORE}")
        machine = Machine(variables, min(CALL_LIMIT, self._budget))
        try:
            return running.run(program, machine)
        except CostExceeded as exceeded:
            if machine.limit < CALL_LIMIT:
                self._stop(path, type, f"validation failed due to running out of cost budget, {_NO_MORE}")
            self._stop(path, type, f"'{exceeded}': {_NO_MORE} due to call cost exceeds limit for rule: {rule.name}")
        finally:
            self._budget -= machine.cost

    def _stop(self, path: str, type: str, detail: str) -> None:
        self.problems.append(wording.invalid(path, type, detail))
        raise _OutOfBudget

    def _message(self, rule: Rule, variables: dict[str, Any], path: str, type: str) -> str:
        if rule.message_program is None:
            return rule.message
        try:
            text = self._spend(rule.message_program, variables, path, type, rule)
        except CelError:
            return rule.message
        written = text.strip() if isinstance(text, str) else ""
        usable = written and "\n" not in written and len(written.encode()) <= _LONGEST_MESSAGE
        return written if usable else rule.message


def _variables(rule: Rule, place: Place, new: Any, old: Any) -> dict[str, Any]:
    variables = {"self": values.seen(new, place.form)}
    if rule.uses_old:
        before = None if old is None else values.seen(old, place.form)
        variables["oldSelf"] = values.Optional(before, old is not None) if rule.optional_old else before
    return variables


def _failure(error: str, rule: Rule) -> str:
    if error.startswith("no such overload"):
        return (
            f"'{error}': call arguments did not match a supported operator, function or macro signature "
            f"for rule: {rule.name}"
        )
    return f"{error} evaluating rule: {rule.name}"


def _problem(rule: Rule, path: str, value: Any, detail: str) -> Problem:
    where = wording.child(path, rule.path) if rule.path else path
    shown = wording.OMITTED if isinstance(value, dict | list) else value
    reason = rule.written.get("reason")
    if reason == "FieldValueForbidden":
        return wording.forbidden(where, detail)
    if reason == "FieldValueRequired":
        return wording.required(where, detail)
    if reason == "FieldValueDuplicate":
        return wording.duplicate(where, shown)
    return wording.invalid(where, shown, detail)
