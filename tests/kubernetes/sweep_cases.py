"""Which TaskSets run while controllers are killed, and what must become of each of them?

Every kind has one right outcome and exact counters, known before it is submitted, however often nobody was there to
look after it. What a pod does follows from its name (`fakepods`), so nothing hangs on when it is made. Where replicas
are to be stopped they would run for ever; where somebody meddles, the TaskSet cannot end before they have.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from octarbiter.testing.kubernetes import fakepods

Json = dict[str, Any]
Replica = tuple[str, int]

IGNORED, FATAL = 42, 13
LARGE = 600
"""More than a status lists one by one."""


LINGERS = "1s/0s/2s"
"""Those that are told to go take their time, or not: time in which no other of that index may be made."""


class Meddling(StrEnum):
    """What somebody else does to it."""

    NONE = ""
    ROB = "deletes a pod that is recorded"
    SNATCH = "deletes a pod as soon as it is there"
    TAKE_UNIT = "deletes the control unit"
    DELETE = "deletes the TaskSet"
    SUSPEND = "suspends it for a while"
    RESCALE = "lowers and raises replicas"


@dataclass(frozen=True, slots=True)
class Ending:
    outcome: str
    retried: int = 0
    free: int = 0
    """Retries that a failurePolicy rule let pass."""


@dataclass(frozen=True, slots=True)
class Case:
    spec: Json
    replicas: Mapping[Replica, Ending]
    """Of the last attempt."""
    state: str = "Succeeded"
    retried: int = 0
    """Of the TaskSet."""
    retention: str = "None"
    meddling: Meddling = Meddling.NONE
    kind: str = ""
    name: str = ""
    then: Case | None = field(default=None)
    """Created under the same name when this one is deleted."""

    @property
    def vanishes(self) -> bool:
        """Nothing is left of it in the end, not even itself."""
        return self.meddling is Meddling.DELETE or "ttlSecondsAfterFinished" in self.spec

    @property
    def is_large(self) -> bool:
        return len(self.replicas) >= LARGE

    @property
    def manifest(self) -> Json:
        return {
            "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
            "kind": "TaskSet",
            "metadata": {"name": self.name},
            "spec": {**self.spec, "podRetention": self.retention},
        }


def endless(seed: int) -> Iterator[Case]:
    """Deck after deck, each with all kinds in another order. The large one opens every fourth deck and is left out of
    the others: it is more work than all the rest."""
    dice = random.Random(seed)
    number = 0
    for decks in itertools.count():
        deck = [kind for kind, count in KINDS.items() for _ in range(count) if kind is not large]
        dice.shuffle(deck)
        for kind in [large, *deck] if decks % 4 == 0 else deck:
            word = kind.__name__.replace("_", "-")
            case = replace(kind(dice), kind=word, name=f"{word}-{number}")
            yield replace(case, then=case.then and replace(case.then, kind=word, name=case.name))
            number += 1


def ending(codes: list[int], budget: int, lost: int = 0) -> Ending:
    """What a replica comes to whose attempts exit so; the first `lost` are taken from it. The last code repeats."""
    retried = free = 0
    for attempt in range(lost, 1000):
        code = codes[min(attempt, len(codes) - 1)]
        if code == 0:
            return Ending("Succeeded", retried, free)
        if code == IGNORED:
            free += 1
        elif code == FATAL or retried >= budget:
            return Ending("Failed", retried, free)
        else:
            retried += 1
    raise ValueError(f"{codes} never end")


STOPPED = Ending("Stopped")
RULES = {"rules": [{"action": "Ignore", "exitCodes": [IGNORED]}, {"action": "Fail", "exitCodes": [FATAL]}]}


def role(
    name: str,
    replicas: int = 1,
    *,
    codes: str = "0",
    lasts: str = "500ms",
    budget: int = 0,
    delay: int = 0,
    on: Mapping[str, str] | None = None,
    **more: Any,
) -> Json:
    """`codes` and `lasts` as the annotations of fake pods take them; `on`: event -> action."""
    made: Json = {
        "name": name,
        "replicas": replicas,
        "retryPolicy": {"retry": budget > 0, "maxRetryCount": budget, "delay": delay},
        "template": {
            "metadata": {
                "annotations": {fakepods.EXIT_CODE: codes, fakepods.DURATION: lasts, fakepods.LINGERS: LINGERS}
            },
            "spec": {"containers": [{"name": "main", "image": "busybox"}], "terminationGracePeriodSeconds": 5},
        },
        **more,
    }
    if on is not None:
        made["eventPolicy"] = [{"event": event, "action": action} for event, action in on.items()]
    return made


def spec(*roles: Json, budget: int = 0, delay: int = 0, **more: Any) -> Json:
    return {"roles": list(roles), "retryPolicy": {"retry": budget > 0, "maxRetryCount": budget, "delay": delay}, **more}


def alike(name: str, count: int, ends: Ending) -> dict[Replica, Ending]:
    return {(name, index): ends for index in range(count)}


def listed(codes: list[list[int]]) -> str:
    """One list of attempts for each index."""
    return "/".join(",".join(map(str, attempts)) for attempts in codes)


def a_while(dice: random.Random) -> str:
    return f"{dice.choice([0, 200, 500, 900, 1700])}ms"


def failures(dice: random.Random, most: int) -> list[int]:
    return [dice.choice([1, 2, 137]) for _ in range(dice.randint(0, most))]


# --- the kinds


def plain(dice: random.Random) -> Case:
    count = dice.randint(1, 6)
    return Case(spec(role("worker", count, lasts=a_while(dice))), alike("worker", count, Ending("Succeeded")))


def retried(dice: random.Random) -> Case:
    """Every replica fails some times and then succeeds: each has its own list."""
    count, budget = dice.randint(2, 5), 3
    codes = [[*failures(dice, budget), 0] for _ in range(count)]
    delay = dice.choice([0, 0, 1, 2])
    made = role("worker", count, codes=listed(codes), lasts=a_while(dice), budget=budget, delay=delay)
    return Case(spec(made), {("worker", index): ending(each, budget) for index, each in enumerate(codes)})


def exhausted(dice: random.Random) -> Case:
    """One replica fails once too often; its peers are stopped."""
    budget, bad = dice.randint(0, 2), dice.randint(0, 2)
    lasts = "/".join(a_while(dice) if index == bad else "forever" for index in range(3))
    made = role("worker", 3, codes="1", lasts=lasts, budget=budget, delay=dice.choice([0, 1]))
    return Case(spec(made), alike("worker", 3, STOPPED) | {("worker", bad): ending([1], budget)}, "Failed")


def enough(dice: random.Random) -> Case:
    """minSucceeded is reached while others still run."""
    codes = [[1, 0], [0], [1, 1, 0]]
    lasts = f"{a_while(dice)}/forever/{a_while(dice)}/forever"
    made = role("worker", 4, codes=listed(codes), lasts=lasts, budget=2, completionPolicy={"minSucceeded": 2})
    ends = {("worker", index): ending(codes[index], 2) for index in (0, 2)}
    return Case(spec(made), alike("worker", 4, STOPPED) | ends)


def too_many_failed(dice: random.Random) -> Case:
    """The second replica that fails for good is one too many."""
    budget, policy = dice.randint(0, 2), {"maxFailed": 2, "minSucceeded": 1}
    lasts = f"{a_while(dice)}/{a_while(dice)}/forever"
    made = role("worker", 4, codes="1", lasts=lasts, budget=budget, completionPolicy=policy)
    ends = alike("worker", 2, ending([1], budget))
    return Case(spec(made), alike("worker", 4, STOPPED) | ends, "Failed")


def out_of_reach(dice: random.Random) -> Case:
    """No number of failures fails it, but minSucceeded can no longer be reached."""
    made = role(
        "worker",
        3,
        codes="1/1/0",
        lasts=f"{a_while(dice)}/{a_while(dice)}/forever",
        budget=1,
        completionPolicy={"maxFailed": -1, "minSucceeded": 2},
    )
    return Case(spec(made), alike("worker", 2, ending([1], 1)) | {("worker", 2): STOPPED}, "Failed")


def ps_and_worker(dice: random.Random) -> Case:
    """The workers' success ends it; the parameter server never would."""
    codes = [[*failures(dice, 2), 0] for _ in range(3)]
    worker = role(
        "worker", 3, codes=listed(codes), lasts=a_while(dice), budget=2, on={"RoleSucceeded": "TaskSetSucceeded"}
    )
    ends = {("worker", index): ending(each, 2) for index, each in enumerate(codes)}
    return Case(spec(role("ps", lasts="forever"), worker), {("ps", 0): STOPPED} | ends)


def chief(dice: random.Random) -> Case:
    """It ends as the chief does, whatever the others do."""
    codes = dice.choice([[1, 0], [1], [0]])
    made = role("chief", codes=listed([codes]), lasts=a_while(dice), budget=1, on={"RoleCompleted": "TaskSetCompleted"})
    ends = ending(codes, 1)
    return Case(
        spec(made, role("worker", 2, lasts="forever")), {("chief", 0): ends} | alike("worker", 2, STOPPED), ends.outcome
    )


def unheard(dice: random.Random) -> Case:
    """A failed role that nobody answers: the others go on, and in the end it has failed."""
    silent = {"RoleCompleted": "NoAction"}
    first = role("first", codes="1", lasts=a_while(dice), budget=1, on=silent)
    second = role("second", 2, codes="1,0/0", lasts=a_while(dice), budget=1, on=silent)
    ends = {("first", 0): ending([1], 1), ("second", 0): ending([1, 0], 1), ("second", 1): Ending("Succeeded")}
    return Case(spec(first, second), ends, "Failed")


def ruled(dice: random.Random) -> Case:
    """Some failures are let pass, one kind is final at once."""
    codes = dice.choice([[IGNORED, 1, IGNORED, 0], [1, IGNORED, FATAL]])
    made = role("worker", codes=listed([codes]), lasts=a_while(dice), budget=2, failurePolicy=RULES)
    ends = ending(codes, 2)
    return Case(spec(made), {("worker", 0): ends}, ends.outcome)


def dependent(dice: random.Random) -> Case:
    server = role("server", 2, lasts="forever")
    client = role("client", 2, codes="1,0/0", lasts=a_while(dice), budget=1, on={"RoleSucceeded": "TaskSetSucceeded"})
    ends = {("client", 0): ending([1, 0], 1), ("client", 1): Ending("Succeeded")}
    return Case(spec(server, client | {"dependsOn": ["server"]}), alike("server", 2, STOPPED) | ends)


def short_lived(dice: random.Random) -> Case:
    """Removed with all that was kept of it, soon after its end."""
    made = role("worker", 2, codes="1,0/0", lasts=a_while(dice), budget=1)
    ends = {("worker", 0): ending([1, 0], 1), ("worker", 1): Ending("Succeeded")}
    return Case(spec(made, ttlSecondsAfterFinished=dice.randint(0, 2)), ends)


def late(dice: random.Random) -> Case:
    """Its deadline passes; that is not retried."""
    limited = spec(role("worker", 2, lasts="forever"), budget=2, activeDeadlineSeconds=dice.randint(1, 4))
    return Case(limited, alike("worker", 2, STOPPED), "Failed")


def _attempts(dice: random.Random, fails: int, budget: int, name: str = "chief") -> tuple[Json, dict[Replica, Ending]]:
    """`fails` attempts that fail after a replica retry, then one that succeeds after another."""
    codes = ";".join(["1"] * fails + ["1,0"])
    made = role(name, codes=codes, lasts=a_while(dice), budget=1, on={"RoleSucceeded": "TaskSetSucceeded"})
    whole = spec(made, role("worker", 2, lasts="forever"), budget=budget, delay=dice.choice([0, 0, 1, 2]))
    ends = ending([1] if fails > budget else [1, 0], 1)
    return whole, {(name, 0): ends} | alike("worker", 2, STOPPED)


def whole_again(dice: random.Random) -> Case:
    fails = dice.randint(1, 3)
    whole, ends = _attempts(dice, fails, budget=3)
    return Case(whole, ends, retried=fails)


def whole_in_vain(dice: random.Random) -> Case:
    budget = dice.randint(1, 2)
    whole, ends = _attempts(dice, budget + 1, budget)
    return Case(whole, ends, "Failed", budget)


def kept(dice: random.Random) -> Case:
    """The last pods of the last attempt stay."""
    made = role("worker", 3, codes="1;1,0/0", lasts=a_while(dice), budget=1, completionPolicy={"maxFailed": 3})
    ends = {("worker", 0): ending([1, 0], 1)} | {("worker", index): Ending("Succeeded") for index in (1, 2)}
    return Case(spec(made, budget=1), ends, retried=1, retention="All")


def failed_kept(dice: random.Random) -> Case:
    """Only the pod that failed stays."""
    return replace(exhausted(dice), retention="Failed")


def large(dice: random.Random) -> Case:
    made = role("worker", LARGE, codes="1,0/1,1,0/0", lasts="3s", budget=2)
    some = {("worker", 0): ending([1, 0], 2), ("worker", 1): ending([1, 1, 0], 2)}
    return Case(spec(made), alike("worker", LARGE, Ending("Succeeded")) | some)


def robbed(dice: random.Random) -> Case:
    """Index 0 would run for ever, had nobody deleted its pod; the next attempt fails, and is charged."""
    made = role("worker", 3, codes="0,1,0/0", lasts=f"forever,300ms/{a_while(dice)}", budget=1)
    others = {("worker", index): Ending("Succeeded") for index in (1, 2)}
    return Case(spec(made), {("worker", 0): ending([0, 1, 0], 1, lost=1)} | others, meddling=Meddling.ROB)


def snatched(dice: random.Random) -> Case:
    return replace(robbed(dice), meddling=Meddling.SNATCH)


def unit_taken(dice: random.Random) -> Case:
    made = role("worker", 3, codes="0;1,0/0", lasts=f"forever;{a_while(dice)}", budget=1)
    ends = {("worker", 0): ending([1, 0], 1)} | {("worker", index): Ending("Succeeded") for index in (1, 2)}
    return Case(spec(made), ends, meddling=Meddling.TAKE_UNIT)


def deleted(dice: random.Random) -> Case:
    """Would go on for ever: replica after replica, or attempt after attempt."""
    loop = role("loop", 2, codes="1", lasts="200ms", budget=dice.choice([0, 10_000]))
    whole = spec(loop, role("worker", 3, lasts="forever"), budget=10_000)
    return Case(whole, {}, meddling=Meddling.DELETE)


def recreated(dice: random.Random) -> Case:
    return replace(deleted(dice), then=dice.choice([retried, whole_again, plain])(dice))


def suspended(dice: random.Random) -> Case:
    made = role("worker", 3, lasts="2s")
    return Case(spec(made), alike("worker", 3, Ending("Succeeded")), meddling=Meddling.SUSPEND)


def rescaled(dice: random.Random) -> Case:
    """From 4 replicas to 2 and on to 6: only the last two ever end, and they are enough."""
    made = role("worker", 4, lasts="forever/forever/forever/forever/500ms", completionPolicy={"minSucceeded": 2})
    ends = {("worker", index): Ending("Succeeded") for index in (4, 5)}
    return Case(spec(made), alike("worker", 4, STOPPED) | ends, meddling=Meddling.RESCALE)


KINDS: dict[Callable[[random.Random], Case], int] = {
    plain: 2,
    short_lived: 1,
    retried: 7,
    exhausted: 3,
    enough: 2,
    too_many_failed: 2,
    out_of_reach: 1,
    ps_and_worker: 3,
    chief: 2,
    unheard: 1,
    ruled: 2,
    dependent: 1,
    late: 1,
    whole_again: 5,
    whole_in_vain: 2,
    kept: 2,
    failed_kept: 1,
    large: 1,
    robbed: 2,
    snatched: 1,
    unit_taken: 2,
    deleted: 2,
    recreated: 2,
    suspended: 1,
    rescaled: 1,
}
"""How many of each are in a deck of fifty."""
