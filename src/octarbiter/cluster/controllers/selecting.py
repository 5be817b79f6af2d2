"""Do these labels match the terms of node affinity?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octarbiter.api.selectors import meets
from octarbiter.cluster.controllers.kinds import NodeSelectorTerm


def matches_any_term(terms: Iterable[NodeSelectorTerm], labels: Mapping[str, str], name: str) -> bool:
    """Terms are alternatives; one without any requirement matches nothing."""
    fields = {"metadata.name": name}
    return any(
        (term.match_expressions or term.match_fields)
        and meets(term.match_expressions, labels)
        and meets(term.match_fields, fields)
        for term in terms
    )
