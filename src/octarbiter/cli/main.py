"""The command `octo`.

Starts in a few hundredths of a second because it imports nothing but click: a command's module is imported when that
command is called. That is why the one-line help of each command stands here, too; a test keeps the two alike.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import Any

import click

import octarbiter
from octarbiter.cli import access

COMMANDS = {
    "run": "Run TaskSets from files, show how they go, and end as they end.",
    "up": "Start a cluster on this machine; it stays until `octo down`.",
    "down": "End the cluster that `octo up` has started.",
    "kubectl": "Run kubectl on the cluster that `octo up` has started.",
    "submit": "Create TaskSets, and what belongs to them, from files.",
    "validate": "Check files without a cluster.",
    "get": "List TaskSets.",
    "describe": "Tell all about a TaskSet: what runs, what failed, what it waits for.",
    "logs": "Print what the replicas of a TaskSet have printed.",
    "wait": "Wait until TaskSets have come to something.",
    "delete": "Delete TaskSets, by name or as files name them.",
    "queue": "Queues: who shares the cluster, what each deserves, may use and uses.",
    "queuejob": "QueueJobs: what batch jobs claim of their queue, and what they have got.",
    "why": "Say in one sentence why a Queue, a QueueJob or a TaskSet has what it has, and what would help.",
    "install": "Print or apply what a cluster needs to run TaskSets and to share itself among Queues.",
    "controller": "Run the TaskSet controller until it is told to stop (SIGTERM, Ctrl-C).",
    "arbitrator": "Run the arbitrator until it is told to stop (SIGTERM, Ctrl-C).",
    "testbed": "A real Kubernetes on this machine, with fake nodes, to try things on.",
    "completion": "Print the completion script for a shell.",
}


class Octo(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"octarbiter.cli.{cmd_name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"there is no command {args[0]!r}" + (f"; did you mean {near[0]}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from octarbiter.cli import exits

        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in exits.MEANING.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Every error becomes a message and a code of `exits`; a traceback only for who asks for it."""
        try:
            return super().invoke(ctx)
        except (click.UsageError, click.exceptions.Exit, BrokenPipeError):
            raise
        except click.ClickException:
            if access.wants_debug():
                traceback.print_exc(file=sys.stderr)
            raise
        except (KeyboardInterrupt, click.Abort):
            from octarbiter.cli import exits

            ctx.exit(exits.Exit.INTERRUPTED)
        except Exception as error:
            from octarbiter.cli import exits

            if access.wants_debug():
                traceback.print_exc(file=sys.stderr)
            raise exits.failure_of(error) from error


@click.group(cls=Octo, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(
    octarbiter.__version__, prog_name="octo", message="%(prog)s %(version)s", help="Print the version."
)
@access.namespaced
def cli() -> None:
    """Multi-role batch jobs on Kubernetes: submit TaskSets, see how they fare, and run the controller behind them."""


def main() -> None:
    cli(prog_name="octo")


if __name__ == "__main__":
    main()
