"""TaskSets: valid ones, and those that must not start before their queue has room for them."""

from __future__ import annotations

from octarbiter.api import taskset as api
from octarbiter.core.arbitration import made_claims
from octarbiter.services.webhook import reviews, validating
from octarbiter.services.webhook.view import View


async def validate(request: reviews.Request, view: View) -> reviews.Answer:
    return validating.answer(request, lambda old, new: ())


async def hold(request: reviews.Request, view: View) -> reviews.Answer:
    """A new TaskSet that names a queue begins suspended; the arbitrator makes its claim, and starts it when that is
    allocated. If somebody has made a claim for it, it is his to say how it begins. Never on updates: `spec.suspend` is
    how the arbitrator starts it."""
    if request.operation != "CREATE":
        return reviews.ALLOWED
    taskset: api.TaskSet = request.new(api.TaskSet)
    meta = taskset.metadata
    if taskset.spec.suspend or not made_claims.is_due(taskset):
        return reviews.ALLOWED
    if meta.name and view.has_claim(request.namespace, api.API_VERSION, api.KIND, meta.name):
        return reviews.ALLOWED
    return reviews.Answer(patch=({"op": "add", "path": "/spec/suspend", "value": True},))
