"""Every case gives the same transcript on the embedded API server as on Kubernetes' own."""

from __future__ import annotations

import difflib
import re
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import cases_all as cases_all
import pytest
from harness import CASES, Api, Case, Server
from known_differences import KNOWN_DIFFERENCES

_MOST_LINES = 200


def _parameters() -> list[object]:
    unknown = set(KNOWN_DIFFERENCES) - set(CASES)
    assert not unknown, f"known differences of cases that are not there: {unknown}"
    return [
        pytest.param(
            name,
            id=name,
            marks=[pytest.mark.xfail(strict=True, reason=KNOWN_DIFFERENCES[name])] if name in KNOWN_DIFFERENCES else [],
        )
        for name in CASES
    ]


@pytest.mark.parametrize("name", _parameters())
def test_both_servers_answer_alike(name: str, real: Server, embedded: Server) -> None:
    with ThreadPoolExecutor(2) as both:
        theirs, ours = both.map(lambda server: _transcript(name, CASES[name], server), (real, embedded))

    assert theirs
    if ours != theirs:
        pytest.fail(_difference(theirs, ours), pytrace=False)


def _transcript(name: str, case: Case, server: Server) -> list[str]:
    api = Api(server, "c-" + re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-") + f"-{list(CASES).index(name)}")
    api.made("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
    try:
        case(api)
    except (AssertionError, LookupError, OSError, HTTPException) as problem:
        api.note("THE CASE BROKE", repr(problem))
    return api.transcript()


def _difference(theirs: list[str], ours: list[str]) -> str:
    lines = list(difflib.unified_diff(theirs, ours, "kubernetes", "embedded", lineterm="", n=4))
    return "\n".join(lines[:_MOST_LINES])
