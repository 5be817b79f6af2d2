"""Whatever happens in whatever order: a TaskSet ends, once, with the right counts, and says what it waits for.

Each example is a TaskSet, a list of things that happen (steps of the cluster, meddling, looks of a controller that may
die between any two writes), and then peace, in which it must finish.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from lifecycle_shell import Shell
from lifecycle_world import ENDED, NODES, World

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import actions, completion, observe, report
from octarbiter.core.lifecycle.decide import Decision, Record, decide
from octarbiter.core.lifecycle.phases import ReplicaPhase, RolePhase, TaskSetPhase
from octarbiter.core.lifecycle.work import LOST, replace

PEACE_STEPS = 400
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
IGNORED, FATAL = 42, 13

# --- what may be asked for

retry_policies = st.builds(
    api.RetryPolicy, retry=st.booleans(), max_retry_count=st.integers(0, 2), delay=st.sampled_from([0, 0, 7])
)
event_policies = st.dictionaries(
    st.sampled_from(list(api.RoleEvent)), st.sampled_from(list(api.Action)), max_size=2
).map(lambda declared: [api.EventPolicy(event=event, action=action) for event, action in declared.items()])
failure_policies = st.sampled_from(
    [
        api.FailurePolicy(),
        api.FailurePolicy(rules=[api.FailureRule(action="Ignore", exit_codes=[IGNORED])]),
        api.FailurePolicy(rules=[api.FailureRule(action="Fail", exit_codes=[FATAL])]),
    ]
)


@st.composite
def roles(draw: st.DrawFn, name: str) -> api.Role:
    replicas = draw(st.integers(1, 3))
    return api.Role(
        name=name,
        template=TEMPLATE,
        replicas=replicas,
        completion_policy=api.CompletionPolicy(
            min_succeeded=draw(st.none() | st.integers(1, replicas)),
            max_failed=draw(st.sampled_from([-1, *range(1, replicas + 1)])),
        ),
        retry_policy=draw(retry_policies),
        event_policy=draw(event_policies),
        failure_policy=draw(failure_policies),
        deletion_timeout_seconds=draw(st.sampled_from([None, 20])),
    )


@st.composite
def specs(draw: st.DrawFn) -> api.TaskSetSpec:
    count = draw(st.integers(1, 3))
    made = [draw(roles(name)) for name in ("a", "b", "c")[:count]]
    order = draw(st.permutations(range(count)))
    for place in range(1, count):
        # Only on those before it in some order, which need not be that of the spec: no circles.
        depends_on = draw(st.lists(st.sampled_from(order[:place]), unique=True, max_size=1))
        made[order[place]] = replace(made[order[place]], depends_on=[made[other].name for other in depends_on])
    return api.TaskSetSpec(
        roles=made,
        retry_policy=draw(retry_policies),
        active_deadline_seconds=draw(st.sampled_from([None, None, None, 60])),
        pod_retention=draw(st.sampled_from(list(api.PodRetention))),
    )


# --- what may happen

LAGS = ((0, 0), (0, 0), (0, 0), (1, 0), (3, 2), (10, 5))
CODES = (0, 0, 1, 1, IGNORED, FATAL)
Happening = tuple[Any, ...]


def happenings(seed: int, count: int) -> list[Happening]:
    """Drawn by dice of our own: left to itself, hypothesis prefers lists in which little happens."""
    dice = random.Random(seed)
    pick, toss = dice.choice, lambda: dice.random() < 0.5

    def pod() -> int:
        return dice.randrange(9)

    kinds: list[tuple[int, Callable[[], Happening]]] = [
        (8, lambda: ("progress", dice.randint(1, 4))),
        (6, lambda: ("look", pick(LAGS), toss())),
        (4, lambda: ("broken look", pick(LAGS), pick((None, *range(8))), pick((None, *range(4))), toss(), toss())),
        (2, lambda: ("die",)),
        (2, lambda: ("schedule", pod(), pick(NODES))),
        (2, lambda: ("start", pod())),
        (6, lambda: ("exit", pod(), pick(CODES), dice.random() < 0.7)),
        (1, lambda: ("tell", pod())),
        (3, lambda: ("leave", pod(), pick((None, 0, 137)))),
        (2, lambda: ("collect",)),
        (3, lambda: ("pass time", pick((1, 1, 5, 30, 60)))),
        (2, lambda: ("delete pod", pod())),
        (2, lambda: ("evict", pod())),
        (2, lambda: ("preempt", pod())),
        (1, lambda: ("reject", pod())),
        (2, lambda: ("node", pick(NODES), pick((True, True, False, None)))),
        (1, lambda: ("taint",)),
        (dice.choice((0, 0, 1)), lambda: ("delete unit", pick(("Background", "Foreground", "Orphan")))),
        (1, lambda: ("room", pick((None, None, 0, 1, 3)))),
        (1, lambda: ("denied", dice.random() < 0.2)),
        (1, lambda: ("suspend", dice.random() < 0.4)),
        (2, lambda: ("scale", dice.randrange(3), dice.randint(1, 4))),
    ]
    weights = [weight for weight, _ in kinds]
    return [draw() for _, draw in dice.choices(kinds, weights, k=count)]


wars = st.builds(happenings, st.integers(0, 2**48), st.sampled_from([3, 15, 30, 60]))


# --- one life of a TaskSet


class Life:
    def __init__(self, spec: api.TaskSetSpec) -> None:
        self.world = World(spec)
        self.shell = Shell(self.world, self.check)

    def happen(self, what: str, *how: Any) -> None:
        world, shell = self.world, self.shell
        match what, how:
            case "look", (lag, flush):
                shell.look(lag, flush=flush)
            case "broken look", (lag, die_after, lose_answer, flush, backwards):
                shell.look(lag, die_after=die_after, lose_answer=lose_answer, flush=flush, backwards=backwards)
            case "die", ():
                shell.start()
            case "progress", (steps,):
                for _ in range(steps):
                    self.step_of_peace(exits=False)
                    shell.look()
            case "collect", ():
                world.collect()
            case "taint", ():
                world.taint()
            case "pass time", (seconds,):
                world.now += timedelta(seconds=seconds)
            case "node", (node, None):
                world.nodes.pop(node, None)
            case "node", (node, ready):
                world.nodes[node] = ready
            case "delete unit", (mode,):
                for unit in list(world.units.values()):
                    world.delete_unit(unit.metadata.name, unit.metadata.uid, mode)
            case "room", (room,):
                world.room = room
            case "denied", (denied,):
                world.denied = denied
            case "suspend", (suspend,):
                world.edit(suspend=suspend)
            case "scale", (role, replicas):
                self.scaled = True
                world.scale(role, replicas)
            case "delete taskset", (foreground,):
                world.delete_taskset(foreground=foreground)
            case _, (pod_number, *rest):
                pod = world.pod_at(pod_number)
                if pod is not None:
                    self._happen_to_pod(what, pod, rest)

    def _happen_to_pod(self, what: str, pod: Any, how: list[Any]) -> None:
        world = self.world
        match what:
            case "schedule":
                world.schedule(pod, how[0])
            case "start":
                world.start(pod)
            case "exit":
                world.exit(pod, how[0], told=how[1])
            case "tell":
                world.tell(pod)
            case "leave":
                world.leave(pod, how[0])
            case "evict":
                world.evict(pod)
            case "preempt":
                world.preempt(pod)
            case "reject":
                world.reject(pod)
            case "delete pod":
                world.delete_pod(pod.metadata.name, pod.metadata.uid, "somebody")
            case _:
                raise AssertionError(what)

    # --- peace

    def step_of_peace(self, *, exits: bool, ends: list[int] | None = None) -> bool:
        """One kind of progress, of one pod where it is an exit; the controller must ask for every look of its own."""
        world = self.world
        if world.collect():
            return True
        if exits:
            world.taint()
        pods = list(world.pods.values())
        moved = [world.leave(pod, 137) for pod in pods]
        if not any(moved):
            moved = [world.schedule(pod, node) for pod, node in zip(pods, NODES * len(pods), strict=False)]
        if not any(moved):
            moved = [world.start(pod) for pod in pods]
        if not any(moved) and exits:
            moved = [world.tell(pod) for pod in pods]
            for pod in pods:
                if not any(moved) and pod.status.phase == "Running":
                    moved = [world.exit(pod, ends.pop() if ends else 0)]
        return any(moved)

    def finish(self, ends: list[int], impatience: int) -> None:
        """No more meddling. Time stands still but for the timers that the controller has asked for."""
        world, shell = self.world, self.shell
        world.room, world.denied = None, False
        world.nodes = dict.fromkeys(NODES, True)
        world.edit(suspend=False)
        shell.refusals = {}
        shell.look()
        for step in range(PEACE_STEPS):
            if not world.exists or self.is_over:
                break
            seq, wake_at = world.seq, shell.wake_at
            waits = wake_at is not None and (step % 4 < impatience or not self.step_of_peace(exits=True, ends=ends))
            if wake_at is None:
                progress = self.step_of_peace(exits=True, ends=ends)
                assert progress or seq != self.last_look, f"waits for nothing: {shell.status.state_message}"
            elif waits:
                world.now = max(world.now, wake_at)
            self.last_look = world.seq
            shell.look()
        assert not world.exists or self.is_over, f"did not finish: {shell.status}"

    last_look = -1
    scaled = False
    """Then an index may have begun anew, with fresh counters."""

    @property
    def is_over(self) -> bool:
        return self.world.status.phase == TaskSetPhase.COMPLETED

    # --- what must hold after every look

    def check(self, taskset: api.TaskSet, seen: observe.Seen, decision: Decision) -> None:
        old, new = taskset.status, decision.status
        made = [a for a in decision.actions if isinstance(a, actions.CreatePod | actions.CreateControlUnit)]
        if taskset.metadata.deletion_timestamp is not None or new.verdict:
            assert made == []
        if taskset.metadata.deletion_timestamp is None:
            self._says_what_it_waits_for(new)
            self._is_a_fixed_point(taskset, seen, decision)
        assert decision.look_again_at is None or decision.look_again_at > self.world.now
        assert (new.state in ("Succeeded", "Failed")) == (new.phase == TaskSetPhase.COMPLETED)
        self._keeps_its_word(old, new)
        self._counts_right(new)
        if new.phase == TaskSetPhase.COMPLETED:
            self._is_whole(new)

    def _says_what_it_waits_for(self, status: api.TaskSetStatus) -> None:
        replicas = [replica for role in status.role_status for replica in role.replica_status]
        all_run = all(replica.phase == ReplicaPhase.RUNNING or replica.outcome for replica in replicas)
        if status.state == "Waiting" or (status.phase != TaskSetPhase.COMPLETED and not all_run):
            assert status.state_message, status

    def _is_a_fixed_point(self, taskset: api.TaskSet, seen: observe.Seen, decision: Decision) -> None:
        """What follows from what is seen is decided at once: a second look at the same finds nothing more."""
        again = decide(replace(taskset, status=decision.status), seen, self.world.now)
        assert again.status == decision.status
        assert set(again.actions) <= set(decision.actions)

    def _keeps_its_word(self, old: api.TaskSetStatus, new: api.TaskSetStatus) -> None:
        if old.phase == TaskSetPhase.COMPLETED:
            assert old == new
        assert new.preempt_count >= old.preempt_count
        assert old.start_at is None or new.start_at == old.start_at
        if old.attempt != new.attempt:
            assert new.attempt == old.attempt + 1
            return
        if old.verdict and old.verdict != LOST:
            assert new.verdict == old.verdict
        for before, after in zip(old.role_status, new.role_status, strict=False):
            if before.trigger is not None:
                assert (after.trigger, after.state) == (before.trigger, before.state)
            for was, is_ in zip(before.replica_status, after.replica_status, strict=False):
                if was.outcome:
                    assert is_ == was
                assert is_.attempt >= was.attempt or new.phase != old.phase

    def _counts_right(self, status: api.TaskSetStatus) -> None:
        spec, facts = self.world.spec, list(self.world.facts.values())
        assert status.total_retried_count <= spec.retry_policy.budget
        assert status.preempt_count <= sum(1 for fact in facts if fact.taken == "preemption")
        if len(status.history) < api.HISTORY:
            lost = sum(1 for record in status.history if record.state == LOST and record.attempt != status.attempt)
            assert status.attempt == status.total_retried_count + lost
        for role, told in zip(spec.roles, status.role_status, strict=False):
            outcomes = [replica.outcome for replica in told.replica_status]
            assert told.succeeded == outcomes.count(completion.SUCCEEDED)
            assert told.failed == outcomes.count(completion.FAILED)
            assert told.stopped == outcomes.count(completion.STOPPED)
            for replica in told.replica_status:
                self._counts_replica_right(role, replica, status.attempt)

    def _counts_replica_right(self, role: api.Role, replica: api.ReplicaStatus, attempt: int) -> None:
        """Never more than there was: no loss is charged, no stop is a loss. Less only where nobody could know."""
        facts = [
            fact
            for fact in self.world.facts.values()
            if (fact.role, fact.index, fact.attempt) == (role.name, replica.index, attempt)
        ]
        failed = sum(1 for fact in facts if fact.failed)
        unseen = sum(1 for fact in facts if fact.unseen)
        assert replica.total_retried_count <= min(failed, role.retry_policy.budget)
        assert replica.lost_count <= sum(1 for fact in facts if fact.lost) + unseen
        if replica.outcome == completion.SUCCEEDED:
            assert any(fact.code == 0 for fact in facts)
            ignored = [
                code for rule in role.failure_policy.rules if rule.action == "Ignore" for code in rule.exit_codes
            ]
            charged = sum(1 for fact in facts if fact.failed and fact.code not in ignored)
            if not unseen and not self.scaled:
                assert replica.total_retried_count == charged
        if replica.outcome == completion.FAILED:
            assert failed > replica.total_retried_count
            assert replica.total_retried_count == role.retry_policy.budget or any(fact.code == FATAL for fact in facts)
        assert replica.stopped or replica.outcome != completion.STOPPED

    def _is_whole(self, status: api.TaskSetStatus) -> None:
        assert status.finish_at is not None
        assert status.state_message
        for role in status.role_status:
            assert role.phase == RolePhase.COMPLETED
            assert role.state in ("Succeeded", "Failed")
            assert role.trigger is not None
            assert role.active == 0
            if role.trigger.role == role.name and role.trigger.index is not None and not self.scaled:
                self._is_just(role)
            for replica in role.replica_status:
                assert replica.phase == ReplicaPhase.COMPLETED
                assert replica.outcome in (completion.SUCCEEDED, completion.FAILED, completion.STOPPED)
                assert replica.finish_at is None or replica.finish_at <= status.finish_at

    def _is_just(self, told: api.RoleStatus) -> None:
        """The verdict of a role is borne out by what its replicas came to."""
        role = next(role for role in self.world.spec.roles if role.name == told.name)
        if told.trigger is None or told.trigger.event not in ("RoleSucceeded", "RoleFailed"):
            return
        if told.state == "Succeeded":
            assert told.succeeded >= role.min_succeeded
        else:
            assert 0 < role.max_failed <= told.failed or role.replicas - told.failed < role.min_succeeded

    # --- what must hold at the end

    def check_end(self) -> None:
        world = self.world
        for _ in range(20):
            self.step_of_peace(exits=True)
            self.shell.look()
        alive = [name for name, pod in world.pods.items() if pod.status.phase not in ENDED]
        assert alive == []
        kept = {fact.role for fact in (world.facts[pod.metadata.uid] for pod in world.pods.values())}
        if not world.exists or world.spec.pod_retention == api.PodRetention.NONE:
            assert kept == set()
            assert world.units == {}
            assert world.services == {}
        if world.exists:
            self._is_inert()

    def _is_inert(self) -> None:
        world = self.world
        self._is_whole(report.expand(world.status))
        world.now += timedelta(days=1)
        roles = [replace(role, replicas=role.replicas + 1) for role in world.spec.roles]
        spec = replace(world.spec, roles=roles, suspend=True, active_deadline_seconds=1)
        taskset = replace(world.taskset, spec=spec, status=report.expand(world.status))
        decision = decide(taskset, self.shell._seen((0, 0)), world.now)

        assert decision.record is Record.NO
        assert decision.actions == ()
        assert decision.look_again_at is None


def live(spec: api.TaskSetSpec, happened: list[Happening], ends: list[int], impatience: int) -> None:
    life = Life(spec)
    for what in happened:
        life.happen(*what)
    life.finish(list(ends), impatience)
    life.check_end()


def survives(spec: api.TaskSetSpec, happened: list[Happening], ends: list[int], impatience: int) -> None:
    """`live`; of what went before a failure only what it takes is told."""
    try:
        live(spec, happened, ends, impatience)
    except Exception:
        shorter = True
        while shorter:
            shorter = False
            for number in range(len(happened) - 1, -1, -1):
                without = happened[:number] + happened[number + 1 :]
                try:
                    live(spec, without, ends, impatience)
                except Exception:
                    happened, shorter = without, True
        note(f"it takes: {happened}")
        live(spec, happened, ends, impatience)
        raise


ends = st.lists(st.sampled_from(CODES), max_size=12)
quick = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@settings(quick, max_examples=600)
@given(specs(), wars, ends, st.integers(0, 2))
def test_a_taskset_lives_through_anything(
    spec: api.TaskSetSpec, happened: list[Happening], ends: list[int], impatience: int
) -> None:
    survives(spec, happened, ends, impatience)


@settings(quick, max_examples=400)
@given(specs(), wars, ends, st.integers(0, 2))
def test_a_large_taskset_lives_through_anything(
    spec: api.TaskSetSpec, happened: list[Happening], ends: list[int], impatience: int
) -> None:
    """Large by decree: everything is recorded as a ledger with one listed replica a role."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "FULL_STATUS_REPLICAS", 0)
        survives(spec, happened, ends, impatience)


@settings(quick, max_examples=200)
@given(specs(), wars, st.booleans(), wars)
def test_a_deleted_taskset_leaves_nothing_behind(
    spec: api.TaskSetSpec, before: list[Happening], foreground: bool, after: list[Happening]
) -> None:
    happened = [*before, ("delete taskset", foreground), *after]
    # Who orphans the pods wants to keep them.
    survives(spec, [what for what in happened if "Orphan" not in what], [], 0)
