"""Which queues take part, and what belongs to whom?"""

from __future__ import annotations

from arbitration_builders import at

from octarbiter.api.selectors import LabelSelector
from octarbiter.core.arbitration import tree
from octarbiter.core.arbitration.tree import QueueFacts, Tree

TEAM_A = LabelSelector(match_labels={"team": "a"})
NAMESPACES = {"ns": {}, "a1": {"team": "a"}, "a2": {"team": "a"}, "pool": {}, "pool2": {}}


def facts(
    key: str, parent: str = "", selector: LabelSelector | None = None, created: float = 0, problem: str = ""
) -> QueueFacts:
    return QueueFacts(key=key, parent=parent, selector=selector, created=at(created), problem=problem)


def grown(*queues: QueueFacts) -> Tree:
    return tree.grow(queues, NAMESPACES)


def test_a_parent_is_named_in_its_own_namespace_or_with_its_namespace() -> None:
    found = grown(facts("org/root"), facts("org/leaf", "root"), facts("ns/q", "org/root"))

    assert found.parents == {"org/root": "", "org/leaf": "org/root", "ns/q": "org/root"}
    assert found.problems == {}


def test_the_older_of_two_leaf_queues_in_a_namespace_counts() -> None:
    found = grown(facts("ns/b", created=1), facts("ns/a", created=2))

    assert found.parents == {"ns/b": ""}
    assert found.problems["ns/a"].startswith("namespace ns has queue b already, which is older")
    assert found.namespaces["ns"] == "ns/b"


def test_a_parent_and_its_child_may_share_a_namespace() -> None:
    found = grown(facts("ns/top"), facts("ns/leaf", "top"))

    assert found.problems == {}
    assert found.namespaces["ns"] == "ns/leaf"


def test_an_unknown_parent_is_a_problem_of_the_child_and_of_what_is_below_it() -> None:
    found = grown(facts("org/mid", "nowhere"), facts("ns/q", "org/mid"), facts("pool/fine"))

    assert found.parents == {"pool/fine": ""}
    assert found.problems["org/mid"] == "its parent org/nowhere does not exist: create it, or change spec.parent"
    assert found.problems["ns/q"] == "its parent org/mid takes no part: see there"


def test_a_circle_is_told_to_everyone_in_it_and_below_it() -> None:
    found = grown(facts("x/a", "y/b"), facts("y/b", "x/a"), facts("ns/q", "x/a"), facts("pool/fine"))

    assert found.parents == {"pool/fine": ""}
    assert found.problems["x/a"].startswith("it is its own ancestor, ")
    assert found.problems["y/b"].startswith("it is its own ancestor, ")
    assert "takes no part" in found.problems["ns/q"]


def test_a_queue_is_not_its_own_parent() -> None:
    found = grown(facts("ns/q", "q"))

    assert found.problems["ns/q"] == "it is its own ancestor, ns/q -> ns/q: change spec.parent of one of them"


def test_a_long_chain_is_no_problem() -> None:
    queues = [facts("n0/q"), *(facts(f"n{i}/q", f"n{i - 1}/q") for i in range(1, 3000))]

    found = tree.grow(reversed(queues), {})

    assert len(found.parents) == 3000


def test_a_queue_with_a_problem_of_its_own_takes_no_part() -> None:
    found = grown(facts("ns/q", problem="spec.weight: must be at least 1"), facts("ns/other", created=5))

    assert found.problems == {"ns/q": "spec.weight: must be at least 1"}
    assert found.namespaces["ns"] == "ns/other"


def test_a_namespace_belongs_to_its_own_queue_before_any_that_covers_it() -> None:
    found = grown(facts("pool/wide", selector=TEAM_A), facts("a1/own"))

    assert found.namespaces["a1"] == "a1/own"
    assert found.namespaces["a2"] == "pool/wide"
    assert found.covered("pool/wide") == ("pool", "a2")


def test_two_queues_that_cover_a_namespace_are_an_error_that_names_both() -> None:
    found = grown(facts("pool/one", selector=TEAM_A), facts("pool2/two", selector=TEAM_A))

    assert "a1" not in found.namespaces
    assert found.disputed["a1"] == (
        "queues pool/one and pool2/two both cover namespace a1: change the namespaceSelector of all but one"
    )
    assert tree.queue_of(found, "a1", "") == ("", found.disputed["a1"])


def test_a_job_is_looked_up_in_its_namespace_then_among_those_that_cover_it() -> None:
    found = grown(facts("pool/wide", selector=TEAM_A), facts("a1/wide"), facts("ns/q"))

    assert tree.queue_of(found, "a1", "wide") == ("a1/wide", "")
    assert tree.queue_of(found, "a2", "wide") == ("pool/wide", "")
    assert tree.queue_of(found, "ns", "") == ("ns/q", "")
    assert tree.queue_of(found, "ns", "wide") == (
        "",
        "queue wide does not exist in namespace ns, and none of that name covers it",
    )


def test_a_job_that_two_queues_of_the_name_cover_waits_and_says_so() -> None:
    found = grown(facts("pool/wide", selector=TEAM_A), facts("pool2/wide", selector=TEAM_A))

    assert tree.queue_of(found, "a1", "wide") == (
        "",
        "pool/wide and pool2/wide both cover namespace a1: change the namespaceSelector of all but one",
    )


def test_a_job_in_an_inner_queue_waits_and_says_so() -> None:
    found = grown(facts("ns/top"), facts("ns/leaf", "top"))

    assert tree.queue_of(found, "ns", "top") == (
        "",
        "queue ns/top has queues below it: only queues without any have jobs",
    )


def test_a_job_of_a_queue_with_a_problem_is_told_which() -> None:
    found = grown(facts("ns/q", "nowhere"))

    queue, sentence = tree.queue_of(found, "ns", "q")

    assert not queue
    assert sentence.startswith("queue ns/q takes no part: its parent ns/nowhere does not exist")
