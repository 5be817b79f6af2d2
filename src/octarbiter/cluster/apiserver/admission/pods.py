"""What does a cluster add to every pod?

Its priority as a number, how long it stays on a node that is gone, and the identity it runs with: decided here once, so
that everybody who reads the pod sees the same.
"""

from __future__ import annotations

from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import admission, kinds, objects, status
from octarbiter.cluster.apiserver.admission import Attempt
from octarbiter.cluster.store.store import Store

_STAYS_S: Final = 300
_COMPUTED: Final = "priority admission controller computed %s from the given PriorityClass name"
_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Priority:
    """PriorityClasses by name; the number goes into the pod."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, attempt: Attempt) -> None:
        if attempt.operation == admission.UPDATE and _is_pod(attempt):
            _keep(attempt.obj, attempt.old, ("priority", "preemptionPolicy"))
        if not _is_new_pod(attempt):
            return
        assert attempt.obj is not None
        spec = attempt.obj["spec"]
        found = self._named(attempt, spec["priorityClassName"]) if spec.get("priorityClassName") else self._usual()
        value = 0
        policy = "PreemptLowerPriority"
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
            value, policy = found.get("value", 0), found.get("preemptionPolicy") or policy
        for name, called, computed in (
            ("priority", "integer value of priority", value),
            ("preemptionPolicy", "string value of PreemptionPolicy", policy),
        ):
            if spec.get(name, computed) != computed:
                why = f"the {called} ({spec[name]}) must not be provided in pod spec; {_COMPUTED % computed}"
                raise status.forbidden(kinds.PODS, attempt.name, why)
        spec["priority"], spec["preemptionPolicy"] = value, policy

    async def validate(self, attempt: Attempt) -> None:
        """Everything was said before."""

    def _named(self, attempt: Attempt, name: str) -> Json:
        entry = self._store.latest(kinds.PRIORITIES.key("", name))
        if entry is None:
            raise status.forbidden(kinds.PODS, attempt.name, f"no PriorityClass with name {name} was found")
        return objects.loaded(entry.value, kinds.PRIORITIES)

    def _usual(self) -> Json | None:
        """The one for whoever names none; of several the lowest."""
        marked = (
            each.value for each in self._store.list(kinds.PRIORITIES.root) if b'"globalDefault":true' in each.value
        )
        everybody = (objects.loaded(value, kinds.PRIORITIES) for value in marked)
        return min((each for each in everybody if each.get("globalDefault")), key=_value, default=None)


class DefaultTolerations:
    async def admit(self, attempt: Attempt) -> None:
        """Also of pods that change: who takes these away gets them back."""
        if not _is_pod(attempt) or not isinstance(_spec(attempt.obj), dict):
            return
        assert attempt.obj is not None
        spec = attempt.obj["spec"]
        given = spec.get("tolerations") or []
        missing = [key for key in _LOST if not any(_tolerates(each, key) for each in given)]
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _STAYS_S} for key in missing
        ]
        if added:
            spec["tolerations"] = [*given, *added]

    async def validate(self, attempt: Attempt) -> None:
        """Everything was said before."""


def _tolerates(toleration: Json, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def _is_pod(attempt: Attempt) -> bool:
    return attempt.served.resource is kinds.PODS and not attempt.subresource and attempt.obj is not None


def _is_new_pod(attempt: Attempt) -> bool:
    return _is_pod(attempt) and attempt.operation == admission.CREATE and isinstance(_spec(attempt.obj), dict)


def _spec(obj: Json | None) -> object:
    return obj.get("spec") if obj is not None else None


def _keep(obj: Json | None, old: Json | None, names: tuple[str, ...]) -> None:
    spec, before = _spec(obj), _spec(old)
    if isinstance(spec, dict) and isinstance(before, dict):
        for name in names:
            if spec.get(name) is None and before.get(name) is not None:
                spec[name] = before[name]


def _value(priority: Json) -> int:
    value: int = priority.get("value", 0)
    return value
