"""Which pods does a queue let in?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from octarbiter.core.quota import gate
from octarbiter.core.quota.gate import GatedPod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def pod(name: str, cpu: int = 1, *, priority: int = 0, age_s: float = 1, **others: int) -> GatedPod:
    requests = {"cpu": cpu, **{key.replace("_", "-"): value for key, value in others.items()}}
    return GatedPod(key=f"n/{name}", requests=requests, priority=priority, created=NOW - timedelta(seconds=age_s))


def let_in(pods: list[GatedPod], cpu: int, used: int = 0, **fields: Any) -> list[str]:
    given_ = {"may_use": {"cpu": cpu}, "used": {"cpu": used}, "asked": ["cpu"], "now": NOW, "reserve_after_s": 60.0}
    return [each.key.removeprefix("n/") for each in gate.let_in(pods, **{**given_, **fields})]


def test_priority_then_age_then_name_decide() -> None:
    pods = [pod("young"), pod("b", age_s=5), pod("a", age_s=5), pod("dear", priority=9)]

    assert let_in(pods, 4) == ["dear", "a", "b", "young"]
    assert let_in(pods, 4, used=2) == ["dear", "a"]


def test_a_large_pod_is_overtaken_only_for_a_while() -> None:
    small = pod("small")

    assert let_in([pod("large", 3, age_s=59), small], 3, used=1) == ["small"]
    assert let_in([pod("large", 3, age_s=60), small], 3, used=1) == []


def test_a_pod_that_can_never_fit_keeps_nothing_from_others() -> None:
    assert let_in([pod("giant", 99, age_s=999), pod("small")], 3) == ["small"]


def test_a_queue_that_uses_more_than_it_may_lets_nobody_in() -> None:
    assert let_in([pod("p")], 3, used=7) == []


def test_what_the_queue_does_not_ask_for_is_not_counted_unless_extended() -> None:
    assert let_in([pod("p", ephemeral_storage=10**12, memory=10**9)], 1) == ["p"]
    wants_gpu = GatedPod(key="n/g", requests={"cpu": 1, GPU: 1}, created=NOW)
    assert let_in([wants_gpu], 1) == []
    assert let_in([wants_gpu], 1, may_use={"cpu": 1, GPU: 1}, asked=["cpu", GPU]) == ["g"]


resources = st.sampled_from(["cpu", "memory", GPU, "ephemeral-storage"])
amounts = st.dictionaries(resources, st.integers(0, 20))
pods = st.lists(
    st.builds(
        GatedPod,
        key=st.text("abc", min_size=1, max_size=2),
        requests=amounts,
        priority=st.integers(-1, 1),
        created=st.integers(0, 120).map(lambda age: NOW - timedelta(seconds=age)),
    ),
    max_size=12,
    unique_by=lambda each: each.key,
)


@given(pods, amounts, amounts, st.sets(resources))
def test_what_is_let_in_never_exceeds_what_the_queue_may_use(
    waiting: list[GatedPod], may_use: dict[str, int], used: dict[str, int], asked: set[str]
) -> None:
    chosen = gate.let_in(waiting, may_use=may_use, used=used, asked=asked, now=NOW, reserve_after_s=60)

    for name in ("cpu", "memory", GPU, "ephemeral-storage"):
        added = sum(each.requests.get(name, 0) for each in chosen)
        if gate.is_counted(name, asked) and added:
            assert used.get(name, 0) + added <= may_use.get(name, 0)
