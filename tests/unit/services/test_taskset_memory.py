"""What the controller holds on to between two looks, and what it gives up."""

import msgspec
import pytest

from octarbiter.api import errors
from octarbiter.api import taskset as api
from octarbiter.api.meta import ObjectMeta, Status
from octarbiter.services.controllers.taskset_memory import Memory, kind_of_refusal


def _taskset(version: str, **status: object) -> api.TaskSet:
    return api.TaskSet(
        metadata=ObjectMeta(name="job", namespace="ns", uid="u", resource_version=version),
        spec=api.TaskSetSpec(roles=[]),
        status=msgspec.convert(status, api.TaskSetStatus),
    )


def test_a_new_version_with_the_status_we_recorded_keeps_what_was_decided_since() -> None:
    memory = Memory(_taskset("1"))
    memory.status = decided = api.TaskSetStatus(attempt=1)
    memory.look_at(_taskset("2"))

    assert memory.status is decided
    assert memory.version == "2"


def test_a_status_that_somebody_else_wrote_is_gone_on_from() -> None:
    memory = Memory(_taskset("1"))
    memory.status = api.TaskSetStatus(attempt=1)
    memory.look_at(_taskset("2", attempt=7))

    assert memory.status == memory.recorded == api.TaskSetStatus(attempt=7)
    assert memory.version == "2"


def test_our_own_write_is_known_by_its_version() -> None:
    memory = Memory(_taskset("1"))
    memory.recorded_as(_taskset("2", attempt=1))

    assert memory.version == "2"


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (403, 'pods "x" is forbidden: exceeded quota: two, requested: pods=1', "quota"),
        (403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest"', "denied"),
        (422, "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "denied"),
        (400, 'admission webhook "w" denied the request: no', "denied"),
        (422, 'Pod "x" is invalid: spec.containers[0].image: Required value', "invalid"),
        (400, 'Pod in version "v1" cannot be handled as a Pod', "invalid"),
        (500, 'Internal error occurred: failed calling webhook "w"', "busy"),
        (429, "too many requests", "busy"),
    ],
)
def test_a_refusal_is_final_only_where_the_pod_itself_is_at_fault(code: int, message: str, kind: str) -> None:
    assert kind_of_refusal(errors.from_status(Status(code=code, message=message))) == kind
