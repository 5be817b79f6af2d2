"""What does an attempt under way need? Its Service, the right number of replicas, and an eye on every one of them."""

from __future__ import annotations

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import actions, completion, ending, names, observe, replicas, roles, waiting
from octarbiter.core.lifecycle.phases import RolePhase, TaskSetPhase
from octarbiter.core.lifecycle.work import POD_INVALID, Work, replace


def is_under_way(work: Work) -> bool:
    """Its control unit is known and no verdict has fallen (also while suspended)."""
    if work.status.phase in (TaskSetPhase.PREPARING, TaskSetPhase.RUNNING):
        return True
    return work.status.phase == TaskSetPhase.PENDING and bool(work.status.control_unit_uid)


def run(work: Work) -> None:
    unit = work.control_unit()
    if (
        unit is None
        or unit.metadata.uid != work.status.control_unit_uid
        or unit.metadata.deletion_timestamp is not None
    ):
        ending.lose(work)
        return
    work.remove(work.stale)
    _rescale(work)
    before, asked = list(work.roles), work.asked()
    _ensure_service(work)
    roles.advance_all(work)
    _note_start(work)
    end = _end(work)
    if end is not None:
        work.take_back(asked)
        work.roles = [roles.undone(was, now) for was, now in zip(before, work.roles, strict=True)]
        ending.take(work, end)
    elif work.is_suspended:
        _rest_suspended(work)
    else:
        service_refusal = work.seen.refusals.get(observe.SERVICE)
        extra = (
            [observe.short(service_refusal.message)]
            if service_refusal is not None and work.seen.service is None
            else []
        )
        work.say(waiting.sentence(work.roles, work.seen.refusals, extra))


def _ensure_service(work: Work) -> None:
    service = work.seen.service
    if service is not None:
        owner = service.metadata.controller
        if owner is None or owner.uid == work.status.control_unit_uid:
            return
    # That of an earlier attempt, which the garbage collector has yet to take, is in the way: the server says so.
    refusal = work.seen.refusals.get(observe.SERVICE)
    if refusal is not None and work.now < refusal.again_at:
        work.look_again(refusal.again_at)
    else:
        work.ask(actions.CreateService())


def _rescale(work: Work) -> None:
    """`replicas` was changed: new indices begin, the highest ones leave, unless the role has its verdict."""
    sizes = {}
    for number, role in enumerate(work.spec.roles):
        status = work.roles[number]
        have = len(status.replica_status)
        if have != role.replicas and status.trigger is None:
            kept = status.replica_status[: role.replicas]
            for index in range(have, role.replicas):
                kept.append(replicas.fresh(role.name, index, work.now, _unused_attempt(work, role.name, index)))
            work.roles[number] = replace(status, replica_status=kept)
            have = role.replicas
        sizes[role.name] = have
    for (role_name, index), pods in work.pods.items():
        if index >= sizes.get(role_name, 0):
            work.remove(pods)


def _unused_attempt(work: Work, role: str, index: int) -> int:
    """A pod of that index may still be leaving after a change down and up again."""
    used = [names.attempts_of_pod(pod.metadata.name) for pod in work.pods.get((role, index), ())]
    return max((attempts[1] + 1 for attempts in used if attempts is not None), default=0)


def _note_start(work: Work) -> None:
    every = [replica for status in work.roles for replica in status.replica_status]
    starts = [replica.start_at for replica in every if replica.start_at is not None]
    if starts and work.status.start_at is None:
        work.status = replace(work.status, start_at=min(starts))
    if work.status.phase == TaskSetPhase.PREPARING and roles.has_started(every, work.status.transition_time):
        work.move(TaskSetPhase.RUNNING)
        work.status = replace(work.status, state=api.State.RUNNING)


def _end(work: Work) -> completion.Verdict | None:
    """What came to pass before the deadline counts, though it is seen after it."""
    end, deadline = completion.end_of(work.spec.roles, work.roles) or _invalid(work), work.deadline()
    if deadline is None or work.now < deadline:
        return end
    if end is not None and end.trigger.at is not None and end.trigger.at <= deadline:
        return end
    return completion.Verdict(api.State.FAILED, work.deadline_trigger())


def _invalid(work: Work) -> completion.Verdict | None:
    for (role, index), refusal in work.seen.refusals.items():
        if refusal.kind == "invalid" and role:
            words = observe.short(refusal.message, observe.VERDICT_BYTES)
            trigger = api.Trigger(role=role, index=index, event=POD_INVALID, at=work.now, message=words)
            return completion.Verdict(api.State.FAILED, trigger)
    return None


def _rest_suspended(work: Work) -> None:
    alive = sum(1 for pods in work.pods.values() for pod in pods if observe.bucket(pod) in observe.ALIVE)
    if alive:
        work.say(f"suspending: waits for pods to stop, {alive} left")
        return
    work.move(TaskSetPhase.PENDING)
    work.roles = [
        status if status.trigger else work.moved_role(status, RolePhase.WAITING, api.State.WAITING, "suspended")
        for status in work.roles
    ]
    work.status = replace(work.status, state=api.State.WAITING)
    work.say("suspended")
