"""What does the exit code of `octo` say, and which one belongs to which error?

One table for every command. Scripts rely on it, so `octo --help` prints it and nothing else decides a code.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from octarbiter.api.meta import Status


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    INVALID = 2
    NOT_FOUND = 3
    REFUSED = 4
    TIMEOUT = 5
    DEFECT = 70
    INTERRUPTED = 130


MEANING = {
    Exit.OK: "done as asked",
    Exit.FAILED: "the TaskSet failed, or what was waited for can no longer happen",
    Exit.INVALID: "wrong usage or invalid input",
    Exit.NOT_FOUND: "it does not exist",
    Exit.REFUSED: "the API server refused, does not serve it, or cannot be reached",
    Exit.TIMEOUT: "what was waited for did not happen in time",
    Exit.DEFECT: "a defect of octo itself",
    Exit.INTERRUPTED: "interrupted (Ctrl-C)",
}


class Failure(click.ClickException):
    """Ends the command with a message for people and the code that says the same to scripts."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = code  # type: ignore[misc]  # click declares it for the class and reads it from the instance


def together(failures: Sequence[Failure]) -> Failure:
    """All that went wrong in one; the first one's code."""
    return Failure(failures[0].code, "\n".join(failure.message for failure in failures))


def failure_of(error: Exception) -> Failure:
    from octarbiter.api import errors

    match error:
        case errors.Refused():
            return Failure(Exit.INVALID, str(error).strip())
        case errors.NotFound() if not error.status.details.name:
            told = "the cluster does not serve this kind; `octo install --apply` teaches it"
            return Failure(Exit.REFUSED, f"{told}\n({error})")
        case errors.NotFound():
            return Failure(Exit.NOT_FOUND, str(error))
        case errors.Invalid():
            return Failure(Exit.INVALID, _with_causes(error.status))
        case errors.ApiError():
            return Failure(Exit.REFUSED, str(error))
        case _:
            told = f"{type(error).__name__}: {error}"
            return Failure(Exit.DEFECT, f"this is a defect of octo: {told}\nRun it again with --debug to see where.")


def _with_causes(status: Status) -> str:
    """The server's own message strings all causes into one line; people want a line for each."""
    from octarbiter.api import errors

    details = status.details
    problems = [errors.FieldProblem(cause.field, cause.message) for cause in details.causes if cause.message]
    if not problems:
        return status.message
    return str(errors.Refused(problems, f"{details.kind or 'object'} {details.name}".strip()))
