"""What has to be done so that quotas say what queues may use?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from octarbiter.api import arbitrator, codec
from octarbiter.api.arbitrator import Mode
from octarbiter.api.core_kinds import ResourceQuota
from octarbiter.core.quota import keys, ledger, names, objects
from octarbiter.core.quota.ledger import ChangeQuota, CreateQueue, CreateQuota, DeleteQuota, Quota, RestoreQuota

GPU = "nvidia.com/gpu"
GIB = 1024**3


def queue(
    may_use: dict[str, int] | None = None, *, name: str = "q", namespace: str = "team", uid: str = "u1"
) -> ledger.Holder:
    amounts = {"cpu": 4000, "memory": GIB} if may_use is None else may_use
    return ledger.Holder(namespace=namespace, name=name, uid=uid, may_use=amounts, asked=tuple(amounts))


def team(*quotas: Quota, **fields: Any) -> ledger.Namespace:
    return ledger.Namespace(name="team", quotas=quotas, **fields)


def quota(name: str = "theirs", hard: dict[str, str] | None = None, **fields: Any) -> Quota:
    return Quota(name=name, uid=f"uid-{name}", version="7", hard=hard or {}, **fields)


def made(name: str = "q", hard: dict[str, str] | None = None, **fields: Any) -> Quota:
    marks: dict[str, Any] = {"queue": "q", "made_by": arbitrator.MANAGER, "owner": "u1", **fields}
    return quota(name, hard, **marks)


def done(deeds: Iterable[ledger.Deed], seen: ledger.Namespace) -> ledger.Namespace:
    """What the API server has when the deeds are carried out, by the very bodies that are sent."""
    objs: dict[str, dict[str, Any]] = {each.name: _as_json(each) for each in seen.quotas}
    for deed in deeds:
        match deed:
            case CreateQuota():
                assert deed.name not in objs
                objs[deed.name] = objects.new_quota(deed)
            case ChangeQuota() | RestoreQuota():
                patch = objects.change(deed)
                assert patch["metadata"].pop("resourceVersion") == "7"
                objs[deed.name] = _merged(objs[deed.name], patch)
            case DeleteQuota():
                del objs[deed.name]
            case CreateQueue():
                pass
    return msgspec.structs.replace(seen, quotas=tuple(_read(obj) for obj in objs.values()))


def _as_json(each: Quota) -> dict[str, Any]:
    labels = {arbitrator.QUEUE: each.queue, names.MADE_BY_LABEL: each.made_by or None}
    owner = {"kind": "Queue", "apiVersion": arbitrator.API_VERSION, "name": "q", "uid": each.owner, "controller": True}
    return {
        "metadata": {
            "name": each.name,
            "labels": {key: value for key, value in labels.items() if value is not None},
            "annotations": {arbitrator.ORIGINAL_HARD: each.original} if each.original is not None else {},
            "ownerReferences": [owner] if each.owner else [],
        },
        "spec": {"hard": each.hard, "scopes": ["BestEffort"] if each.is_scoped else []},
    }


def _read(obj: dict[str, Any]) -> Quota:
    metadata = {**obj["metadata"], "uid": f"uid-{obj['metadata']['name']}", "resourceVersion": "7"}
    return objects.quota(codec.from_json({**obj, "metadata": metadata}, ResourceQuota))


def _merged(whole: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(whole) if isinstance(whole, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


FOLLOWED = {"requests.cpu": "4", "limits.cpu": "4", "requests.memory": "1Gi", "limits.memory": "1Gi"}


# Rule 2: only the Queue.


def test_a_queue_without_a_quota_gets_one_that_it_owns() -> None:
    (deed,) = ledger.deeds(team(queue=queue()), ())

    assert isinstance(deed, CreateQuota)
    body = objects.new_quota(deed)
    assert body["metadata"]["name"] == "q"
    assert body["metadata"]["labels"][arbitrator.QUEUE] == "q"
    assert [(each["uid"], each["controller"]) for each in body["metadata"]["ownerReferences"]] == [("u1", True)]
    assert body["spec"]["hard"] == FOLLOWED


def test_what_is_not_asked_for_has_no_key_but_extended_resources_are_zero() -> None:
    wanted = keys.wanted({"cpu": 1500}, ["cpu"], [GPU, "example.com/fpga", "kubernetes.io/batteries"], None)

    assert wanted == {
        "requests.cpu": "1500m",
        "limits.cpu": "1500m",
        f"requests.{GPU}": "0",
        "requests.example.com/fpga": "0",
    }


def test_an_extended_resource_has_no_limits_key_and_needs_not_exist() -> None:
    assert keys.wanted({GPU: 3}, [GPU, "example.com/none"], [GPU], None) == {
        f"requests.{GPU}": "3",
        "requests.example.com/none": "0",
    }


def test_the_gate_has_no_key_for_what_the_gate_counts() -> None:
    (deed,) = ledger.deeds(team(queue=queue({"cpu": 1000, "memory": 5, GPU: 1}), mode=Mode.GATE), [GPU, "a.com/b"])

    assert isinstance(deed, CreateQuota)
    assert deed.hard == {"requests.a.com/b": "0"}


def test_our_own_quota_is_repaired_whatever_was_changed() -> None:
    meddled = [
        made(hard={**FOLLOWED, "limits.cpu": "400"}),
        made(hard={**FOLLOWED, "pods": "1"}),
        made(hard={"requests.cpu": "4"}),
        made(hard=FOLLOWED, queue=None),
        made(hard=FOLLOWED, made_by=""),
        made(hard=FOLLOWED, owner=""),
        made(hard=FOLLOWED, original="{}"),
    ]
    for each in meddled:
        seen = team(each, queue=queue())
        after = done(ledger.deeds(seen, ()), seen)
        assert after.quotas == (made(hard=FOLLOWED),)


def test_nothing_is_written_where_all_is_as_it_should_be() -> None:
    hard = {**FOLLOWED, "requests.cpu": "4000m", "limits.memory": "1048576Ki"}

    assert ledger.deeds(team(made(hard=hard), queue=queue()), ()) == []


def test_a_quota_that_another_queue_owned_is_replaced() -> None:
    seen = team(made(hard=FOLLOWED, owner="old"), queue=queue())

    first, second = ledger.deeds(seen, ())
    assert first == DeleteQuota(name="q", uid="uid-q")
    assert isinstance(second, CreateQuota)


def test_a_queue_of_another_namespace_cannot_own_a_quota_here() -> None:
    there = queue(namespace="head")
    seen = team(queue=there)
    after = done(ledger.deeds(seen, ()), seen)

    assert [(each.owner, each.is_made) for each in after.quotas] == [("", True)]
    assert ledger.deeds(after, ()) == []
    assert ledger.deeds(team(*after.quotas), ()) == [DeleteQuota(name="q", uid="uid-q")]


def test_our_quota_avoids_names_that_are_taken() -> None:
    seen = team(quota("q"), quota("q-2"), queue=queue())
    (deed,) = ledger.deeds(seen, ())

    assert isinstance(deed, CreateQuota)
    assert deed.name == "q-3"


def test_our_quota_goes_when_there_is_no_queue_for_it() -> None:
    assert ledger.deeds(team(made()), ()) == [DeleteQuota(name="q", uid="uid-q")]


# Rule 1: the user made both.


def test_the_only_quota_keeps_its_name_and_its_other_keys() -> None:
    seen = team(quota(hard={"requests.cpu": "9", "pods": "5"}), queue=queue({"cpu": 4000}))
    after = done(ledger.deeds(seen, ()), seen)

    (only,) = after.quotas
    assert (only.name, only.queue, only.is_made) == ("theirs", "q", False)
    assert only.hard == {"requests.cpu": "4", "limits.cpu": "4", "pods": "5"}
    assert json.loads(only.original or "") == {"requests.cpu": "9", "limits.cpu": None, arbitrator.QUEUE: None}
    assert ledger.deeds(after, ()) == []


def test_the_quota_with_our_label_is_the_one() -> None:
    seen = team(quota("a"), quota("b", queue="q"), queue=queue())
    (deed,) = ledger.deeds(seen, ())

    assert isinstance(deed, ChangeQuota)
    assert deed.name == "b"


def test_among_several_of_theirs_we_make_our_own() -> None:
    seen = team(quota("a", {"pods": "1"}), quota("b"), queue=queue())
    after = done(ledger.deeds(seen, ()), seen)

    assert [(each.name, each.is_made) for each in after.quotas] == [("a", False), ("b", False), ("q", True)]


def test_the_users_only_quota_takes_the_place_of_ours() -> None:
    seen = team(made(hard=FOLLOWED), quota(), queue=queue())

    first, second = ledger.deeds(seen, ())
    assert isinstance(first, ChangeQuota)
    assert first.name == "theirs"
    assert second == DeleteQuota(name="q", uid="uid-q")


def test_the_quota_we_already_changed_stays_the_one_when_another_comes() -> None:
    seen = team(quota(), queue=queue())
    after = done(ledger.deeds(seen, ()), seen)

    assert ledger.deeds(team(quota("another"), *after.quotas, queue=queue()), ()) == []


def test_a_quota_with_scopes_is_none_of_ours() -> None:
    seen = team(quota("scoped", {"pods": "3"}, is_scoped=True), queue=queue())
    (deed,) = ledger.deeds(seen, ())

    assert isinstance(deed, CreateQuota)


def test_in_mode_gate_the_users_own_figures_step_aside_and_come_back() -> None:
    before = quota(hard={"cpu": "3", "requests.memory": "1Gi", "pods": "5"})
    seen = team(before, queue=queue(), mode=Mode.GATE)
    gated = done(ledger.deeds(seen, ()), seen)
    assert gated.quotas[0].hard == {"pods": "5"}

    gone = msgspec.structs.replace(gated, queue=None, mode=None)
    assert done(ledger.deeds(gone, ()), gone).quotas == (before,)


def test_a_key_that_is_no_longer_asked_for_is_the_users_again() -> None:
    seen = team(quota(hard={"requests.memory": "8Gi"}), queue=queue())
    both = done(ledger.deeds(seen, ()), seen)
    assert both.quotas[0].hard["requests.memory"] == "1Gi"

    less = msgspec.structs.replace(both, queue=queue({"cpu": 1}))
    assert done(ledger.deeds(less, ()), less).quotas[0].hard == {
        "requests.memory": "8Gi",
        "requests.cpu": "1m",
        "limits.cpu": "1m",
    }


def test_an_annotation_that_cannot_be_read_is_written_anew() -> None:
    seen = team(quota(hard={"requests.cpu": "1"}, original="{", queue="q"), queue=queue({"cpu": 2000}))
    after = done(ledger.deeds(seen, ()), seen)

    assert ledger.remembered(after.quotas[0])["requests.cpu"] == "1"


# Rules 3 and 4: only the quota, or neither.


def test_a_quota_alone_in_a_managed_namespace_gets_a_queue_that_asks_for_as_much() -> None:
    hard = {
        "requests.cpu": "4",
        "cpu": "3500m",
        "memory": "2Gi",
        f"requests.{GPU}": "2",
        "limits.cpu": "99",
        "pods": "1",
        "requests.storage": "5Gi",
    }
    (deed,) = ledger.deeds(team(quota(hard=hard), mode=Mode.DENY), ())

    assert deed == CreateQueue(name="theirs", request={"cpu": 3500, "memory": 2 * GIB, GPU: 2})
    assert isinstance(deed, CreateQueue)
    assert objects.new_queue(deed, "team")["spec"] == {
        "weight": 1,
        "request": {"resources": {"cpu": "3500m", "memory": "2Gi", GPU: "2"}},
    }


def test_of_several_quotas_each_one_limits_the_request() -> None:
    first, second = quota("a", {"requests.cpu": "4"}), quota("b", {"cpu": "3", "memory": "1Gi"})

    (deed,) = ledger.deeds(team(first, second, mode=Mode.DENY), ())
    assert deed == CreateQueue(name="a", request={"cpu": 3000, "memory": GIB})


def test_where_nothing_is_managed_nothing_is_made() -> None:
    assert ledger.deeds(team(quota()), ()) == []
    assert ledger.deeds(team(mode=Mode.DENY), ()) == []
    assert ledger.deeds(team(mode=Mode.GATE), ()) == []


def test_the_default_queue_is_made_before_anybody_asks() -> None:
    (deed,) = ledger.deeds(team(mode=Mode.DEFAULT_QUEUE), ())

    assert deed == CreateQueue(name="default", request={})


def test_a_queue_is_never_made_from_a_quota_of_our_own() -> None:
    assert ledger.deeds(team(made(), mode=Mode.DENY), ()) == [DeleteQuota(name="q", uid="uid-q")]


def test_when_the_queue_goes_the_quota_is_the_users_again_and_a_managed_namespace_gets_a_queue_anew() -> None:
    before = quota(hard={"requests.cpu": "9"})
    seen = team(before, queue=queue(), mode=Mode.DENY)
    held = done(ledger.deeds(seen, ()), seen)
    gone = msgspec.structs.replace(held, queue=None)

    assert done(ledger.deeds(gone, ()), gone).quotas == (before,)
    assert CreateQueue(name="theirs", request={"cpu": 9000}) in ledger.deeds(gone, ())


def test_what_is_ending_contested_or_exempt_is_left_alone() -> None:
    assert ledger.deeds(team(queue=queue(), is_ending=True), ()) == []
    assert ledger.deeds(team(made(), is_contested=True), ()) == []
    for name in ("kube-system", "octarbiter-system"):
        there = ledger.Namespace(name=name, queue=queue(namespace=name), mode=Mode.DENY)
        assert ledger.deeds(there, ()) == []


# What must never happen.

RESOURCES = ("cpu", "memory", GPU, "example.com/fpga")
KEYS = ("cpu", "memory", "pods", *(f"{kind}.{name}" for kind in ("requests", "limits") for name in RESOURCES))
hards = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["0", "1", "2k", "4000m", "1Gi", "1024Mi"]))
marks = st.sampled_from([None, "q", "another", ""])
holders = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 10**13)).map(queue)
looks = st.tuples(holders, st.sampled_from([None, *Mode]), st.sets(st.sampled_from(RESOURCES[2:])))


@st.composite
def users_quotas(draw: st.DrawFn) -> tuple[Quota, ...]:
    count = draw(st.integers(0, 3))
    scoped = st.booleans()
    return tuple(quota(f"n{n}", draw(hards), queue=draw(marks), is_scoped=draw(scoped)) for n in range(count))


@given(users_quotas(), st.lists(looks, max_size=4))
def test_the_users_quotas_come_back_exactly_as_they_were(
    before: tuple[Quota, ...], during: list[tuple[ledger.Holder, Mode | None, set[str]]]
) -> None:
    seen = team(*before)
    for holder, mode, extended in during:
        seen = msgspec.structs.replace(seen, queue=holder, mode=mode)
        seen = done(ledger.deeds(seen, extended), seen)
        assert ledger.deeds(seen, extended) == [], "one look is enough, and writes only on change"
        assert {each.name for each in before} <= {each.name for each in seen.quotas}, "a user's quota is never deleted"
    seen = msgspec.structs.replace(seen, queue=None, mode=None)

    assert done(ledger.deeds(seen, ()), seen).quotas == before


@given(users_quotas(), looks)
def test_exactly_one_quota_follows_the_queue(
    before: tuple[Quota, ...], look: tuple[ledger.Holder, Mode | None, set[str]]
) -> None:
    holder, mode, extended = look
    seen = team(*before, queue=holder, mode=mode)
    after = done(ledger.deeds(seen, extended), seen)

    following = [each for each in after.quotas if each.is_made or each.original is not None]
    assert len(following) == 1
    assert following[0].queue == "q"
    for key, value in keys.wanted(holder.may_use, holder.asked, extended, mode).items():
        assert keys.same(following[0].hard.get(key), value)
