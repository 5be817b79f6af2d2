"""What is the value of an expression?

An expression becomes a tree of closures, built once and run for every object. Every step costs, about as much as the
server charges for it, and whoever spends more than the limit is stopped: a rule cannot keep the server busy.

An error in one part of `&&`, `||`, `all` or `exists` does not matter when another part decides.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from octarbiter.cluster.apiserver.structural.cel import checking, costs, functions, loops, syntax, values
from octarbiter.cluster.apiserver.structural.cel.forms import DYN, Form
from octarbiter.cluster.apiserver.structural.cel.machine import Machine, Program
from octarbiter.cluster.apiserver.structural.cel.parsing import parse
from octarbiter.cluster.apiserver.structural.cel.syntax import Node
from octarbiter.cluster.apiserver.structural.cel.values import CelError, Fields, Items, Optional, TypeValue


@lru_cache(maxsize=4096)
def program(text: str, variables: tuple[str, ...]) -> Program:
    """Raises `syntax.Mistake` when the text is no expression."""
    return _program(parse(text), dict.fromkeys(variables, DYN))


def run(compiled: Program, machine: Machine) -> Any:
    try:
        return compiled(machine)
    except RecursionError:
        raise CelError("evaluation is nested too deeply") from None


def _program(node: Node, variables: dict[str, Form]) -> Program:
    match node:
        case syntax.Literal(value=value):
            return lambda machine: value
        case syntax.Name():
            return _name(node, variables)
        case syntax.Select():
            return _select(node, variables)
        case syntax.Has():
            return _has(node, variables)
        case syntax.Index():
            return _index(node, variables)
        case syntax.And():
            return _logical(node.terms, False, variables)
        case syntax.Or():
            return _logical(node.terms, True, variables)
        case syntax.Choice():
            return _choice(node, variables)
        case syntax.Call():
            return _call(node, variables)
        case syntax.ListOf():
            return _list(node, variables)
        case syntax.MapOf():
            return _map(node, variables)
        case syntax.Comprehension():
            return _comprehension(node, variables)
        case syntax.OptionalMap():
            return _optional_map(node, variables)
    raise syntax.Mistake("unsupported expression", node.at)


def _name(node: syntax.Name, variables: dict[str, Form]) -> Program:
    name = node.name
    if name not in variables and (name in checking.TYPE_NAMES or name == "null_type"):
        type = TypeValue("null" if name == "null_type" else name)
        return lambda machine: type

    def run(machine: Machine) -> Any:
        machine.spend(1)
        if name not in machine.variables:
            raise CelError(f"no such attribute(s): {name}")
        return machine.variables[name]

    return run


def _select(node: syntax.Select, variables: dict[str, Form]) -> Program:
    target, field, optional = _program(node.target, variables), node.field, node.optional

    def run(machine: Machine) -> Any:
        value = target(machine)
        machine.spend(1)
        if value.__class__ is Optional:
            return _find_optional(value.value, field) if value.present else value
        if optional:
            return _find_optional(value, field)
        return _find(value, field)

    return run


def _find(value: Any, field: str) -> Any:
    if not isinstance(value, Fields | dict):
        raise CelError("no such overload")
    present, found = values.find(value, field)
    if not present:
        raise CelError(f"no such key: {field}")
    return found


def _find_optional(value: Any, key: Any) -> Optional:
    if isinstance(value, list | Items):
        inside = isinstance(key, int) and 0 <= key < len(value)
        return Optional(value[key], True) if inside else values.NONE
    if not isinstance(value, Fields | dict):
        raise CelError("no such overload")
    present, found = values.find(value, key)
    return Optional(found, True) if present else values.NONE


def _has(node: syntax.Has, variables: dict[str, Form]) -> Program:
    target, field = _program(node.select.target, variables), node.select.field

    def run(machine: Machine) -> bool:
        value = target(machine)
        if value.__class__ is Optional:
            if not value.present:
                return False
            value = value.value
        if isinstance(value, Fields) and value.form.kind != "map":
            name = value.form.names.get(field, field)
            return field in value.form.fields and value.raw.get(name) is not None
        if not isinstance(value, Fields | dict):
            raise CelError("no such overload")
        return values.find(value, field)[0]

    return run


def _index(node: syntax.Index, variables: dict[str, Form]) -> Program:
    target, key, optional = _program(node.target, variables), _program(node.key, variables), node.optional

    def run(machine: Machine) -> Any:
        value, wanted = target(machine), key(machine)
        machine.spend(1)
        if value.__class__ is Optional:
            return _find_optional(value.value, wanted) if value.present else value
        if optional:
            return _find_optional(value, wanted)
        if isinstance(value, list | Items):
            return _item(value, wanted)
        if not isinstance(value, Fields | dict):
            raise CelError("no such overload")
        present, found = values.find(value, wanted)
        if not present:
            raise CelError(f"no such key: {wanted}")
        return found

    return run


def _item(items: Any, index: Any) -> Any:
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if isinstance(index, bool) or not isinstance(index, int):
        raise CelError(f"unsupported index type '{values.kind_of(index)}' in list")
    if not 0 <= index < len(items):
        raise CelError(f"index out of bounds: {index}")
    return items[index]


def _logical(terms: tuple[Node, ...], decisive: bool, variables: dict[str, Form]) -> Program:
    programs = [_program(term, variables) for term in terms]

    def run(machine: Machine) -> bool:
        error: CelError | None = None
        for each in programs:
            try:
                value = each(machine)
            except CelError as problem:
                error = error or problem
                continue
            if not isinstance(value, bool):
                error = error or CelError("no such overload")
            elif value == decisive:
                return decisive
        if error is not None:
            raise error
        return not decisive

    return run


def _choice(node: syntax.Choice, variables: dict[str, Form]) -> Program:
    condition = _program(node.condition, variables)
    then, otherwise = _program(node.then, variables), _program(node.otherwise, variables)

    def run(machine: Machine) -> Any:
        value = condition(machine)
        if value is True:
            return then(machine)
        if value is False:
            return otherwise(machine)
        raise CelError("no such overload")

    return run


def _call(node: syntax.Call, variables: dict[str, Form]) -> Program:
    name, nodes, is_method = node.function, node.arguments, node.is_method
    if (full := checking.qualified(node, variables)) is not None:
        name, nodes, is_method = full, nodes[1:], False
    arguments = [_program(argument, variables) for argument in nodes]
    if is_method and name in ("or", "orValue") and len(arguments) == 2:
        return _fallback(name, arguments[0], arguments[1])
    found = functions.overloads(name, is_method=is_method)
    variants: dict[tuple[str, ...], functions.Run | None] = {}
    cost_of = costs.COSTS.get(name)

    def run(machine: Machine) -> Any:
        given = [argument(machine) for argument in arguments]
        machine.spend(1 if cost_of is None else cost_of(given))
        kinds = tuple([values.kind_of(value) for value in given])
        if kinds not in variants:
            variants[kinds] = functions.at_run_time(found, kinds)
        variant = variants[kinds]
        if variant is None:
            raise CelError(f"no such overload: {name}({', '.join(kinds)})")
        return variant(*given)

    return run


def _fallback(name: str, first: Program, second: Program) -> Program:
    def run(machine: Machine) -> Any:
        value = first(machine)
        machine.spend(1)
        if not isinstance(value, Optional):
            raise CelError(f"no such overload: {name}({values.kind_of(value)})")
        if not value.present:
            return second(machine)
        return value if name == "or" else value.value

    return run


def _list(node: syntax.ListOf, variables: dict[str, Form]) -> Program:
    items = [(_program(item, variables), index in node.optional) for index, item in enumerate(node.items)]

    def run(machine: Machine) -> list[Any]:
        machine.spend(10)
        found = []
        for item, optional in items:
            value = item(machine)
            if not optional:
                found.append(value)
            elif value.present:
                found.append(value.value)
        return found

    return run


def _map(node: syntax.MapOf, variables: dict[str, Form]) -> Program:
    entries = [
        (_program(key, variables), _program(value, variables), index in node.optional)
        for index, (key, value) in enumerate(node.entries)
    ]

    def run(machine: Machine) -> dict[Any, Any]:
        machine.spend(30)
        found: dict[Any, Any] = {}
        for key, value, optional in entries:
            name, given = key(machine), value(machine)
            if values.hashable(name) is None:
                raise CelError(f"unsupported key type: {values.kind_of(name)}")
            if not optional:
                found[name] = given
            elif given.present:
                found[name] = given.value
        return found

    return run


def _comprehension(node: syntax.Comprehension, variables: dict[str, Form]) -> Program:
    inner = {**variables, **dict.fromkeys(node.variables, DYN)}
    condition = None if node.condition is None else _program(node.condition, inner)
    return loops.comprehension(node, _program(node.over, variables), _program(node.body, inner), condition)


def _optional_map(node: syntax.OptionalMap, variables: dict[str, Form]) -> Program:
    target = _program(node.target, variables)
    body = _program(node.body, {**variables, node.variable: DYN})
    name, flat = node.variable, node.flat

    def run(machine: Machine) -> Any:
        value = target(machine)
        machine.spend(1)
        if not isinstance(value, Optional):
            raise CelError("no such overload")
        if not value.present:
            return values.NONE
        hidden = {name: machine.variables[name]} if name in machine.variables else {}
        machine.variables[name] = value.value
        try:
            found = body(machine)
        finally:
            machine.variables.pop(name)
            machine.variables.update(hidden)
        return found if flat else Optional(found, True)

    return run
