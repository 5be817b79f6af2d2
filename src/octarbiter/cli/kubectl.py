"""`octo kubectl`: kubectl, on the cluster of `octo up`."""

from __future__ import annotations

import click


class _Verbatim(click.Command):
    """click would keep `--`, and what it takes for options of its own, from kubectl."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--", *args])


@click.command(name="kubectl", cls=_Verbatim, context_settings={"help_option_names": []})
@click.argument("words", metavar="ARGUMENT...", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Run kubectl on the cluster that `octo up` has started.

    All arguments are kubectl's own.
    """
    import os
    import shutil

    from octarbiter.cli import embedding, exits
    from octarbiter.testing.kubernetes import build

    directory = embedding.home()
    if embedding.running(directory) is None:
        raise exits.Failure(exits.Exit.NOT_FOUND, "no cluster is up: `octo up` starts one")
    built = build.find("kubectl")
    found = shutil.which("kubectl") or (str(built) if built is not None else None)
    if found is None:
        raise exits.Failure(exits.Exit.NOT_FOUND, "there is no kubectl on this machine's PATH")
    # In our place: its signals, terminal and exit code are kubectl's own.
    os.execve(found, ["kubectl", *words], {**os.environ, "KUBECONFIG": str(directory / embedding.KUBECONFIG)})  # noqa: S606
