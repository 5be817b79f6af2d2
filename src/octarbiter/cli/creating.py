"""Creates what files hold, in their order. Where it breaks off, the error says what is there and what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from octarbiter.api import errors
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import Resource
from octarbiter.cli import discovery, exits, sending
from octarbiter.cli.sources import Document
from octarbiter.runtime import requests
from octarbiter.runtime.client import Client

Made = tuple[Resource[Object], Json]


async def create(
    client: Client,
    namespace: str,
    documents: Sequence[Document],
    *,
    dry: bool = False,
    each: Callable[[Json], None] = lambda _: None,
) -> list[Made]:
    """`each` is called with every object that the server has taken."""
    resources = await discovery.resources_of(client, documents)
    options = {"fieldManager": sending.FIELD_MANAGER, "fieldValidation": "Strict", **({"dryRun": "All"} if dry else {})}
    made: list[Made] = []
    for document, resource in zip(documents, resources, strict=True):
        request = requests.create(resource, sending.namespace_for(resource, document, namespace), document.body)
        try:
            body = await sending.answer_of(client, sending.with_query(request, **options))
        except errors.ApiError as error:
            failure = exits.failure_of(error)
            story = _broken_off(document, failure.message, documents, made, dry)
            raise exits.Failure(failure.code, story) from error
        made.append((resource, body))
        each(body)
    return made


def tasksets(made: Sequence[Made], documents: Sequence[Document]) -> list[tuple[str, str]]:
    """Namespace and name of each."""
    bodies = [body for (_, body), document in zip(made, documents, strict=True) if document.is_taskset]
    return [(body["metadata"]["namespace"], body["metadata"]["name"]) for body in bodies]


def _broken_off(
    document: Document, message: str, documents: Sequence[Document], made: Sequence[Made], dry: bool
) -> str:
    lines = [f"{document.shown} ({document.where}) was refused: {message}"]
    unsent = documents[len(made) + 1 :]
    if made and not dry:
        lines.append(f"Created before it, and still there: {', '.join(sending.short(body) for _, body in made)}")
    if unsent:
        lines.append(f"Not sent: {', '.join(later.shown for later in unsent)}")
    return "\n".join(lines)
