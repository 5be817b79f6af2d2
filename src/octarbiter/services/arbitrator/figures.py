"""What do dashboards and alarms see of queues? Taken from the latest decision when somebody asks, and only then."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from octarbiter.core.arbitration.state import QueueResult
from octarbiter.services.arbitrator.holding import Decided

RESOURCE_FIGURES = {
    "demand": "What the queue asks for.",
    "deserved": "What the queue deserves.",
    "allocated": "What the queue may use now.",
    "used": "What the pods of the queue ask for.",
    "preempting": "What the queue deserves and others still hold.",
}


class Figures(Collector):
    """Amounts are in canonical units: thousandths of a CPU, bytes, pieces."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._decided: Decided | None = None
        self.cycle = Histogram(
            "octarbiter_arbitration_seconds",
            "How long one arbitration took, from what was seen to what should be.",
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0),
            registry=registry,
        )
        registry.register(self)

    def show(self, decided: Decided) -> None:
        self._decided = decided

    def collect(self) -> Iterator[GaugeMetricFamily]:
        results: dict[str, QueueResult] = dict(self._decided.outcome.queues) if self._decided is not None else {}
        for figure, meaning in RESOURCE_FIGURES.items():
            family = GaugeMetricFamily(f"octarbiter_queue_{figure}", meaning, labels=("queue", "resource"))
            for key, result in results.items():
                for name, amount in getattr(result, figure).items():
                    family.add_metric((key, name), amount)
            yield family
        weight = GaugeMetricFamily("octarbiter_queue_weight", "The weight of the queue.", labels=("queue",))
        share = GaugeMetricFamily(
            "octarbiter_queue_dominant_share", "The dominant share of what the queue may use now.", labels=("queue",)
        )
        for key, result in results.items():
            assert self._decided is not None
            weight.add_metric((key,), self._decided.state.queues[key].weight)
            share.add_metric((key,), result.share[0] / result.share[1])
        yield weight
        yield share
