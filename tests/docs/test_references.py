"""Every flag, setting, metric, annotation and limit is told, by its own name and with its own number."""

from collections.abc import Iterator

import click
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from documents import ROOT
from octarbiter.api import arbitrator, taskset
from octarbiter.cli import exits, main
from octarbiter.core.arbitration import policies
from octarbiter.runtime import manifest, settings, telemetry
from octarbiter.services.arbitrator.figures import Figures
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.testing.kubernetes import fakepods

COMMANDS = (ROOT / "docs" / "reference" / "cli.md").read_text()
OPERATING = (ROOT / "docs" / "guides" / "operating.md").read_text()
ARBITRATION = (ROOT / "docs" / "guides" / "arbitration.md").read_text()
SHARES = (ROOT / "docs" / "guides" / "drf.md").read_text()
TESTING = (ROOT / "docs" / "guides" / "testing.md").read_text()


def commands(group: click.Group, path: str = "octo") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


ALL = dict(commands(main.cli))


@pytest.mark.parametrize("name", ALL)
def test_every_flag_of_a_command_stands_in_its_chapter(name: str) -> None:
    chapter = COMMANDS.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    options = [option for option in ALL[name].params if isinstance(option, click.Option)]

    assert chapter
    for flag in (flag for option in options for flag in (*option.opts, *option.secondary_opts)):
        assert any(flag in line.partition(" | ")[0] for line in chapter.splitlines()), f"{name} {flag}"


def test_every_exit_code_is_told() -> None:
    for code, meaning in exits.MEANING.items():
        assert f"| {int(code)} | {meaning} |" in COMMANDS


@pytest.mark.parametrize("option", settings.options(), ids=lambda option: option.name)
def test_every_setting_is_told(option: settings.Option) -> None:
    assert f"| `{option.flag}` | `{option.env}` |" in OPERATING
    assert option.doc in OPERATING


@pytest.mark.parametrize("option", settings.options(ArbitratorSettings), ids=lambda option: option.name)
def test_every_setting_of_the_arbitrator_is_told(option: settings.Option) -> None:
    here = OPERATING if option in settings.options() else ARBITRATION

    assert (
        f"| `{option.flag}` | `{option.env}` | {f'`{option.default}`' if option.default != '' else 'empty'} |" in here
    )
    assert option.doc in here


def test_every_metric_is_told() -> None:
    metrics = [metric for metric in vars(telemetry.Metrics()).values() if isinstance(metric, MetricWrapperBase)]

    assert metrics
    for metric in metrics:
        (family,) = metric.describe()
        assert f"| `{family.name}" in OPERATING


def test_every_metric_of_queues_is_told_with_its_meaning() -> None:
    registry = CollectorRegistry()
    Figures(registry)
    families = list(registry.collect())

    assert {"weight", "demand", "deserved", "allocated", "used", "preempting", "dominant_share"} <= {
        family.name.removeprefix("octarbiter_queue_") for family in families
    }
    for family in families:
        assert f"| `{family.name}` | {family.type} |" in ARBITRATION
        assert family.documentation in ARBITRATION


@pytest.mark.parametrize("mode", arbitrator.Mode)
def test_every_mode_is_told(mode: arbitrator.Mode) -> None:
    assert f"\n| `{mode}` |" in ARBITRATION


@pytest.mark.parametrize("name", policies.names())
def test_every_policy_is_told(name: str) -> None:
    assert f"\n| `{name}` |" in SHARES


def test_every_annotation_of_fake_pods_is_told() -> None:
    for name in (fakepods.DURATION, fakepods.EXIT_CODE, fakepods.MESSAGE, fakepods.STUCK, fakepods.SILENT):
        assert f"| `{name}" in TESTING


def test_the_limits_are_those_of_the_code() -> None:
    told = " ".join(OPERATING.partition("\n## Limits\n")[2].partition("\n## ")[0].split())

    assert f"at most {taskset.MAX_REPLICAS} replicas" in told
    assert f"Up to {taskset.FULL_STATUS_REPLICAS} replicas" in told
    assert f"at most {taskset.NOTABLE_REPLICAS} a role" in told
    assert f"at most {taskset.MAX_NAME} characters" in told
    assert f"at most {manifest.MAX_BYTES} (1 MiB)" in told
