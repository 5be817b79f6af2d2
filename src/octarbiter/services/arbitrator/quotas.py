"""Makes the quotas say what the ledger says.

What goes down goes down first, everywhere: at no moment may all namespaces together use more than there is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from octarbiter.api import errors, quantity, scheme
from octarbiter.api.core_kinds import ResourceQuota
from octarbiter.api.queue import Queue
from octarbiter.core.quota import keys, ledger, objects
from octarbiter.runtime import cache, client, fairness

log = logging.getLogger(__name__)

Deeds = Callable[[], Mapping[str, list[ledger.Deed]]]
"""By namespace, as of now."""


class Quotas:
    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        quotas: cache.Cache[ResourceQuota],
        queues: cache.Cache[Queue],
    ) -> None:
        self._client, self._gate, self._quotas, self._queues = client_, gate, quotas, queues

    async def lower(self, deeds: Deeds) -> None:
        """Only what becomes less."""
        wanted = [
            (namespace, less)
            for namespace, listed in deeds().items()
            for deed in listed
            if isinstance(deed, ledger.ChangeQuota) and (less := self._lowered(namespace, deed)) is not None
        ]
        await self._carry_out(wanted)

    async def settle(self, deeds: Deeds) -> bool:
        """Everything else. True: a Queue was made, and there is something new to decide on."""
        wanted = [(namespace, deed) for namespace, listed in deeds().items() for deed in listed]
        await self._carry_out(wanted)
        return any(isinstance(deed, ledger.CreateQueue) for _, deed in wanted)

    def _lowered(self, namespace: str, deed: ledger.ChangeQuota) -> ledger.ChangeQuota | None:
        known = self._quotas.get(f"{namespace}/{deed.name}")
        if known is None:
            return None
        before = {name: str(value) for name, value in known.spec.hard.items()}
        # What had no limit gets none but nothing: what it may have is due only when the others have given it up.
        lower: keys.Hard = {
            name: value if name in before else "0"
            for name, value in deed.hard.items()
            if _is_less(value, before.get(name))
        }
        return msgspec.structs.replace(deed, hard=lower) if lower else None

    async def _carry_out(self, wanted: Iterable[tuple[str, ledger.Deed]]) -> None:
        """In order within a namespace; what one meets does not stop the others."""
        by_namespace: dict[str, list[ledger.Deed]] = {}
        for namespace, deed in wanted:
            by_namespace.setdefault(namespace, []).append(deed)
        outcomes = await asyncio.gather(
            *(self._in_namespace(namespace, deeds) for namespace, deeds in by_namespace.items()),
            return_exceptions=True,
        )
        for namespace, outcome in zip(by_namespace, outcomes, strict=True):
            if isinstance(outcome, errors.ApiError):
                log.warning("a quota could not be written", extra={"namespace": namespace, "error": str(outcome)})
        problems = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if problems:
            raise problems[0]

    async def _in_namespace(self, namespace: str, deeds: Iterable[ledger.Deed]) -> None:
        for deed in deeds:
            async with self._gate.slot(namespace):
                await self._do(namespace, deed)

    async def _do(self, namespace: str, deed: ledger.Deed) -> None:
        match deed:
            case ledger.CreateQuota():
                body = objects.new_quota(deed)
                self._quotas.put(await self._client.create(scheme.RESOURCEQUOTAS, namespace, body))
            case ledger.ChangeQuota() | ledger.RestoreQuota():
                patch = objects.change(deed)
                written = await self._client.merge_patch(scheme.RESOURCEQUOTAS, namespace, deed.name, patch)
                self._quotas.put(written)
            case ledger.DeleteQuota(name=name, uid=uid):
                await self._client.delete(scheme.RESOURCEQUOTAS, namespace, name, uid=uid)
                self._quotas.remove(f"{namespace}/{name}", uid)
            case ledger.CreateQueue():
                body = objects.new_queue(deed, namespace)
                self._queues.put(await self._client.create(scheme.QUEUES, namespace, body))


def _is_less(new: str | None, old: str | None) -> bool:
    if new is None:
        return False
    return old is None or quantity.parse(new).nano < quantity.parse(old).nano
