"""What happens to pods in a managed namespace, and to those who touch a quota that follows a queue?"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from octarbiter.api import arbitrator
from octarbiter.api.arbitrator import Mode
from octarbiter.core.quota import admission, ledger, names
from octarbiter.core.quota.admission import LET_THROUGH, Asker, NewPod, Place

US = "system:serviceaccount:octarbiter-system:octarbiter"
ADMIN = Asker(name="kubernetes-admin", groups=("system:masters",))
COLLECTOR = Asker(
    name="system:serviceaccount:kube-system:generic-garbage-collector", groups=(admission.KUBE_SYSTEM_GROUP,)
)
HELD = Place(name="team", mode=Mode.DENY, queue="team/q")


def test_a_pod_without_queue_and_quota_is_told_what_to_do() -> None:
    refusal = admission.of_pod(NewPod(), Place(name="team", mode=Mode.DENY)).refusal

    assert "octo queue create NAME -n team" in refusal
    assert "ResourceQuota" in refusal


@pytest.mark.parametrize(
    "place",
    [
        Place(name="team"),
        Place(name="team", mode=Mode.DENY, queue="team/q"),
        Place(name="team", mode=Mode.DENY, has_quota=True),
        Place(name="team", mode=Mode.DEFAULT_QUEUE),
        Place(name="team", mode=Mode.DENY, is_ending=True),
    ],
)
def test_these_pods_are_let_through_unchanged(place: Place) -> None:
    assert admission.of_pod(NewPod(), place) == LET_THROUGH


def test_in_mode_gate_a_pod_gets_the_gate_once() -> None:
    place = Place(name="team", mode=Mode.GATE, queue="team/q")

    assert admission.of_pod(NewPod(), place).gate
    assert admission.of_pod(NewPod(has_gate=True), place) == LET_THROUGH
    assert admission.of_pod(NewPod(is_mirror=True, node="n"), place) == LET_THROUGH


def test_in_mode_gate_nobody_goes_round_the_gate() -> None:
    place = Place(name="team", mode=Mode.GATE, queue="team/q")

    assert "spec.nodeName" in admission.of_pod(NewPod(node="n1"), place).refusal
    assert "team/q" in admission.of_gate_removal(place, ADMIN, US).refusal
    assert admission.of_gate_removal(place, Asker(name=US), US) == LET_THROUGH
    assert admission.of_gate_removal(HELD, ADMIN, US) == LET_THROUGH


def ours(**fields: Any) -> ledger.Quota:
    values: dict[str, Any] = {"hard": {"requests.cpu": "4"}, "queue": "q", "made_by": arbitrator.MANAGER, "owner": "u"}
    return ledger.Quota(name="q", **{**values, **fields})


def theirs(**fields: Any) -> ledger.Quota:
    values: dict[str, Any] = {"hard": {"requests.cpu": "4", "pods": "1"}, "queue": "q"}
    return ledger.Quota(name="t", original='{"requests.cpu": "9"}', **{**values, **fields})


def change(old: ledger.Quota, asker: Asker = ADMIN, place: Place = HELD, **fields: Any) -> str:
    new = msgspec.structs.replace(old, **fields)
    return admission.of_quota_change(old, new, fields.pop("touched", ()), place, asker, US).refusal


@pytest.mark.parametrize("fields", [{"hard": {"requests.cpu": "5"}}, {"hard": {}}, {"queue": None}, {"original": "{}"}])
def test_nobody_changes_our_keys_or_marks_administrators_included(fields: dict[str, Any]) -> None:
    for quota in (ours(), theirs()):
        assert "change the Queue instead" in change(quota, **fields)
        assert not change(quota, Asker(name=US), **fields)
        assert not change(quota, COLLECTOR, **fields)
        assert not change(quota, Asker(name="system:kube-controller-manager"), **fields)


def test_other_keys_are_the_users_in_their_own_quota_only() -> None:
    assert not change(theirs(), hard={"requests.cpu": "4000m", "pods": "50"})
    assert "spec.hard[pods]" in change(ours(), hard={"requests.cpu": "4", "pods": "50"})


def test_what_else_is_touched_matters_in_our_own_quota_only() -> None:
    for quota, refused in ((ours(), True), (theirs(), False)):
        verdict = admission.of_quota_change(quota, quota, ["metadata.labels"], HELD, ADMIN, US)
        assert bool(verdict.refusal) == refused


def test_without_a_queue_there_is_nothing_to_protect() -> None:
    for place in (Place(name="team", mode=Mode.DENY), Place(name="team", queue="team/q", is_ending=True)):
        assert not change(ours(), place=place, hard={})
        assert admission.of_quota_deletion(ours(), place, ADMIN, US, {}) == LET_THROUGH


def test_our_quota_cannot_be_deleted_before_its_queue() -> None:
    living = {"u": "team/q"}

    assert "delete the Queue" in admission.of_quota_deletion(ours(), HELD, ADMIN, US, living).refusal
    assert admission.of_quota_deletion(ours(), HELD, ADMIN, US, {}) == LET_THROUGH
    assert admission.of_quota_deletion(ours(), HELD, COLLECTOR, US, living) == LET_THROUGH
    assert admission.of_quota_deletion(theirs(), HELD, ADMIN, US, living) == LET_THROUGH


@pytest.mark.parametrize("name", ["kube-system", "octarbiter-system", "elsewhere"])
def test_exempt_namespaces_are_never_managed(name: str) -> None:
    assert names.mode_of(name, {arbitrator.MODE: "deny"}, Mode.DENY, own_namespace="elsewhere") is None


def test_a_namespace_says_its_mode_or_the_installation_does() -> None:
    assert names.mode_of("n", {}) is None
    assert names.mode_of("n", {}, Mode.GATE) is Mode.GATE
    assert names.mode_of("n", {arbitrator.MODE: "default-queue"}, Mode.GATE) is Mode.DEFAULT_QUEUE
    assert names.mode_of("n", {arbitrator.MODE: "Deny!"}) is Mode.DENY
    assert names.mode_of("n", {arbitrator.MODE: ""}, Mode.GATE) is None
