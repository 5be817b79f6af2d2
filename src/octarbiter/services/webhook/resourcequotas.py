"""ResourceQuotas that follow a queue: who may change or delete them?"""

from __future__ import annotations

from typing import Final

from octarbiter.api.core_kinds import ResourceQuota
from octarbiter.api.meta import Json
from octarbiter.core.quota import admission, objects
from octarbiter.services.webhook import reviews
from octarbiter.services.webhook.view import View

_OTHER_METADATA: Final = ("labels", "annotations", "ownerReferences", "finalizers")


async def protect(request: reviews.Request, view: View) -> reviews.Answer:
    place = view.place(request.namespace)
    asker = request.user_info.asker
    old = objects.quota(request.old(ResourceQuota))
    if request.operation == "DELETE":
        living = {queue.metadata.uid: key for key, queue in view.queues().items()}
        verdict = admission.of_quota_deletion(old, place, asker, view.us, living)
    else:
        new = objects.quota(request.new(ResourceQuota))
        touched = _touched(request.old(dict), request.new(dict))
        verdict = admission.of_quota_change(old, new, touched, place, asker, view.us)
    return reviews.Answer(refusal=verdict.refusal)


def _touched(old: Json, new: Json) -> list[str]:
    before, after = (obj.get("metadata") or {} for obj in (old, new))
    return [f"metadata.{name}" for name in _OTHER_METADATA if (before.get(name) or None) != (after.get(name) or None)]
