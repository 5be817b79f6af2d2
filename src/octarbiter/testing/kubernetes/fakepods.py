"""How does a pod on a fake node live and die?

kwok moves objects along *stages*; these are ours, in the place of the kubelet: what it would report for such a pod,
they report. (Given one stage of its own, kwok loads none of its stock ones, so the list is complete.)

What the program in a pod would do is told by annotations of the pod, or else read from its command:

- `fake.octarbiter/duration`: how long the containers run, such as `500ms`, `90s`, `1m30s`, or `forever`.
  Without it, the sum of every `sleep N` in command and arguments of the first container; nothing, if there is an `exit`
  and no sleep; for ever, if there is neither.
- `fake.octarbiter/exit-code`: what they exit with. Without it, the last `exit N` in the same place, else 0.
- `fake.octarbiter/message`: their termination message.
- `fake.octarbiter/lingers`: how long they run on when the pod is deleted; without it, they obey SIGTERM at once.
- `fake.octarbiter/stuck: "true"`: once the pod is deleted, no more is heard of it, and its deletion is never confirmed.
- `fake.octarbiter/silent: "true"`: nothing is heard of the pod any more, as if its node were lost.

In durations, exit code and command, `$(NAME)` and `${NAME}` stand for the literal environment variables of the first
container, so that one pod template can make each replica end differently. The annotations may also be lists, for pods
called `...-TASKSET ATTEMPT-REPLICA ATTEMPT-INDEX`: `1,1,0` gives the replica's first two attempts 1 and all later
ones 0; `1,0/0` is that for index 0, and 0 for all others; `1;1,0/0` is 1 for everybody in the TaskSet's first attempt,
and that in all later ones.

All containers of a pod end alike (when deleted, with 143); init containers have completed. A container that restarts,
by the pod's restartPolicy, does so after ten seconds, and shows as running until then.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DURATION = "fake.octarbiter/duration"
EXIT_CODE = "fake.octarbiter/exit-code"
MESSAGE = "fake.octarbiter/message"
LINGERS = "fake.octarbiter/lingers"
STUCK = "fake.octarbiter/stuck"
SILENT = "fake.octarbiter/silent"
# kwok drops what it had planned for a pod only for something new to do. So a silent pod gets one thing more done, this
# annotation, which also tells that silence has begun.
SILENCED = "fake.octarbiter/silenced"

_FILES = Path(__file__).parent / "stages"
_RESTART_BACKOFF_MS = 10_000
_HEARTBEAT_MS = 300_000
# The server needs a moment for its second half; the news of it calls this off.
_HALF_WAY_MS = 2_000
# kwok's own four at a time make the latency of the server, not its throughput, the limit of a load test.
_AT_ONCE = 32


def configuration() -> str:
    """The YAML documents kwok reads: its settings and all stages."""
    return yaml.safe_dump_all([_settings(), *_node_stages(), *_pod_stages()])


def _settings() -> dict[str, Any]:
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        # With one option given, kwok has no defaults for the others, either; it does not start with none of these.
        "options": {
            "podPlayStageParallelism": _AT_ONCE,
            "nodePlayStageParallelism": 4,
            "nodeLeaseParallelism": 4,
            "podsOnNodeSyncParallelism": 1,
            "enablePodsOnNodeSyncListPager": True,
        },
    }


def _node_stages() -> Iterator[dict[str, Any]]:
    ready = '[.status.conditions[]? | select(.type == "Ready") | .status] == ["True"]'
    status = _status(_text("node.tmpl"))
    yield _stage("Node", "node-ready", [_is_false(ready)], [status])
    yield _stage("Node", "node-heartbeat", [_is_true(ready)], [status], {"durationMilliseconds": _HEARTBEAT_MS})


def _pod_stages() -> Iterator[dict[str, Any]]:
    head = _text("head.tmpl")
    run, end, restart = (_status(head + _text(f"{name}.tmpl")) for name in ("run", "end", "restart"))
    kill = _status(head + "{{ $code = 143 }}\n" + _text("end.tmpl"))
    silence = {"patch": {"type": "merge", "template": f'metadata: {{annotations: {{{SILENCED}: "true"}}}}'}}

    pending = _is_true(_jq('$pod.status.phase == "Pending"'))
    running = _is_true(_jq('$pod.status.phase == "Running"'))
    not_running = _is_true(_jq('$pod.status.phase != "Running"'))
    # Grace 0 means that we confirmed, and that a finalizer holds the pod. If none does, the server was about to remove
    # a pod that had ended, and gave up half-way because whoever asked for it died. A kubelet would ask again.
    unconfirmed = _is_true(_jq("$pod.metadata.deletionGracePeriodSeconds != 0"))
    confirmed = _is_true(_jq("$pod.metadata.deletionGracePeriodSeconds == 0"))
    unheld = _is_true(_jq("$pod.metadata.finalizers // [] | length == 0"))
    stays, goes = _is_false(_jq("goes")), _is_true(_jq("goes"))
    speaks, silent = _is_false(_jq("silent")), _is_true(_jq("silent"))
    ends = _is_true(_jq("duration != null"))
    final, restarts = _is_false(_jq("restarts")), _is_true(_jq("restarts"))

    # The cheap questions first: kwok asks all of this for every event of every pod, until one answer is no.
    yield _stage("Pod", "pod-run", [pending, stays, speaks], [run])
    yield _stage("Pod", "pod-end", [running, stays, speaks, ends, final], [end], _after("left(duration)"))
    backoff = _after(f"left(duration + {_RESTART_BACKOFF_MS})")
    yield _stage("Pod", "pod-restart", [running, stays, speaks, ends, restarts], [restart], backoff)
    yield _stage("Pod", "pod-kill", [goes, running, speaks], [kill], _after("lingering"))
    yield _stage("Pod", "pod-remove", [goes, not_running, unconfirmed, speaks], [{"delete": True}])
    patience = {"durationMilliseconds": _HALF_WAY_MS}
    yield _stage("Pod", "pod-remove-again", [goes, confirmed, unheld, speaks], [{"delete": True}], patience)
    yield _stage("Pod", "pod-silence", [silent, _is_false(_jq("silenced"))], [silence])


def _stage(
    kind: str, name: str, when: list[dict[str, Any]], steps: list[dict[str, Any]], delay: dict[str, Any] | None = None
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": when},
        "steps": steps,
    }
    if delay is not None:
        spec["delay"] = delay
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def _status(template: str) -> dict[str, Any]:
    return {"patch": {"subresource": "status", "type": "strategic", "template": template}}


def _after(expression: str) -> dict[str, Any]:
    return {"durationFrom": {"jq": {"expression": _jq(expression)}}}


def _is_true(expression: str) -> dict[str, Any]:
    return {"jq": {"key": expression, "operator": "In", "values": ["true"]}}


def _is_false(expression: str) -> dict[str, Any]:
    return {"jq": {"key": expression, "operator": "NotIn", "values": ["true"]}}


def _jq(expression: str) -> str:
    return f". as $pod | {_text('program.jq')} {expression}"


def _text(file: str) -> str:
    return (_FILES / file).read_text()
