"""What does an answer mean, or its absence, and may the request be sent again?"""

from __future__ import annotations

import os
from typing import Final, TypeVar

import msgspec

from octarbiter.api import codec, errors
from octarbiter.api.meta import Status
from octarbiter.runtime.requests import Request

UNREACHABLE: Final = "Unreachable"
"""Status reason of a Retry: the request was not sent."""
ANSWER_LOST: Final = "AnswerLost"
"""Status reason of a Retry: the request was sent; whether it was carried out is not known."""
UNTRUSTED: Final = "UntrustedCertificate"
UNREADABLE: Final = "UnreadableAnswer"

LONGEST_TEXT: Final = 1000

T = TypeVar("T")


def decoded(body: bytes | msgspec.Raw, type_: type[T], what: str) -> T:
    try:
        return codec.decode(body, type_)
    except msgspec.MsgspecError as problem:
        message = f"{what}: the server's answer cannot be understood: {problem}"
        raise errors.ApiError(Status(reason=UNREADABLE, message=message)) from problem


def error(request: Request, code: int, retry_after: str, body: bytes) -> errors.ApiError:
    problem = errors.from_status(_status(request, code, body))
    if isinstance(problem, errors.Retry) and retry_after.isdecimal():
        problem.after = max(problem.after, float(retry_after))
    return problem


def _status(request: Request, code: int, body: bytes) -> Status:
    """Most refusals are a Status; proxies on the way and some paths of the server answer in other forms."""
    try:
        status = codec.decode(body, Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        status = Status(kind="")
    if status.kind == "Status":
        return msgspec.structs.replace(status, code=code)
    text = body[:LONGEST_TEXT].decode(errors="replace").strip() or "without a word"
    return Status(code=code, message=f"{request.method} {request.path} was answered with HTTP {code}: {text}")


def unreachable(server: str, problem: BaseException) -> errors.Retry:
    message = f"cannot reach the API server {server}: {_words(problem)}"
    return errors.Retry(Status(reason=UNREACHABLE, message=message))


def untrusted(server: str, problem: BaseException) -> errors.ApiError:
    message = (
        f"the certificate of the API server {server} is not trusted: {_words(problem)}\n"
        "Check certificate-authority and tls-server-name of the cluster in the kubeconfig."
    )
    return errors.ApiError(Status(reason=UNTRUSTED, message=message))


def lost(request: Request, problem: BaseException) -> errors.Retry:
    message = f"{request.method} {request.path} was sent, but its answer did not arrive: {_words(problem)}"
    return errors.Retry(Status(reason=ANSWER_LOST, message=message))


def may_repeat(request: Request, problem: errors.Retry) -> bool:
    """Only what was certainly not carried out, or has no effect."""
    status = problem.status
    if any(cause.reason == "DisruptionBudget" for cause in status.details.causes):
        return False  # an eviction that must wait for other pods: nothing that passes in seconds
    if request.method == "GET" or status.reason == UNREACHABLE or status.code == 429:
        return True
    # A server that says when to come back did nothing, except where its own storage answered too late.
    return problem.after > 0 and status.reason not in ("Timeout", "ServerTimeout")


def _words(problem: BaseException) -> str:
    """ "Connection refused" rather than what libraries wrap around it."""
    cause = getattr(problem, "os_error", problem)
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return str(cause) or ("no answer in time" if isinstance(problem, TimeoutError) else type(problem).__name__)
