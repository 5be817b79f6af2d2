"""The exception tree. Classes differ by what the catcher should do.

OctarbiterError
├── Refused        the user's mistake: show every problem, send nothing
└── ApiError       the server said no
    ├── NotFound       it is not there (any more)
    ├── AlreadyExists  look whether it is ours
    ├── Conflict       read again, decide again
    ├── Gone           list again
    ├── Invalid        final: repeating cannot help (400, 422)
    ├── Forbidden      quota, webhook or RBAC: try later, tell the user
    ├── Unauthorized   refresh the credentials
    └── Retry          the server is busy or away: try later (carries `after`)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octarbiter.api.meta import Status


class FieldProblem(msgspec.Struct, frozen=True):
    """One mistake in one place, e.g. `spec.roles[1].replicas: must be between 1 and 10000, is 0`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class OctarbiterError(Exception):
    pass


class Refused(OctarbiterError):
    def __init__(self, problems: Sequence[FieldProblem], what: str = "") -> None:
        self.problems = tuple(problems)
        self.what = what
        head = f"{what} is invalid:\n" if what else ""
        super().__init__(head + "\n".join(f"  {problem}" for problem in self.problems))


class ApiError(OctarbiterError):
    def __init__(self, status: Status) -> None:
        self.status = status
        super().__init__(status.message or status.reason or f"HTTP {status.code}")


class NotFound(ApiError):
    pass


class AlreadyExists(ApiError):
    pass


class Conflict(ApiError):
    pass


class Gone(ApiError):
    pass


class Invalid(ApiError):
    pass


class Forbidden(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Retry(ApiError):
    def __init__(self, status: Status, after: float = 0.0) -> None:
        super().__init__(status)
        self.after = after


def from_status(status: Status) -> ApiError:
    match status.code, status.reason:
        case 404, _:
            return NotFound(status)
        case 409, "AlreadyExists":
            return AlreadyExists(status)
        case 409, _:
            return Conflict(status)
        case 410, _:
            return Gone(status)
        case ((400 | 422), _):
            return Invalid(status)
        case 401, _:
            return Unauthorized(status)
        case 403, _:
            return Forbidden(status)
        case ((408 | 429 | 500 | 502 | 503 | 504), _):
            return Retry(status, after=float(status.details.retry_after_seconds))
        case _:
            return ApiError(status)
