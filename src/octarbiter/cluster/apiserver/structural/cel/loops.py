"""How do `all`, `exists`, `map`, `filter` and their kin go through a list or a map?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from octarbiter.cluster.apiserver.structural.cel import lists, syntax, values
from octarbiter.cluster.apiserver.structural.cel.machine import Machine, Program
from octarbiter.cluster.apiserver.structural.cel.values import CelError, Fields, Items


def comprehension(node: syntax.Comprehension, over: Program, body: Program, condition: Program | None) -> Program:
    names, step_cost = node.variables, _STEP_COSTS.get(node.macro, 12)
    finish = _FINISH[node.macro]

    def run(machine: Machine) -> Any:
        value = over(machine)
        if not isinstance(value, list | dict | Items | Fields):
            raise CelError("no such overload")

        def steps() -> Iterator[tuple[Any, Callable[[], Any]]]:
            """Each item that counts, and what computes the body for it."""
            hidden = {name: machine.variables[name] for name in names if name in machine.variables}
            try:
                for key, item in _pairs(value, len(names)):
                    machine.spend(step_cost)
                    machine.variables[names[0]] = key
                    if len(names) == 2:
                        machine.variables[names[1]] = item
                    if condition is None or _truth(condition(machine)):
                        yield key, lambda: body(machine)
            finally:
                for name in names:
                    machine.variables.pop(name, None)
                machine.variables.update(hidden)

        return finish(steps(), value)

    return run


def _pairs(value: Any, names: int) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, list | Items):
        return ((item, None) for item in value) if names == 1 else enumerate(value)
    return ((key, values.find(value, key)[1] if names == 2 else None) for key in value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


Steps = Iterator[tuple[Any, Callable[[], Any]]]


def _decided(steps: Steps, decisive: bool) -> bool:
    error: CelError | None = None
    for _, body in steps:
        try:
            if _truth(body()) is decisive:
                return decisive
        except CelError as problem:
            error = error or problem
    if error is not None:
        raise error
    return not decisive


def _merged(steps: Steps, value: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for _, body in steps:
        entry = body()
        for key in entry:
            if key in found:
                raise CelError(f"insert failed: key {key} already exists")
            found[key] = values.find(entry, key)[1]
    return found


def _sorted(steps: Steps, value: Any) -> list[Any]:
    pairs = [(item, body()) for item, body in steps]
    return lists.sorted_by([item for item, _ in pairs], [key for _, key in pairs])


_FINISH: dict[str, Callable[[Steps, Any], Any]] = {
    "all": lambda steps, value: _decided(steps, False),
    "exists": lambda steps, value: _decided(steps, True),
    "exists_one": lambda steps, value: sum(_truth(body()) for _, body in steps) == 1,
    "filter": lambda steps, value: [item for item, body in steps if _truth(body())],
    "map": lambda steps, value: [body() for _, body in steps],
    "transformList": lambda steps, value: [body() for _, body in steps],
    "transformMap": lambda steps, value: {key: body() for key, body in steps},
    "transformMapEntry": _merged,
    "sortBy": _sorted,
}
_STEP_COSTS = {"all": 3, "exists": 4, "exists_one": 2, "filter": 2}
