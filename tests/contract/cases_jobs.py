"""Jobs and cron jobs: defaults and validation."""

from __future__ import annotations

from typing import Any

from furniture import job
from harness import Api, each

_MAIN = {"name": "main", "image": "busybox"}


@each(
    {
        "indexed": {"completionMode": "Indexed", "completions": 3, "parallelism": 2},
        "indexed with limits": {
            "completionMode": "Indexed",
            "completions": 3,
            "backoffLimitPerIndex": 1,
            "maxFailedIndexes": 2,
        },
        "suspended": {"suspend": True},
        "without completions": {"parallelism": 3},
        "with a deadline": {"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 0},
        "with a failure policy": {
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
        },
        "managed by another": {"managedBy": "example.com/x"},
        "with a success policy": {
            "completionMode": "Indexed",
            "completions": 2,
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        },
    }
)
def a_job_gets_its_defaults(api: Api, spec: dict[str, Any]) -> None:
    api.post("batch/v1/jobs", job("a", **spec))


@each(
    {
        "always restarting": {"template": {"spec": {"restartPolicy": "Always", "containers": [_MAIN]}}},
        "no restart policy": {"template": {"spec": {"containers": [_MAIN]}}},
        "negative counts": {"parallelism": -1, "completions": -1, "backoffLimit": -1},
        "a bad mode": {"completionMode": "Nonsense"},
        "indexed without completions": {"completionMode": "Indexed"},
        "a selector of one's own": {"selector": {"matchLabels": {"a": "b"}}},
        "manual without selector": {"manualSelector": True},
        "a bad deadline": {"activeDeadlineSeconds": -1, "ttlSecondsAfterFinished": -1},
        "limits without index": {"backoffLimitPerIndex": 1},
        "a bad failure policy": {"podFailurePolicy": {"rules": [{"action": "X"}]}},
        "a bad replacement policy": {"podReplacementPolicy": "X"},
        "a bad manager": {"managedBy": "nodomain"},
        "too many indexes": {"completionMode": "Indexed", "completions": 200000, "parallelism": 200000},
        "a bad pod": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "A"}]}}},
    }
)
def a_job_with_something_odd(api: Api, spec: dict[str, Any]) -> None:
    api.post("batch/v1/jobs?dryRun=All", job("a", **spec))


@each({"bad": "x", "six": "* * * * * *", "macro": "@hourly", "zone": "TZ=UTC * * * * *", "range": "99 * * * *"})
def a_cron_jobs_schedule(api: Api, schedule: str) -> None:
    spec = {"schedule": schedule, "jobTemplate": {"spec": job("a")["spec"]}}
    answer = api.ask("POST", "batch/v1/cronjobs?dryRun=All", {"metadata": {"name": "a"}, "spec": spec})
    api.note("answer", [answer.code, answer.body.get("message"), answer.body.get("details")])


@each({"none": (None, None), "its own": ("x", None), "its template's": (None, "y"), "both": ("x", "y")})
def a_job_has_labels(api: Api, labels: Any) -> None:
    for name in ("a", "a" * 64):
        made = job(name)
        for about, label in zip(
            (made["metadata"], made["spec"]["template"].setdefault("metadata", {})), labels, strict=True
        ):
            if label is not None:
                about["labels"] = {"label": label}
        api.post("batch/v1/jobs", made)
