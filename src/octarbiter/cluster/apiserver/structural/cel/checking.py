"""Can an expression work at all, and what will it give?

Asked once, when a definition is created: a name that nobody declared, a field that the schema does not have or an
operator between things that do not go together is refused then, and not discovered by users later.
"""

from __future__ import annotations

import msgspec

from octarbiter.cluster.apiserver.structural import formats, regexes
from octarbiter.cluster.apiserver.structural.cel import (
    addresses,
    conversions,
    forms,
    functions,
    lists,
    operators,
    optionals,
    quantities,
    strings,
    syntax,
)
from octarbiter.cluster.apiserver.structural.cel.forms import BOOL, DYN, INT, Form
from octarbiter.cluster.apiserver.structural.cel.syntax import Mistake, Node
from octarbiter.cluster.apiserver.structural.cel.values import CelError

# Importing them fills the table of functions.
LIBRARIES = (operators, conversions, optionals, strings, lists, quantities, addresses)

TYPE_NAMES = frozenset(("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"))


class Checked(msgspec.Struct, frozen=True):
    form: Form
    names: frozenset[str]
    """Which of the variables it speaks of."""


def check(node: Node, variables: dict[str, Form]) -> Checked:
    checker = _Checker()
    form = checker.form(node, variables)
    return Checked(form, frozenset(checker.used) & variables.keys())


def qualified(call: syntax.Call, variables: dict[str, Form]) -> str | None:
    """`sets.contains(a, b)` reads like a method of `sets` but is a function with a dot in its name."""
    target = call.arguments[0] if call.is_method else None
    if not isinstance(target, syntax.Name) or target.name in variables:
        return None
    name = f"{target.name}.{call.function}"
    return name if name in functions.TABLE else None


class _Checker:
    def __init__(self) -> None:
        self.used: set[str] = set()

    def form(self, node: Node, variables: dict[str, Form]) -> Form:
        match node:
            case syntax.Literal():
                return Form(kind=node.kind)
            case syntax.Name():
                return self._name(node, variables)
            case syntax.Select():
                return self._select(node, variables)
            case syntax.Has():
                self._select(node.select, variables)
                return BOOL
            case syntax.Index():
                return self._index(node, variables)
            case syntax.And() | syntax.Or():
                for term in node.terms:
                    self._expect_truth(term, variables)
                return BOOL
            case syntax.Choice():
                return self._choice(node, variables)
            case syntax.Call():
                return self._call(node, variables)
            case syntax.ListOf():
                return self._list(node, variables)
            case syntax.MapOf():
                return self._map(node, variables)
            case syntax.Comprehension():
                return self._comprehension(node, variables)
            case syntax.OptionalMap():
                return self._optional_map(node, variables)
        raise Mistake("unsupported expression", node.at)

    def _name(self, node: syntax.Name, variables: dict[str, Form]) -> Form:
        if node.name in variables:
            self.used.add(node.name)
            return variables[node.name]
        if node.name in TYPE_NAMES or node.name == "null_type":
            return Form(kind="type")
        raise Mistake(f"undeclared reference to '{node.name}' (in container '')", node.at)

    def _select(self, node: syntax.Select, variables: dict[str, Form]) -> Form:
        target = self.form(node.target, variables)
        inner = target.of[0] if target.kind == "optional" else target
        if inner.kind == "object":
            if node.field not in inner.fields:
                raise Mistake(f"undefined field '{node.field}'", node.at)
            found = inner.fields[node.field]
        elif inner.kind == "map":
            found = inner.of[1]
        elif inner.kind == "dyn":
            found = DYN
        else:
            raise Mistake(f"type '{forms.shown(target)}' does not support field selection", node.at)
        return _optional(found) if node.optional or target.kind == "optional" else found

    def _index(self, node: syntax.Index, variables: dict[str, Form]) -> Form:
        target, key = self.form(node.target, variables), self.form(node.key, variables)
        inner = target.of[0] if target.kind == "optional" else target
        if inner.kind == "list" and key.kind in ("int", "dyn"):
            found = inner.of[0]
        elif inner.kind == "map" and forms.fits(inner.of[0], key):
            found = inner.of[1]
        elif inner.kind == "dyn":
            found = DYN
        else:
            raise _no_overload("_[_]", [target, key], node.at)
        return _optional(found) if node.optional or target.kind == "optional" else found

    def _expect_truth(self, node: Node, variables: dict[str, Form]) -> None:
        found = self.form(node, variables)
        if not forms.fits(BOOL, found):
            raise Mistake(f"expected type 'bool' but found '{forms.shown(found)}'", node.at)

    def _choice(self, node: syntax.Choice, variables: dict[str, Form]) -> Form:
        condition = self.form(node.condition, variables)
        then, otherwise = self.form(node.then, variables), self.form(node.otherwise, variables)
        if not forms.fits(BOOL, condition) or not forms.fits(then, otherwise):
            raise _no_overload("_?_:_", [condition, then, otherwise], node.at)
        return otherwise if then.kind in ("dyn", "null") else then

    def _call(self, node: syntax.Call, variables: dict[str, Form]) -> Form:
        name, arguments, is_method = node.function, node.arguments, node.is_method
        if (full := qualified(node, variables)) is not None:
            name, arguments, is_method = full, arguments[1:], False
        found = functions.overloads(name, is_method=is_method)
        if not functions.TABLE.get(name):
            raise Mistake(f"undeclared reference to '{name}' (in container '')", node.at)
        given = [self.form(argument, variables) for argument in arguments]
        self._check_literals(name, arguments)
        if name == "format" and isinstance(arguments[0], syntax.Literal) and isinstance(arguments[-1], syntax.ListOf):
            self._check_format(str(arguments[0].value), arguments[-1], variables)
        results = [form for overload in found if (form := _result(overload, given)) is not None]
        if not results:
            raise _no_overload(name, given, node.at, is_method=is_method)
        # Several variants fit where kinds are not known yet; then neither is that of the result, unless all agree.
        return results[0] if len({form.kind for form in results}) == 1 else DYN

    def _check_literals(self, name: str, arguments: tuple[Node, ...]) -> None:
        """Patterns and durations that are written out are read now."""
        last = arguments[-1] if arguments else None
        if not isinstance(last, syntax.Literal) or last.kind != "string":
            return
        if name in ("matches", "find", "findAll"):
            try:
                regexes.compile(last.value)
            except regexes.BadPattern:
                raise Mistake(f"invalid {name} argument", last.at) from None
        if name == "duration" and formats.go_duration_nanos(last.value) is None:
            raise Mistake("invalid duration argument", last.at)
        if name in ("int", "uint", "double", "bool", "timestamp"):
            run = functions.at_run_time(functions.overloads(name, is_method=False), ("string",))
            try:
                run(last.value) if run is not None else None
            except CelError as problem:
                raise Mistake(str(problem), last.at) from None

    def _check_format(self, text: str, arguments: syntax.ListOf, variables: dict[str, Form]) -> None:
        """The clauses of a text that is written out, against arguments that are."""
        clauses = [letter for _, letter in strings.CLAUSE.findall(text) if letter and letter != "%"]
        for index, letter in enumerate(clauses):
            if index >= len(arguments.items):
                raise Mistake(f"index {index} out of range", arguments.at)
            item = arguments.items[index]
            kind = self.form(item, variables).kind
            if kind != "dyn" and kind not in strings.CLAUSE_KINDS.get(letter, (kind,)):
                words = strings.clause_refusal(letter, forms.shown(Form(kind=kind)))
                raise Mistake(f"error during formatting: {words}", item.at)

    def _list(self, node: syntax.ListOf, variables: dict[str, Form]) -> Form:
        found = []
        for index, item in enumerate(node.items):
            form = self.form(item, variables)
            found.append(form.of[0] if index in node.optional and form.kind == "optional" else form)
        return Form(kind="list", of=(_joined(found),))

    def _map(self, node: syntax.MapOf, variables: dict[str, Form]) -> Form:
        keys = [self.form(key, variables) for key, _ in node.entries]
        found = []
        for index, (_, value) in enumerate(node.entries):
            form = self.form(value, variables)
            found.append(form.of[0] if index in node.optional and form.kind == "optional" else form)
        return Form(kind="map", of=(_joined(keys), _joined(found)))

    def _comprehension(self, node: syntax.Comprehension, variables: dict[str, Form]) -> Form:
        over = self.form(node.over, variables)
        if over.kind not in ("list", "map", "dyn"):
            raise Mistake(
                f"expression of type '{forms.shown(over)}' cannot be range of a comprehension "
                "(must be list, map, or dynamic)",
                node.over.at,
            )
        inner = {**variables, **_loop_variables(node.variables, over)}
        if node.condition is not None:
            self._expect_truth(node.condition, inner)
        if node.macro in ("all", "exists", "exists_one", "filter"):
            self._expect_truth(node.body, inner)
        body = self.form(node.body, inner)
        if node.macro in ("map", "transformList"):
            return Form(kind="list", of=(body,))
        if node.macro in ("filter", "sortBy"):
            return over if over.kind == "list" else Form(kind="list", of=(over.of[0] if over.of else DYN,))
        if node.macro == "transformMap":
            return Form(kind="map", of=(over.of[0] if over.kind == "map" else INT, body))
        if node.macro == "transformMapEntry":
            return body if body.kind == "map" else Form(kind="map", of=(DYN, DYN))
        return BOOL

    def _optional_map(self, node: syntax.OptionalMap, variables: dict[str, Form]) -> Form:
        target = self.form(node.target, variables)
        if target.kind not in ("optional", "dyn"):
            raise _no_overload("optFlatMap" if node.flat else "optMap", [target], node.at, is_method=True)
        body = self.form(node.body, {**variables, node.variable: target.of[0] if target.of else DYN})
        return body if node.flat else _optional(body)


def _result(overload: functions.Overload, given: list[Form]) -> Form | None:
    if len(overload.parameters) != len(given):
        return None
    bound: dict[str, Form] = {}
    if not all(forms.accepts(wanted, form, bound) for wanted, form in zip(overload.parameters, given, strict=True)):
        return None
    return forms.filled(overload.result, bound)


def _loop_variables(names: tuple[str, ...], over: Form) -> dict[str, Form]:
    if over.kind == "dyn":
        return dict.fromkeys(names, DYN)
    if len(names) == 1:
        return {names[0]: over.of[0]}
    return {names[0]: INT if over.kind == "list" else over.of[0], names[1]: over.of[-1]}


def _joined(found: list[Form]) -> Form:
    first = next((form for form in found if form.kind != "dyn"), DYN)
    return first if all(forms.fits(first, form) for form in found) else DYN


def _optional(form: Form) -> Form:
    return form if form.kind == "optional" else Form(kind="optional", of=(form,))


def _no_overload(name: str, given: list[Form], at: int, *, is_method: bool = False) -> Mistake:
    shown = [forms.shown(form) for form in given]
    applied = f"{shown[0]}.({', '.join(shown[1:])})" if is_method else f"({', '.join(shown)})"
    return Mistake(f"found no matching overload for '{name}' applied to '{applied}'", at)
