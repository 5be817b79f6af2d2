"""Are deployments and their kin in order? And what of them may change?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import jobs, names, pods, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_STATEFUL_CHANGES = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_STATEFUL_RULE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def deployment(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from _common(spec, "deployment")
    strategy = rules.part(spec, "strategy")
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                rule = "may not be specified when strategy `type` is 'Recreate'"
                yield wording.forbidden("spec.strategy.rollingUpdate", rule)
        case "RollingUpdate":
            yield from _rolling(rolling if isinstance(rolling, dict) else {})
        case _:
            yield wording.not_supported("spec.strategy", strategy, ["Recreate", "RollingUpdate"])
    yield from rules.at_least(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if isinstance(deadline, int) and deadline <= (spec.get("minReadySeconds") or 0):
        yield wording.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from _same_selector(spec, old)


def _rolling(rolling: Json) -> Problems:
    path = "spec.strategy.rollingUpdate"
    for name in ("maxUnavailable", "maxSurge"):
        yield from rules.int_or_percent(rolling.get(name), f"{path}.{name}")
    if all(rolling.get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")):
        where = f"{path}.maxUnavailable"
        yield wording.invalid(where, rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")


def replica_set(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from _common(spec, "deployment")
    yield from _same_selector(spec, old)


def daemon_set(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from _common(spec, "daemonset", needs_selector=False)
    yield from _same_selector(spec, old)


def stateful_set(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from _common(spec, "statefulset")
    policies = ("OrderedReady", "Parallel")
    yield from rules.one_of(spec.get("podManagementPolicy"), "spec.podManagementPolicy", policies)
    if old is not None:
        before = rules.part(old, "spec")
        if any(spec.get(name) != before.get(name) for name in {*spec, *before} - {*_STATEFUL_CHANGES}):
            yield wording.forbidden("spec", _STATEFUL_RULE)


def replication_controller(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    if not spec.get("selector"):
        yield wording.required("spec.selector")
    for name in ("replicas", "minReadySeconds"):
        yield from rules.at_least(spec.get(name), f"spec.{name}")
    if not isinstance(template := spec.get("template"), dict):
        yield wording.required("spec.template")
        return
    yield from _template(template, {"matchLabels": spec.get("selector") or {}})


def pod_template(obj: Json, old: Json | None) -> Problems:
    yield from pods.template(rules.part(obj, "template"), "template")


def controller_revision(obj: Json, old: Json | None) -> Problems:
    yield from rules.at_least(obj.get("revision"), "revision")
    if obj.get("data") is None:
        yield wording.required("data", "data is mandatory")
    if old is not None and obj.get("data") != old.get("data"):
        yield wording.invalid("data", obj.get("data"), rules.IMMUTABLE)


def _common(spec: Json, kind: str, *, needs_selector: bool = True) -> Problems:
    selector = spec.get("selector")
    if selector is None:
        if needs_selector:
            yield wording.required("spec.selector")
    else:
        wrong = list(rules.selector(selector, "spec.selector"))
        yield from wrong
        if not wrong and not any(selector.values()):
            yield wording.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
        if wrong and kind != "daemonset":
            detail = "" if kind == "statefulset" else "invalid label selector"
            yield wording.invalid("spec.selector", selector, detail)
        if wrong:
            selector = {}
    for name in ("replicas", "minReadySeconds"):
        yield from rules.at_least(spec.get(name), f"spec.{name}")
    yield from _template(rules.part(spec, "template"), selector)


def _template(template: Json, selector: object) -> Problems:
    labels = rules.part(template, "metadata").get("labels")
    if not rules.selects(selector, labels):
        yield wording.invalid("spec.template.metadata.labels", labels, jobs.MISMATCH)
    yield from pods.template(template, "spec.template")
    policy = rules.part(template, "spec").get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        yield wording.not_supported("spec.template.spec.restartPolicy", policy, ["Always"])


def _same_selector(spec: Json, old: Json | None) -> Problems:
    if old is not None:
        yield from rules.unchanged(spec.get("selector"), rules.part(old, "spec").get("selector"), "spec.selector")


def autoscaler(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    yield from rules.at_least(least, "spec.minReplicas", 1)
    if most < 1:
        yield wording.invalid("spec.maxReplicas", most, "must be greater than 0")
    if isinstance(least, int) and most < least:
        yield wording.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = rules.part(spec, "scaleTargetRef")
    for name in ("kind", "name"):
        yield from rules.named(target.get(name), f"spec.scaleTargetRef.{name}", names.path_segment)
    version = str(target.get("apiVersion") or "")
    if "/" not in version and target.get("kind") != "ReplicationController":
        path = "spec.scaleTargetRef.apiVersion"
        yield wording.invalid(path, version, "apiVersion must specify API group")


def disruption_budget(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        order = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
        shown = {name[0].upper() + name[1:]: spec.get(name) for name in order}
        rule = "minAvailable and maxUnavailable cannot be both set"
        yield wording.invalid("spec", wording.in_order(shown), rule)
    for name in ("minAvailable", "maxUnavailable"):
        yield from rules.int_or_percent(spec.get(name), f"spec.{name}")
    yield from rules.selector(spec.get("selector"), "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    yield from rules.one_of(spec.get("unhealthyPodEvictionPolicy"), "spec.unhealthyPodEvictionPolicy", policies)
