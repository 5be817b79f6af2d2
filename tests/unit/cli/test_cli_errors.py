"""Errors are for people, on stderr, and each has its exit code."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from octarbiter.api import errors
from octarbiter.api.meta import Status, StatusCause, StatusDetails
from octarbiter.cli import access, exits

Octo = Callable[..., Result]


def _status(code: int, reason: str = "", **details: str) -> errors.ApiError:
    return errors.from_status(Status(code=code, reason=reason, message="no", details=StatusDetails(**details)))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Refused([errors.FieldProblem("spec", "is required")]), exits.Exit.INVALID),
        (_status(422), exits.Exit.INVALID),
        (_status(400), exits.Exit.INVALID),
        (_status(404, name="x"), exits.Exit.NOT_FOUND),
        (_status(404), exits.Exit.REFUSED),
        (_status(403), exits.Exit.REFUSED),
        (_status(401), exits.Exit.REFUSED),
        (_status(409, "AlreadyExists"), exits.Exit.REFUSED),
        (_status(409), exits.Exit.REFUSED),
        (_status(503), exits.Exit.REFUSED),
        (ZeroDivisionError("oh"), exits.Exit.DEFECT),
    ],
)
def test_each_error_has_its_exit_code(error: Exception, code: exits.Exit) -> None:
    assert exits.failure_of(error).exit_code == code


def test_each_cause_the_server_names_has_its_own_line() -> None:
    causes = [StatusCause(field="spec.a", message="too big"), StatusCause(field="spec.b", message="too small")]
    status = Status(code=422, message="all in one line", details=StatusDetails(name="x", kind="TaskSet", causes=causes))

    said = exits.failure_of(errors.from_status(status)).message

    assert said == "TaskSet x is invalid:\n  spec.a: too big\n  spec.b: too small"


def test_a_cluster_without_the_crd_is_told_how_to_get_it() -> None:
    assert "octo install --apply" in exits.failure_of(_status(404)).message


def _break(problem: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(deed: object) -> None:
        raise problem

    monkeypatch.setattr(access, "run", broken)


def test_ctrl_c_ends_with_130_and_without_a_word(octo: Octo, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(KeyboardInterrupt(), monkeypatch)
    said = octo("get")

    assert (said.exit_code, said.output) == (exits.Exit.INTERRUPTED, "")


def test_a_defect_shows_no_traceback_unless_asked_for(octo: Octo, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(ZeroDivisionError("oh"), monkeypatch)
    quiet, loud, also_loud = octo("get"), octo("get", "--debug"), octo("get", env={"OCTO_DEBUG": "1"})

    assert [said.exit_code for said in (quiet, loud, also_loud)] == [exits.Exit.DEFECT] * 3
    assert "Traceback" not in quiet.stderr
    assert "--debug" in quiet.stderr
    assert "Traceback" in loud.stderr
    assert "Traceback" in also_loud.stderr


def test_an_expected_error_shows_where_it_comes_from_only_when_asked(
    octo: Octo, monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(exits.Failure(exits.Exit.TIMEOUT, "gave up"), monkeypatch)
    quiet, loud = octo("get"), octo("--debug", "get")

    assert quiet.stderr == "Error: gave up\n"
    assert "Traceback" in loud.stderr
    assert (quiet.exit_code, loud.exit_code) == (exits.Exit.TIMEOUT, exits.Exit.TIMEOUT)


def test_without_a_kubeconfig_it_says_how_to_name_one(octo: Octo) -> None:
    said = octo("get")

    assert "no kubeconfig found" in said.stderr
    assert "--kubeconfig" in said.stderr
    assert said.exit_code == exits.Exit.INVALID


def test_an_api_server_that_is_away_is_named(octo: Octo, away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "RETRY_FOR_S", 0.0)
    said = octo("get", "--kubeconfig", str(away))

    assert "cannot reach the API server https://127.0.0.1:1" in said.stderr
    assert "Traceback" not in said.stderr
    assert said.exit_code == exits.Exit.REFUSED


def test_where_to_may_stand_before_the_command_and_after_it(octo: Octo, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str | None, ...]] = []

    def note(deed: object) -> None:
        seen.append(tuple(access.chosen(name) for name in ("context", "kubeconfig", "namespace")))

    monkeypatch.setattr(access, "run", note)
    octo("--context", "c", "--kubeconfig", "k", "-n", "n", "get")
    octo("get", "--context", "c", "--kubeconfig", "k", "-n", "n")
    octo("--namespace", "before", "--context", "c", "--kubeconfig", "k", "get", "--namespace", "n")

    assert seen == [("c", "k", "n")] * 3


def test_one_run_does_not_remember_the_options_of_another(octo: Octo, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(access, "run", lambda deed: seen.append(access.chosen("namespace")))
    octo("-n", "n", "get")
    octo("get")

    assert seen == ["n", None]


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "-n", "../kube-system"),
        ("get", "UPPER"),
        ("describe", ".."),
        ("get", "a", "-A"),
        ("wait", "a", "--for", "happiness"),
        ("wait", "a", "--timeout", "soon"),
        ("wait", "a", "--timeout", "99999d"),
        ("delete",),
        ("delete", "a", "-f", "b"),
        ("logs", "a", "b", "c"),
        ("logs", "a", "-f", "--previous"),
        ("submit",),
        ("submit", "-f", "x", "--wait", "--dry-run=client"),
        ("submit", "-f", "x", "--timeout", "3s"),
        ("install", "--replicas", "-1"),
        ("testbed", "up", "--resource", "gpu"),
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_done(
    octo: Octo, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(AssertionError("something was done"), monkeypatch)

    assert octo(*arguments).exit_code == exits.Exit.INVALID
