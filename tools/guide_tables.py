"""Which tables of the guides are made from the code? They stand between two comments, and are put in there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from octarbiter.cli import installation
from octarbiter.cli.deployments import Part
from octarbiter.runtime import settings, telemetry
from octarbiter.services.arbitrator.figures import Figures
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.services.webhook import server
from octarbiter.services.webhook.view import View

_METRIC = ("Metric", "Type", "Labels", "Meaning")
_PLACE = re.compile(r"(<!-- made by `python -m tools\.generate`: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(guide: str) -> str:
    """The guide with its tables as the code is now."""
    tables = {
        "settings": _settings(settings.options()),
        "arbitrator_settings": _settings(arbitrator_settings()),
        "metrics": _metrics(),
        "queue_metrics": _table(_METRIC, queue_metrics()),
        "rights": _rights(installation.CONTROLLER),
        "arbitrator_rights": _rights(installation.ARBITRATOR),
    }
    return _PLACE.sub(lambda place: "".join((place[1], *tables[place[2]], place[3])), guide)


def arbitrator_settings() -> list[settings.Option]:
    """Those that it has for itself, or with another default."""
    common = settings.options()
    return [option for option in settings.options(ArbitratorSettings) if option not in common]


def queue_metrics() -> list[Sequence[str]]:
    """Name, type, labels and meaning of what the arbitrator has beside the others."""
    figures = Figures(CollectorRegistry())
    webhook = server.Server("", cast(View, None))._seconds
    return [*map(_metric, (figures.cycle, webhook)), *map(_family, figures.collect())]


def _settings(options: Iterable[settings.Option]) -> Iterator[str]:
    rows = ((f"`{o.flag}`", f"`{o.env}`", f"`{o.default}`" if o.default != "" else "empty", o.doc) for o in options)
    return _table(("Flag", "Environment", "Default", "Meaning"), rows)


def _metrics() -> Iterator[str]:
    return _table(_METRIC, map(_metric, _own_metrics()))


def _own_metrics() -> list[MetricWrapperBase]:
    return [value for value in vars(telemetry.Metrics()).values() if isinstance(value, MetricWrapperBase)]


def _metric(metric: MetricWrapperBase) -> Sequence[str]:
    (family,) = metric.describe()
    # A counter's samples bear this ending, and that is the name a query needs.
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return f"`{name}`", family.type, ", ".join(f"`{label}`" for label in metric._labelnames), family.documentation


def _family(family: Metric) -> Sequence[str]:
    labels = ", ".join(f"`{label}`" for label in getattr(family, "_labelnames", ()))
    return f"`{family.name}`", family.type, labels, family.documentation


def _rights(part: Part) -> Iterator[str]:
    rules = [("cluster", rule) for rule in part.rules]
    rules += [("its own namespace", rule) for rule in part.rules_at_home]
    rows = (
        (
            ", ".join(f"`{name}`" for name in rule["resources"]),
            ", ".join(f"`{group}`" for group in rule["apiGroups"] if group) or "core",
            ", ".join(rule["verbs"]) + "".join(f" (only `{name}`)" for name in rule.get("resourceNames", ())),
            where,
        )
        for where, rule in rules
    )
    return _table(("Resource", "Group", "Verbs", "Where"), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (header, ["---"] * len(header), *rows):
        yield f"| {' | '.join(cells)} |\n"
