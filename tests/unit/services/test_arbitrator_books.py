"""The book of pods says at any time what counting them all would say."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from octarbiter.api import codec, pod_requests
from octarbiter.api.workpod import WorkPod
from octarbiter.services.arbitrator.books import PodBook


def pod(name: str, namespace: str = "a", cpu: str = "1", node: str = "n", phase: str = "Running", gated: bool = False):
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    if gated:
        spec |= {"nodeName": "", "schedulingGates": [{"name": "somebody/waits"}]}
    body = {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": spec, "status": {"phase": phase}}
    return codec.from_json(body, WorkPod)


_changes = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["500m", "1", "0"]),
        st.sampled_from(["", "n", "m"]),
        st.sampled_from(["Pending", "Running", "Succeeded", "gone", "gated"]),
    )
)


@given(_changes)
def test_sums_equal_those_of_all_pods_that_use_something(changes: list[tuple[str, str, str, str, str]]) -> None:
    book = PodBook()
    there: dict[str, WorkPod] = {}
    for name, namespace, cpu, node, phase in changes:
        key = f"{namespace}/{name}"
        new = None if phase == "gone" else pod(name, namespace, cpu, node, phase, gated=phase == "gated")
        book.changed(key, new)
        there.pop(key, None)
        if new is not None and phase not in ("Succeeded", "gated"):
            there[key] = new

    for namespace in ("a", "b"):
        mine = {key: each for key, each in there.items() if each.metadata.namespace == namespace}
        expected: Counter[str] = Counter()
        placed: dict[str, Counter[str]] = {"n": Counter(), "m": Counter()}
        for each in mine.values():
            requests = pod_requests.requests(each.spec)
            expected.update(requests)
            if each.spec.node_name:
                placed[each.spec.node_name].update(requests)
        assert book.used(namespace) == dict(+expected)
        assert set(book.entries(namespace)) == set(mine)
        for node, sums in placed.items():
            assert dict(book.on_node(node).get(namespace, {})) == dict(+sums)


def test_a_change_that_matters_to_nobody_is_no_news() -> None:
    book = PodBook()

    assert book.changed("a/p", pod("p"))
    assert not book.changed("a/p", pod("p"))
    assert book.changed("a/p", pod("p", phase="Succeeded"))
    assert not book.changed("a/p", None)
