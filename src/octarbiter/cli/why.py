"""`octo why`: the sentence that explains what somebody has, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.cli.reasons import Reason
    from octarbiter.runtime.client import Client

KINDS = (arguments.QUEUE, arguments.QUEUEJOB, arguments.TASKSET)


@click.command(name="why")
@click.argument("words", metavar="[queue|queuejob|taskset] NAME", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="For programs: kind, namespace, name, waits, sentence, helps.")
@access.namespaced
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Say in one sentence why a Queue, a QueueJob or a TaskSet has what it has, and what would help.

    `octo why q02`, `octo why queue/q02` and `octo why queue q02` mean the same. A name alone is looked for among all
    three. A TaskSet that waits for its queue is explained by the QueueJob that claims for it.
    """
    kind, name = meant(words)

    async def deed(client: Client, namespace: str) -> Reason:
        from octarbiter.cli import asking

        return await asking.reason(client, namespace, kind, name)

    found = access.run(deed)
    if as_json:
        from octarbiter.api import codec

        click.echo(codec.encode(found))
        return
    click.echo(found.sentence)
    for help_ in found.helps:
        click.echo(f"  - {help_}")


def meant(words: tuple[str, ...]) -> tuple[arguments.Called | None, str]:
    """The kind, if one is said, and the name."""
    if len(words) == 2:
        words = (f"{words[0]}/{words[1]}",)
    if len(words) != 1:
        raise click.UsageError("ask about one: NAME, KIND/NAME or KIND NAME")
    for called in KINDS:
        if called.prefixed(words[0]) is not None:
            return called, arguments.names_of(called, words)[0]
    if "/" in words[0]:
        known = ", ".join(called.words[0] for called in KINDS)
        raise click.UsageError(f"{words[0].partition('/')[0]!r} is none of {known}")
    return None, arguments.names_of(arguments.TASKSET, words)[0]
