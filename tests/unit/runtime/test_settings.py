from __future__ import annotations

import msgspec
import pytest

from octarbiter.api.errors import Refused
from octarbiter.runtime import settings


def refused(flags: dict[str, object] | None = None, env: dict[str, str] | None = None) -> str:
    with pytest.raises(Refused) as caught:
        settings.parse(flags or {}, env or {})
    return str(caught.value)


def test_nothing_given_means_the_defaults() -> None:
    assert settings.parse({}, {}) == settings.Settings()


def test_the_defaults_contradict_each_other_nowhere_and_listen_on_loopback() -> None:
    chosen = settings.parse(msgspec.structs.asdict(settings.Settings()), {})
    assert settings.host_and_port(chosen.health_address)[0] == "127.0.0.1"


def test_a_flag_beats_the_environment_which_beats_the_default() -> None:
    chosen = settings.parse({"workers": "3", "namespace": None}, {"OCTO_WORKERS": "5", "OCTO_NAMESPACE": "team"})
    assert (chosen.workers, chosen.namespace, chosen.write_concurrency) == (3, "team", 32)


def test_every_setting_can_be_given_as_flag_and_in_the_environment_and_says_what_it_does() -> None:
    words = {"log_format": "json", "log_level": "debug", "leader_elect": "no", "health_address": "[::1]:9000"}
    numbers = {"lease_duration_s": "40", "renew_deadline_s": "30", "retry_period_s": "5"}
    for option in settings.options():
        text = {**words, **numbers}.get(option.name, "17" if option.default not in ("", None) else "team")
        if isinstance(option.default, str) and option.name not in words:
            text = "other-name"
        context = {"OCTO_" + name.upper(): value for name, value in numbers.items()}
        by_flag = settings.parse({option.name: text}, context)
        by_env = settings.parse({}, {**context, option.env: text})
        assert by_flag == by_env
        assert getattr(by_flag, option.name) != option.default, option.name
        assert len(option.doc) > 20
        assert option.flag == "--" + option.name.replace("_", "-")
        assert option.env == "OCTO_" + option.name.upper()


def test_all_mistakes_are_told_at_once_with_the_place_where_they_were_made() -> None:
    text = refused({"workers": "many", "write_concurrency": "0"}, {"OCTO_LOG_LEVEL": "loud", "OCTO_WORKERS": "x"})
    assert "--workers" in text
    assert "'many'" in text
    assert "--write-concurrency" in text
    assert "OCTO_LOG_LEVEL" in text
    assert "OCTO_WORKERS" not in text, "the flag was taken, so the environment is not at fault"


@pytest.mark.parametrize("text", ["true", "1", "YES", "on"])
def test_yes_is_understood(text: str) -> None:
    assert settings.parse({}, {"OCTO_LEADER_ELECT": text}).leader_elect is True


@pytest.mark.parametrize("text", ["false", "0", "No", "off"])
def test_no_is_understood(text: str) -> None:
    assert settings.parse({}, {"OCTO_LEADER_ELECT": text}).leader_elect is False


def test_maybe_is_not() -> None:
    assert "OCTO_LEADER_ELECT: must be true or false (is 'maybe')" in refused(env={"OCTO_LEADER_ELECT": "maybe"})


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0"])
def test_durations_are_positive_and_finite(text: str) -> None:
    assert "--lease-duration-s" in refused({"lease_duration_s": text})


def test_a_leader_must_have_stopped_before_another_may_start() -> None:
    text = refused({"lease_duration_s": "5", "retry_period_s": "6"})
    assert "--renew-deadline-s: must be less than --lease-duration-s (5), is 7" in text
    assert "--retry-period-s: must be at most half of --renew-deadline-s (7), is 6" in text


def test_names_are_names() -> None:
    text = refused({"namespace": "../x", "lease_name": "", "lease_namespace": "UP"})
    assert "--namespace" in text
    assert "--lease-name:" in text
    assert "--lease-namespace" in text


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:9", ("::1", 9)),
        ("localhost:0", ("localhost", 0)),
        (":8080", ("", 8080)),
    ],
)
def test_an_address_is_host_and_port(address: str, expected: tuple[str, int]) -> None:
    assert settings.host_and_port(address) == expected


@pytest.mark.parametrize("address", ["8080", "localhost", "localhost:", "localhost:http", "localhost:70000", "::1:80"])
def test_what_is_no_address_is_refused(address: str) -> None:
    assert "--health-address" in refused({"health_address": address})


def test_an_empty_address_switches_the_endpoint_off() -> None:
    assert settings.parse({"health_address": ""}, {}).health_address == ""


def test_choices_are_known_to_the_command_line() -> None:
    choices = {option.name: option.choices for option in settings.options() if option.choices}
    assert choices == {"log_format": ("auto", "json", "text"), "log_level": ("debug", "info", "warning", "error")}
