"""Do the conditions (CEL) hold under which a webhook wants to hear of a request? Pure."""

from __future__ import annotations

from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural.cel import running
from octarbiter.cluster.apiserver.structural.cel.machine import CostExceeded, Machine
from octarbiter.cluster.apiserver.structural.cel.syntax import Mistake
from octarbiter.cluster.apiserver.structural.cel.values import CelError

_VARIABLES: Final = ("object", "oldObject", "request")


class Undecided(Exception):
    """An expression has no value, and no other one is false; the message is for people."""


def hold(webhook: Json, request: Json) -> bool:
    """`request`: of the review. One condition that is false decides, whatever the others are. Raises Undecided."""
    about = {name: value for name, value in request.items() if name not in ("object", "oldObject")}
    variables = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": about}
    problems = []
    for condition in webhook.get("matchConditions") or []:
        try:
            program = running.program(str(condition.get("expression") or ""), _VARIABLES)
            result = running.run(program, Machine(variables))
        except (CelError, CostExceeded, Mistake) as problem:
            problems.append(f"expression '{condition.get('expression')}' resulted in error: {problem}")
            continue
        if result is False:
            return False
        if result is not True:
            problems.append(f"expression '{condition.get('expression')}' is not a condition")
    if problems:
        raise Undecided(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True
