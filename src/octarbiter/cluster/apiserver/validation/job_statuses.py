"""May the status of a Job be this?"""

from __future__ import annotations

from typing import Final

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import rules
from octarbiter.cluster.apiserver.validation.problems import Problem
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_ENDS: Final = ("Failed", "Complete", "FailureTarget")
_CONDITIONS: Final = "status.conditions"


class _State:
    def __init__(self, job: Json) -> None:
        self.status = rules.part(job, "status")
        self.conditions = {
            str(each.get("type")) for _, each in rules.each(self.status.get("conditions"), "") if _is(each, "True")
        }
        self.denied = {
            str(each.get("type")) for _, each in rules.each(self.status.get("conditions"), "") if _is(each, "False")
        }
        self.is_complete, self.is_failed = "Complete" in self.conditions, "Failed" in self.conditions
        self.is_finished = self.is_complete or self.is_failed
        self.start, self.completion = self.status.get("startTime"), self.status.get("completionTime")
        self.indexes, self.failed_indexes = self.status.get("completedIndexes") or "", self.status.get("failedIndexes")
        self.uncounted = rules.part(self.status, "uncountedTerminatedPods")

    def count(self, name: str) -> int:
        found = self.status.get(name)
        return found if isinstance(found, int) else 0


def job(obj: Json, old: Json) -> Problems:
    spec, now, before = rules.part(obj, "spec"), _State(obj), _State(old)
    for name in _COUNTS:
        yield from rules.at_least(now.status.get(name), f"status.{name}")
    yield from _uncounted(now)
    yield from _end(now, before)
    yield from _finished(spec, now, before)
    yield from _indexes(spec, now, before)
    if _changed("terminating", now, before) and now.is_finished and now.count("terminating") > 0:
        rule = "terminating>0 is invalid for finished job"
        yield wording.invalid("status.terminating", now.count("terminating"), rule)
    counts = [(state.count("ready"), state.count("active")) for state in (now, before)]
    if counts[0] != counts[1] and now.count("ready") > now.count("active"):
        yield wording.invalid("status.ready", now.count("ready"), "cannot set more ready pods than active")
    yield from _criteria(spec, now)
    yield from _moves(spec, now, before)


def _uncounted(now: _State) -> Problems:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(now.uncounted.get(name) or []):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield wording.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield wording.duplicate(path, uid)
            seen.add(uid)


def _end(now: _State, before: _State) -> Problems:
    completes = now.is_complete != before.is_complete
    fails = now.is_failed != before.is_failed
    if (completes or fails) and now.is_complete and now.is_failed:
        yield _cannot("set Complete=True and Failed=true conditions")
    if (completes or _turned("FailureTarget", now, before)) and {"Complete", "FailureTarget"} <= now.conditions:
        yield _cannot("set Complete=True and FailureTarget=true conditions")
    if completes or now.completion != before.completion:
        if now.completion and not now.is_complete:
            rule = "cannot set completionTime when there is no Complete=True condition"
            yield wording.invalid("status.completionTime", now.completion, rule)
        if not now.completion and now.is_complete:
            yield wording.required("status.completionTime", "completionTime is required for Complete jobs")
    is_backwards = now.start and now.completion and now.completion < now.start
    if is_backwards and (now.start, now.completion) != (before.start, before.completion):
        rule = "must be equal to or after `startTime`"
        yield wording.invalid("status.completionTime", now.completion, rule)
    is_sudden = now.is_failed and "FailureTarget" not in now.conditions
    if is_sudden and (fails or now.failed_indexes != before.failed_indexes):
        yield _cannot("set Failed=True condition without the FailureTarget=true condition")
    is_unfounded = now.is_complete and "SuccessCriteriaMet" not in now.conditions
    if is_unfounded and (completes or _turned("SuccessCriteriaMet", now, before)):
        yield _cannot("set Complete=True condition without the SuccessCriteriaMet=true condition")


def _finished(spec: Json, now: _State, before: _State) -> Problems:
    ends = now.is_finished != before.is_finished
    if not now.is_finished:
        return
    if (ends or now.count("active") != before.count("active")) and now.count("active") > 0:
        yield wording.invalid("status.active", now.count("active"), "active>0 is invalid for finished job")
    never_begins = spec.get("suspend") is True and spec.get("completions") == 0
    if (ends or now.start != before.start) and not now.start and not never_begins:
        yield wording.required("status.startTime", "startTime is required for finished job")
    if (ends or now.uncounted != before.uncounted) and any(now.uncounted.values()):
        rule = "must be empty for finished job"
        yield wording.invalid("status.uncountedTerminatedPods", now.uncounted, rule)


def _indexes(spec: Json, now: _State, before: _State) -> Problems:
    completions = spec.get("completions")
    completed_changed, failed_changed = now.indexes != before.indexes, now.failed_indexes != before.failed_indexes
    completed, wrong = _read(now.indexes, completions)
    if completed_changed and wrong:
        what = f"error parsing completedIndexes: {wrong}"
        yield wording.invalid("status.completedIndexes", now.indexes, what)
    failed, wrong = _read(now.failed_indexes or "", completions)
    if failed_changed and wrong and spec.get("backoffLimitPerIndex") is not None:
        yield wording.invalid("status.failedIndexes", now.failed_indexes, f"error parsing failedIndexes: {wrong}")
    if completed_changed and now.indexes and spec.get("completionMode") != "Indexed":
        rule = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield wording.invalid("status.completedIndexes", now.indexes, rule)
    if failed_changed and now.failed_indexes is not None and spec.get("backoffLimitPerIndex") is None:
        rule = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield wording.invalid("status.failedIndexes", now.failed_indexes, rule)
    both = [first for first, last in failed if any(first <= end and start <= last for start, end in completed)]
    if (completed_changed or failed_changed) and both:
        rule = f"failedIndexes and completedIndexes overlap at index: {both[0]}"
        yield wording.invalid("status.failedIndexes", now.failed_indexes, rule)


def _read(text: str, completions: object) -> tuple[list[tuple[int, int]], str]:
    """The ranges of `1,3-5`, and what is wrong with it."""
    found: list[tuple[int, int]] = []
    if not text or not isinstance(completions, int):
        return found, ""
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if "-" in last:
            rule = "an index interval can have at most two parts separated by '-'"
            return found, f"the fragment {wording.quoted(part)} violates the requirement that {rule}"
        for number in (first, last) if dash else (first,):
            if not number.isascii() or not number.isdigit():
                what = f"cannot convert string to integer for index: {wording.quoted(number)}"
                return found, what
            if int(number) >= completions:
                return found, f"too large index: {wording.quoted(number)}"
        start, end = int(first), int(last if dash else first)
        if found and start <= found[-1][1]:
            return found, f"non-increasing order, previous: {found[-1][1]}, current: {start}"
        if dash and end <= start:
            return found, f"non-increasing order, previous: {start}, current: {end}"
        found.append((start, end))
    return found, ""


def _criteria(spec: Json, now: _State) -> Problems:
    if "SuccessCriteriaMet" in now.conditions:
        if now.is_failed:
            yield _cannot("set SuccessCriteriaMet=True and Failed=true conditions")
        if "FailureTarget" in now.conditions:
            yield _cannot("set SuccessCriteriaMet=True and FailureTarget=true conditions")
    elif spec.get("successPolicy") is not None and now.is_complete:
        yield _cannot("set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")


def _moves(spec: Json, now: _State, before: _State) -> Problems:
    """What cannot be taken back."""
    for end in _ENDS:
        if end in before.conditions - now.conditions:
            yield _cannot(f"disable the terminal {end}=True condition")
    # A job whose completions and parallelism are one number may be made smaller.
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if is_elastic else ("failed", "succeeded"):
        if now.count(name) < before.count(name):
            yield wording.invalid(f"status.{name}", now.count(name), f"cannot decrease the {name} counter")
    if now.completion and before.completion and now.completion != before.completion:
        yield wording.invalid("status.completionTime", now.completion, rules.IMMUTABLE)
    resumes = "Suspended" in before.conditions and "Suspended" in now.denied
    if before.start and now.start != before.start and not resumes and not spec.get("suspend"):
        yield wording.required("status.startTime", "startTime cannot be removed for unsuspended job")
    if "SuccessCriteriaMet" in before.conditions - now.conditions:
        yield _cannot("disable the SuccessCriteriaMet=True condition")
    if before.is_complete and "SuccessCriteriaMet" in now.conditions - before.conditions:
        yield _cannot("set SuccessCriteriaMet=True for Job already has Complete=true conditions")


def _cannot(what: str) -> Problem:
    return wording.invalid(_CONDITIONS, wording.OMITTED, f"cannot {what}")


def _turned(condition: str, now: _State, before: _State) -> bool:
    return (condition in now.conditions) != (condition in before.conditions)


def _changed(name: str, now: _State, before: _State) -> bool:
    return now.is_finished != before.is_finished or now.status.get(name) != before.status.get(name)


def _is(condition: Json, status: str) -> bool:
    return bool(condition.get("status") == status)
