"""Are jobs and cron jobs in order? And what of them may change?"""

from __future__ import annotations

import zoneinfo

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, pods, rules, schedules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_NUMBERS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_MOST_AT_ONCE = 100_000
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_RESTARTS = 'valid values: "OnFailure", "Never"'
_UID_LABEL = "batch.kubernetes.io/controller-uid"
_GENERATED_LABELS = {_UID_LABEL, "batch.kubernetes.io/job-name", "controller-uid", "job-name"}
_INDEXED = "requires indexed completion mode"
MISMATCH = "`selector` does not match template `labels`"


def job(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from _generated_selector(obj, spec)
    yield from _specification(spec)
    if spec.get("completionMode") == "Indexed" and isinstance(completions := spec.get("completions"), int):
        name = str(rules.part(obj, "metadata").get("name") or "")
        last = f"{name}-{completions - 1}"
        if old is None and completions > 0 and names.label(last) and not names.subdomain(name):
            rule = f"will not able to create pod with invalid DNS label: {last}"
            yield wording.invalid("metadata.name", name, rule)
    if old is not None:
        # What is updated is checked as if it were new, and then as an update.
        yield from _specification(spec)
        yield from _update(spec, rules.part(old, "spec"))


def without_generated_labels(obj: Json) -> Json:
    """What a new job gets from a template that had no labels itself has been checked there."""
    about = rules.part(obj, "metadata")
    template = rules.part(rules.part(rules.part(obj, "spec"), "template"), "metadata").get("labels") or {}
    if template.keys() - _GENERATED_LABELS:
        return obj
    kept = {key: text for key, text in (about.get("labels") or {}).items() if key not in _GENERATED_LABELS}
    return {**obj, "metadata": {**about, "labels": kept}}


def _specification(spec: Json) -> Problems:
    yield from specification(spec, "spec")
    yield from _selector(spec)


def specification(spec: Json, path: str) -> Problems:
    for name in _NUMBERS:
        yield from rules.at_least(spec.get(name), f"{path}.{name}")
    mode = spec.get("completionMode")
    yield from rules.one_of(mode, f"{path}.completionMode", ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _indexed(spec, path)
    else:
        yield from _not_indexed(spec, path)
    policies = ("Failed", "TerminatingOrFailed")
    yield from rules.one_of(spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy", policies)
    if (manager := spec.get("managedBy")) is not None and "/" not in str(manager):
        yield wording.invalid(f"{path}.managedBy", manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    for where, rule in rules.each(rules.part(spec, "podFailurePolicy").get("rules"), f"{path}.podFailurePolicy.rules"):
        yield from _failure_rule(rule, where)
    template = rules.part(spec, "template")
    yield from pods.template(template, f"{path}.template")
    if rules.part(template, "spec").get("restartPolicy") == "Always":
        yield wording.required(f"{path}.template.spec.restartPolicy", _RESTARTS)


def _indexed(spec: Json, path: str) -> Problems:
    if spec.get("completions") is None:
        yield wording.required(f"{path}.completions", "when completion mode is Indexed")
    for name in ("parallelism", "maxFailedIndexes"):
        number = spec.get(name)
        if isinstance(number, int) and number > _MOST_AT_ONCE:
            rule = f"must be less than or equal to {_MOST_AT_ONCE} when completion mode is Indexed"
            yield wording.invalid(f"{path}.{name}", number, rule)


def _not_indexed(spec: Json, path: str) -> Problems:
    for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if (value := spec.get(name)) is not None:
            yield wording.invalid(f"{path}.{name}", value, _INDEXED)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield wording.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")


def _failure_rule(rule: Json, path: str) -> Problems:
    yield from rules.one_of(rule.get("action") or "", f"{path}.action", _ACTIONS)
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if isinstance(codes, dict):
        yield from rules.one_of(codes.get("operator") or "", f"{path}.onExitCodes.operator", ("In", "NotIn"))
        for index, code in enumerate(codes.get("values") or []):
            if code == 0 and codes.get("operator") == "In":
                yield wording.invalid(f"{path}.onExitCodes.values[{index}]", 0, "must not be 0 for the In operator")
    if codes and conditions:
        what = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield wording.invalid(path, wording.OMITTED, what)
    elif not codes and not conditions:
        what = "specifying one of OnExitCodes and OnPodConditions is required"
        yield wording.invalid(path, wording.OMITTED, what)


def _generated_selector(obj: Json, spec: Json) -> Problems:
    selector = spec.get("selector")
    uid = rules.part(obj, "metadata").get("uid")
    is_generated = selector == {"matchLabels": {_UID_LABEL: uid}}
    if selector is not None and not spec.get("manualSelector") and not is_generated:
        yield wording.invalid("spec.selector", selector, "`selector` not auto-generated")


def _selector(spec: Json) -> Problems:
    selector = spec.get("selector")
    if selector is None:
        yield wording.required("spec.selector")
    else:
        yield from rules.selector(selector, "spec.selector")
    labels = rules.part(rules.part(spec, "template"), "metadata").get("labels")
    if not rules.selects(selector, labels):
        yield wording.invalid("spec.template.metadata.labels", labels, MISMATCH)


def _update(new: Json, old: Json) -> Problems:
    yield from _completions(new, old)
    yield from rules.unchanged(new.get("selector"), old.get("selector"), "spec.selector")
    if _template(new, old) != _template(old, old):
        yield wording.invalid("spec.template", new.get("template"), rules.IMMUTABLE)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from rules.unchanged(new.get(name), old.get(name), f"spec.{name}")


def _completions(new: Json, old: Json) -> Problems:
    """An elastic job, whose completions and parallelism are one number, may change both together."""
    now, before = new.get("completions"), old.get("completions")
    if now == before:
        return
    if new.get("completionMode") != "Indexed" or now is None or before is None:
        yield wording.invalid("spec.completions", now, rules.IMMUTABLE)
    elif now != new.get("parallelism"):
        rule = "can only be modified in tandem with spec.parallelism"
        yield wording.invalid("spec.completions", now, rule)


def _template(spec: Json, old: Json) -> Json:
    """What of the template may not change; a job that has not begun may still be placed elsewhere."""
    template = rules.part(spec, "template")
    if not old.get("suspend"):
        return template
    metadata, inner = dict(rules.part(template, "metadata")), dict(rules.part(template, "spec"))
    for name in ("labels", "annotations"):
        metadata.pop(name, None)
    for name in ("nodeSelector", "affinity", "tolerations", "schedulingGates"):
        inner.pop(name, None)
    return {"metadata": metadata, "spec": inner}


_LONGEST_CRON_JOB_NAME = 52
"""Eleven characters less than a label, for the time in its jobs' names."""


def cron_job(obj: Json, old: Json | None) -> Problems:
    spec, name = rules.part(obj, "spec"), str(rules.part(obj, "metadata").get("name") or "")
    if old is None and len(name) > _LONGEST_CRON_JOB_NAME:
        yield wording.invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB_NAME} characters")
    schedule = str(spec.get("schedule") or "")
    if not schedule:
        yield wording.required("spec.schedule")
    elif "TZ" in schedule:
        what = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield wording.invalid("spec.schedule", schedule, what)
    elif wrong := schedules.problem(schedule):
        yield wording.invalid("spec.schedule", schedule, wrong)
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from rules.at_least(spec.get(field), f"spec.{field}")
    policies = ("Allow", "Forbid", "Replace")
    yield from rules.one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", policies)
    yield from _zone(spec.get("timeZone"))
    inner = rules.part(rules.part(spec, "jobTemplate"), "spec")
    yield from specification(inner, "spec.jobTemplate.spec")
    if inner.get("manualSelector"):
        yield wording.not_supported("spec.jobTemplate.spec.manualSelector", True, ["nil", "false"])


def _zone(zone: object) -> Problems:
    if zone is None:
        return
    if not zone:
        yield wording.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
        return
    try:
        zoneinfo.ZoneInfo(str(zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        yield wording.invalid("spec.timeZone", zone, f"unknown time zone {zone}")
