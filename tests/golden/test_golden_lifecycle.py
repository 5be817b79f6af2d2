"""One look at a TaskSet each: `NAME.input.yaml` says what is known and seen, `NAME.output.yaml` what is decided.

An input holds `taskset` (a manifest, perhaps with a status; or `after: NAME`, the TaskSet as another look left it, with
changes of the spec beside it), `seen`, `now`, and perhaps `earlier` looks. Pods are as the API server shows them;
labels and UID follow from the name where they are left out. Times in an output are told from `now` on, UIDs by whose
they are: `<now+10s>`, `<job-a-0-0-0>`. Only replicas of which something new is said are listed.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import ConfigMap, Service
from octarbiter.api.pod import Pod
from octarbiter.core.lifecycle import names, observe, story
from octarbiter.core.lifecycle.decide import Decision, decide

FOLDER = Path(__file__).parent / "lifecycle"
NAMES = sorted(path.name.removesuffix(".input.yaml") for path in FOLDER.glob("*.input.yaml"))

Json = dict[str, Any]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_decided_is_what_the_contract_says(name: str, regenerate: bool) -> None:
    expected = FOLDER / f"{name}.output.yaml"
    actual = told(name)
    if regenerate:
        expected.write_text(as_text(actual))

    assert yaml.safe_load(expected.read_text()) == actual


def test_no_output_is_left_over() -> None:
    assert sorted(path.name.removesuffix(".output.yaml") for path in FOLDER.glob("*.output.yaml")) == NAMES


# --- the input


@cache
def read(name: str) -> Json:
    loaded: Json = yaml.safe_load((FOLDER / f"{name}.input.yaml").read_text())
    unknown = loaded.keys() - {"says", "taskset", "earlier", "seen", "now", "problems"}
    assert not unknown, f"{name}: {unknown}"
    return loaded


def taskset_of(given: Json) -> api.TaskSet:
    if "after" not in given:
        whole = {"apiVersion": api.API_VERSION, "kind": api.KIND, **given}
        whole["metadata"] = {"namespace": "default", "uid": "uid-of-taskset", "generation": 1, **whole["metadata"]}
        return codec.from_json(whole, api.TaskSet)
    before, decision = looked(given["after"])
    taskset = msgspec.structs.replace(before, status=decision.status)
    changed = codec.to_json(taskset)
    changed["spec"] |= given.get("spec", {})
    changed["metadata"] |= given.get("metadata", {})
    if "spec" in given:
        changed["metadata"]["generation"] += 1
    return codec.from_json(changed, api.TaskSet)


def pod_of(given: Json, taskset: api.TaskSet) -> Pod:
    name = given["metadata"]["name"]
    role = next(r.name for r in taskset.spec.roles if name.startswith(f"{taskset.metadata.name}-{r.name}-"))
    labels = {names.ROLE_LABEL: role, names.INDEX_LABEL: name.rsplit("-", 1)[1]}
    metadata = {"uid": f"uid-of-{name}", "labels": labels, **given["metadata"]}
    return codec.from_json({**given, "metadata": metadata}, Pod)


def seen_of(given: Json, taskset: api.TaskSet) -> observe.Seen:
    unknown = given.keys() - {"pods", "controlUnits", "service", "nodes", "refusals"}
    assert not unknown, unknown
    units = [{**unit, "uid": unit.get("uid", f"uid-of-{unit['name']}")} for unit in given.get("controlUnits", [])]
    return observe.Seen(
        pods=tuple(pod_of(pod, taskset) for pod in given.get("pods", [])),
        control_units=tuple(codec.from_json({"metadata": unit}, ConfigMap) for unit in units),
        service=codec.from_json({"metadata": given["service"]}, Service) if "service" in given else None,
        ready_nodes=given.get("nodes", {"node-a": True, "node-b": True}),
        refusals={
            (refused.get("role", ""), refused.get("index", 0)): observe.Refusal(
                refused["kind"], refused["message"], refused["againAt"]
            )
            for refused in given.get("refusals", [])
        },
    )


@cache
def looked(name: str) -> tuple[api.TaskSet, Decision]:
    given = read(name)
    taskset = taskset_of(given["taskset"])
    for look in given.get("earlier", []):
        decision = decide(taskset, seen_of(look.get("seen", {}), taskset), look["now"])
        taskset = msgspec.structs.replace(taskset, status=decision.status)
    problems = tuple(given.get("problems", ()))
    return taskset, decide(taskset, seen_of(given.get("seen", {}), taskset), given["now"], problems)


# --- the output


def told(name: str) -> Json:
    taskset, decision = looked(name)
    now: datetime = read(name)["now"]
    status = decision.status
    whole: Json = {
        "actions": [{type(action).__name__: codec.to_json(action)} for action in decision.actions],
        "record": str(decision.record),
        "lookAgainAt": decision.look_again_at,
        "status": {
            **{key: value for key, value in codec.to_json(status).items() if key not in ("roleStatus", "conditions")},
            "roleStatus": [_role(role, taskset.status) for role in status.role_status],
        },
        "events": [f"{line.reason}: {line.message}" for line in story.between(taskset.status, status)],
    }
    plain: Json = _placed(_essential(codec.to_json(whole)), now)
    return {key: value for key, value in plain.items() if value not in (None, [])}


def _role(role: api.RoleStatus, before: api.TaskSetStatus) -> Json:
    """Replicas of which this look says nothing new are counted, not listed."""
    old = next((r.replica_status for r in before.role_status if r.name == role.name), [])
    changed = [replica for replica in role.replica_status if replica not in old]
    shown = codec.to_json(msgspec.structs.replace(role, replica_status=changed))
    if len(changed) < len(role.replica_status):
        shown["unchangedReplicas"] = len(role.replica_status) - len(changed)
    return shown  # type: ignore[no-any-return]


def _essential(value: Any) -> Any:
    """Without what is said twice."""
    if isinstance(value, list):
        return [_essential(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _essential(item) for key, item in value.items()}
    if kept.get("phaseMessage") == kept.get("stateMessage"):
        kept.pop("phaseMessage", None)
    for name in ("observedGeneration", "transitionTime", "containerName", "containerID"):
        kept.pop(name, None)
    return kept


def _placed(value: Any, now: datetime) -> Any:
    if isinstance(value, list):
        return [_placed(item, now) for item in value]
    if isinstance(value, dict):
        return {key: _placed(item, now) for key, item in value.items()}
    if isinstance(value, str) and value.startswith("uid-of-"):
        return f"<{value.removeprefix('uid-of-')}>"
    if isinstance(value, str) and len(value) == len("2024-01-01T00:00:00Z") and value.endswith("Z"):
        seconds = int((datetime.fromisoformat(value) - now).total_seconds())
        return "<now>" if seconds == 0 else f"<now{seconds:+d}s>"
    return value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_text(value: Json) -> str:
    """Small mappings on one line each, so that a look fits a screen."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=118, default_flow_style=None, allow_unicode=True)
