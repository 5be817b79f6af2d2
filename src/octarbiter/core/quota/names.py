"""Which namespaces are managed, and how? And what else has a name here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from octarbiter.api import arbitrator
from octarbiter.api.arbitrator import Mode

MADE_BY_LABEL: Final = "app.kubernetes.io/managed-by"
"""On what we made ourselves, and may remove again; its value is our name."""

OWN_NAMESPACE: Final = "octarbiter-system"
KUBE_SYSTEM: Final = "kube-system"
DEFAULT_QUEUE: Final = "default"


def exempt(own_namespace: str = OWN_NAMESPACE) -> frozenset[str]:
    """Nothing is ever refused or limited there, or nobody could repair what refuses."""
    return frozenset({KUBE_SYSTEM, OWN_NAMESPACE, own_namespace})


def mode_of(
    namespace: str, labels: Mapping[str, str], everywhere: Mode | None = None, own_namespace: str = OWN_NAMESPACE
) -> Mode | None:
    """None: not managed. `everywhere` is what the installation says for namespaces that say nothing themselves.

    An empty label says that this one is not to be managed. A label that says something else was meant to manage: it is
    taken for the strictest mode, whose refusals explain.
    """
    if namespace in exempt(own_namespace):
        return None
    said = labels.get(arbitrator.MODE)
    if said is None:
        return everywhere
    if not said:
        return None
    return Mode(said) if said in list(Mode) else Mode.DENY
