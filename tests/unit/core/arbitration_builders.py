"""Short ways to say which queues, jobs and pods there are. Amounts are CPUs, or what `asked` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from octarbiter.api import resources
from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration import lines
from octarbiter.core.arbitration.state import Job, Phase, Pod, Queue, State

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

Sizes = int | str | Mapping[str, str | int]


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def amounts(sizes: Sizes) -> Amounts:
    """`4`: CPUs. `"4/8Gi"`: CPUs and memory. Otherwise by name."""
    if isinstance(sizes, int):
        return resources.asked({"cpu": sizes})
    if isinstance(sizes, str):
        cpu, _, memory = sizes.partition("/")
        return resources.asked({"cpu": cpu, "memory": memory} if memory else {"cpu": cpu})
    return resources.asked(sizes)


def queue(name: str, request: Sizes = 0, **more: Any) -> Queue:
    for field in ("guarantee", "capability", "promised"):
        if field in more:
            more[field] = amounts(more[field])
    return Queue(
        key=f"{name}/{name}", request=resources.some(amounts(request)), created=more.pop("created", at(-1000)), **more
    )


def job(queue_name: str, name: str, unit: Sizes, count: int = 1, **more: Any) -> Job:
    return Job(
        key=f"{queue_name}/{name}",
        queue=f"{queue_name}/{queue_name}",
        unit=amounts(unit),
        count=count,
        created=at(more.pop("created", -500)),
        **more,
    )


def pod(queue_name: str, name: str, requests: Sizes, **more: Any) -> Pod:
    if "job" in more:
        more["job"] = f"{queue_name}/{more['job']}"
    return Pod(
        key=f"{queue_name}/{name}",
        uid=f"uid-of-{name}",
        queue=f"{queue_name}/{queue_name}",
        requests=amounts(requests),
        phase=more.pop("phase", Phase.RUNNING),
        created=at(more.pop("created", -100)),
        **more,
    )


def state(
    total: Sizes,
    queues: Iterable[Queue],
    jobs: Iterable[Job] = (),
    pods: Iterable[Pod] = (),
    policy: str = "drf",
    **more: Any,
) -> State:
    by_queue: dict[str, list[Pod]] = {}
    for each in pods:
        by_queue.setdefault(each.queue, []).append(each)
    return State(
        total=amounts(total),
        policy=policy,
        queues={each.key: each for each in queues},
        lines=lines.by_queue(jobs),
        pods=by_queue,
        used={key: resources.plus(*(each.requests for each in own)) for key, own in by_queue.items()},
        **more,
    )
