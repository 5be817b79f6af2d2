"""How does the API server ask, and how is it answered? AdmissionReview, v1."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from octarbiter.api import codec
from octarbiter.api.errors import FieldProblem
from octarbiter.api.meta import Json, Noun
from octarbiter.core.quota import admission

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
LARGEST: Final = 8 * 2**20
"""Bytes of a review: an object of the largest size that servers take, twice, as it was and as it will be."""
_ABSENT: Final = msgspec.Raw(b"null")


class Unreadable(ValueError):
    """It is no review, or what it holds is no object of the kind it should be."""


class UserInfo(Noun, frozen=True):
    username: str = ""
    groups: list[str] = []

    @property
    def asker(self) -> admission.Asker:
        return admission.Asker(name=self.username, groups=tuple(self.groups))


class Request(Noun, frozen=True):
    uid: str
    operation: str
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    object: msgspec.Raw = _ABSENT
    old_object: msgspec.Raw = _ABSENT

    def new(self, type_: type[Any]) -> Any:
        return _decoded(self.object, type_)

    def old(self, type_: type[Any]) -> Any:
        return _decoded(self.old_object, type_)


class Review(Noun, frozen=True):
    api_version: str
    kind: str
    request: Request


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    refusal: str = ""
    """Empty: allowed."""
    problems: tuple[FieldProblem, ...] = ()
    """Of an object that is not valid."""
    patch: tuple[Json, ...] = ()


ALLOWED: Final = Answer()


def invalid(kind: str, name: str, problems: Sequence[FieldProblem]) -> Answer:
    """All problems at once; without any, it is allowed."""
    if not problems:
        return ALLOWED
    listed = "; ".join(str(problem) for problem in problems)
    return Answer(refusal=f"{kind} {name or '(to be named)'} is invalid: {listed}", problems=tuple(problems))


def read(body: bytes) -> Request:
    """Raises Unreadable."""
    review = _decoded(msgspec.Raw(body), Review)
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise Unreadable(f"must be {KIND} of {API_VERSION}, is {review.kind[:60]} of {review.api_version[:60]}")
    request: Request = review.request
    return request


def written(uid: str, answer: Answer) -> bytes:
    response: Json = {"uid": uid, "allowed": not answer.refusal}
    if answer.refusal:
        response["status"] = _status(answer)
    elif answer.patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(codec.encode(answer.patch)).decode()}
    return codec.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _status(answer: Answer) -> Json:
    if not answer.problems:
        return {"status": "Failure", "code": 403, "reason": "Forbidden", "message": answer.refusal}
    causes = [
        {"reason": "FieldValueInvalid", "field": problem.path, "message": problem.message}
        for problem in answer.problems
    ]
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": answer.refusal,
        "details": {"causes": causes},
    }


def _decoded(data: msgspec.Raw, type_: type[Any]) -> Any:
    try:
        return codec.decode(data, type_)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise Unreadable(str(problem)) from problem
