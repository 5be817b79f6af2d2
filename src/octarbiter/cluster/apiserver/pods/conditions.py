"""Conditions of a pod."""

from __future__ import annotations

from octarbiter.api.meta import Json


def set_condition(pod: Json, type_: str, value: str, now: str, *, reason: str = "", message: str = "") -> None:
    state = pod.setdefault("status", {})
    conditions = [dict(each) for each in state.get("conditions") or []]
    found = next((each for each in conditions if each.get("type") == type_), None)
    if found is None:
        found = {"type": type_}
        conditions.append(found)
    if found.get("status") != value:
        found["lastTransitionTime"] = now
    found |= {"status": value, "lastProbeTime": None}
    for name, text in (("reason", reason), ("message", message)):
        if text:
            found[name] = text
        else:
            found.pop(name, None)
    state["conditions"] = conditions


def is_true(pod: Json, type_: str) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each.get("type") == type_ and each.get("status") == "True" for each in conditions)
