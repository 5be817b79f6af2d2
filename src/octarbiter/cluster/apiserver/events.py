"""How is one stored event shown in two API groups?

The core group and events.k8s.io show the same events; a few fields have other names in the newer group. Stored is the
core form.
"""

from __future__ import annotations

from typing import Final

from octarbiter.api.meta import Json

_NEWER_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "reportingComponent": "reportingController",
}
_CORE_NAMES: Final = {newer: core for core, newer in _NEWER_NAMES.items()}


def newer(event: Json) -> Json:
    """As events.k8s.io shows it."""
    shown = {_NEWER_NAMES.get(name, name): value for name, value in event.items()}
    for name in ("reportingController", "reportingInstance"):
        if not shown.get(name):
            shown.pop(name, None)
    return shown


def core(event: Json) -> Json:
    """As it is stored."""
    kept = {_CORE_NAMES.get(name, name): value for name, value in event.items()}
    return {"reportingComponent": "", "reportingInstance": "", **kept}
