"""Which tables of the operating guide are made from the code? They stand between two comments, and are put in there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.metrics import MetricWrapperBase

from octarbiter.cli import installation
from octarbiter.runtime import settings, telemetry

_PLACE = re.compile(r"(<!-- made by `python -m tools\.generate`: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(guide: str) -> str:
    """The guide with its tables as the code is now."""
    tables = {"settings": _settings(), "metrics": _metrics(), "rights": _rights()}
    return _PLACE.sub(lambda place: "".join((place[1], *tables[place[2]], place[3])), guide)


def _settings() -> Iterator[str]:
    rows = (
        (f"`{o.flag}`", f"`{o.env}`", f"`{o.default}`" if o.default != "" else "empty", o.doc)
        for o in settings.options()
    )
    return _table(("Flag", "Environment", "Default", "Meaning"), rows)


def _metrics() -> Iterator[str]:
    return _table(("Metric", "Type", "Labels", "Meaning"), map(_metric, _own_metrics()))


def _own_metrics() -> list[MetricWrapperBase]:
    return [value for value in vars(telemetry.Metrics()).values() if isinstance(value, MetricWrapperBase)]


def _metric(metric: MetricWrapperBase) -> Sequence[str]:
    (family,) = metric.describe()
    # A counter's samples bear this ending, and that is the name a query needs.
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return f"`{name}`", family.type, ", ".join(f"`{label}`" for label in metric._labelnames), family.documentation


def _rights() -> Iterator[str]:
    rules = [("cluster", rule) for rule in installation.RULES]
    rules += [("its own namespace", rule) for rule in installation.LEASE_RULES]
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
