"""Queues: valid in themselves, and beside the others that there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from octarbiter.api import fieldcheck
from octarbiter.api.errors import FieldProblem
from octarbiter.api.meta import Json
from octarbiter.api.queue import Queue
from octarbiter.services.webhook import reviews, validating
from octarbiter.services.webhook.view import View


async def validate(request: reviews.Request, view: View) -> reviews.Answer:
    def further(_old: Json, _new: Json) -> Iterable[FieldProblem]:
        queue: Queue = request.new(Queue)
        # A name that is yet to be generated is nobody else's.
        meta = structs.replace(queue.metadata, namespace=request.namespace, name=queue.metadata.name or "(new)")
        return beside_others(structs.replace(queue, metadata=meta), view.queues(), view.policies)

    return validating.answer(request, further)


def beside_others(queue: Queue, others: Mapping[str, Queue], policies: Iterable[str]) -> Iterator[FieldProblem]:
    """A parent that does not exist is no mistake: files are applied in any order."""
    known = sorted(policies)
    if queue.spec.policy and queue.spec.policy not in known:
        hint = fieldcheck.suggestion(queue.spec.policy, known)
        said = fieldcheck.shown(queue.spec.policy)
        yield FieldProblem("spec.policy", f"no policy is called {said}{hint}; there are {', '.join(known)}")
    key = queue.metadata.key
    after = {**others, key: queue}
    if circle := _circle(key, after):
        yield FieldProblem("spec.parent", f"a queue cannot be its own ancestor: {' -> '.join(circle)}")
        return
    before, now = _leaves(others), _leaves(after)
    for namespace in dict.fromkeys(each.partition("/")[0] for each in (key, _parent(others.get(key)))):
        here = now.get(namespace, [])
        if len(here) > max(1, len(before.get(namespace, []))):
            other = next(each for each in here if each != key)
            yield FieldProblem(
                "spec.parent" if key in others else "metadata.namespace",
                f"a namespace has one queue without children, and {namespace} has {other}: change that one (octo queue "
                f"set), or name this one as its parent",
            )


def _circle(key: str, queues: Mapping[str, Queue]) -> list[str]:
    walk = [key]
    while (parent := _parent(queues.get(walk[-1]))) and parent not in walk:
        walk.append(parent)
    return [*walk, key] if parent == key else []


def _parent(queue: Queue | None) -> str:
    return queue.parent_key if queue is not None else ""


def _leaves(queues: Mapping[str, Queue]) -> dict[str, list[str]]:
    """By namespace."""
    parents = {queue.parent_key for queue in queues.values()}
    found: dict[str, list[str]] = {}
    for key in queues:
        if key not in parents:
            found.setdefault(key.partition("/")[0], []).append(key)
    return found
