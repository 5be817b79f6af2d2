"""Which options has the arbitrator beside those of every controller?"""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from octarbiter.api.errors import FieldProblem
from octarbiter.core.arbitration import policies
from octarbiter.runtime import settings
from octarbiter.runtime.settings import Settings

_BUDGET = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,4})s")


class ArbitratorSettings(Settings, frozen=True, kw_only=True):
    lease_name: Annotated[str, Meta(description="Name of the Lease that says who acts.")] = "octarbiter-arbitrator"
    policy: Annotated[
        str, Meta(description="How the queues without a parent share the cluster: drf, hdrf, proportion, capacity, ...")
    ] = "drf"
    reserve_after_s: Annotated[
        float,
        Meta(ge=0, le=86400, description="A claim that has waited so many seconds is not overtaken any more."),
    ] = 60.0
    hold_s: Annotated[
        float,
        Meta(ge=0, le=3600, description="Least seconds between two plans that take back from the same queue."),
    ] = 5.0
    eviction_budget: Annotated[
        str, Meta(description="How many pods may be evicted in how many seconds, e.g. 100/10s.")
    ] = "100/10s"
    mode: Annotated[
        Literal["", "deny", "gate", "default-queue"],
        Meta(description="How namespaces without the label are managed; empty: they are not."),
    ] = ""
    webhook_address: Annotated[
        str,
        Meta(description="host:port where the admission webhook listens; empty: where --webhook-url says, or nowhere."),
    ] = ""
    webhook_url: Annotated[
        str,
        Meta(
            description=(
                "https://host:port under which the API server reaches the webhook; empty: through its Service, "
                "inside the cluster."
            )
        ),
    ] = ""
    webhook_namespace: Annotated[
        str, Meta(description="Namespace of the webhook's Service and of the Secret with its certificates.")
    ] = "octarbiter-system"

    @property
    def budget(self) -> tuple[int, float]:
        """Evictions, and in how many seconds."""
        found = _BUDGET.fullmatch(self.eviction_budget)
        assert found is not None
        return int(found[1]), float(found[2])

    @property
    def webhook_listens(self) -> str:
        """host:port; empty: there is no webhook."""
        if self.webhook_address or not self.webhook_url:
            return self.webhook_address
        parts = urlsplit(self.webhook_url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or 443}"

    def problems(self) -> list[FieldProblem]:
        problems = super().problems()
        if self.policy not in policies.names():
            known = ", ".join(policies.names())
            problems.append(FieldProblem("--policy", f"must be one of {known}, is {self.policy!r}"))
        if not _BUDGET.fullmatch(self.eviction_budget):
            problems.append(
                FieldProblem("--eviction-budget", f"must be like 100/10s (pods/seconds), is {self.eviction_budget!r}")
            )
        if self.webhook_address:
            try:
                settings.host_and_port(self.webhook_address)
            except ValueError as error:
                problems.append(FieldProblem("--webhook-address", str(error)))
        if self.webhook_url and not self.webhook_url.startswith("https://"):
            problems.append(
                FieldProblem("--webhook-url", f"must begin with https://, is {self.webhook_url!r}: others are refused")
            )
        return problems
