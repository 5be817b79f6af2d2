"""`octo` explains itself: every command and every flag has a word of help, and starting it costs little."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import click
import pytest
from click.testing import Result

from octarbiter.cli import exits, main

Octo = Callable[..., Result]


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, f"{name} is listed but cannot be had"
            yield from _commands(child, (*path, name))


ALL = {" ".join(path): command for path, command in _commands(main.cli)}


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_every_flag_has_help(name: str) -> None:
    command = ALL[name]
    flags = [option for option in command.params if isinstance(option, click.Option)]

    assert command.help
    assert [option.opts for option in flags if not option.help] == []


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    first_line = (ALL[name].help or "").partition("\n\n")[0].replace("\n", " ")

    assert main.COMMANDS[name] == first_line


def test_help_prints_every_command_and_every_exit_code(octo: Octo) -> None:
    said = octo("--help").output

    assert all(f"  {name} " in said for name in main.COMMANDS)
    assert all(f"{int(code)} " in said and meaning in said for code, meaning in exits.MEANING.items())
    assert set(exits.MEANING) == set(exits.Exit)


def test_help_imports_none_of_the_heavy_libraries() -> None:
    question = (
        "import sys; from click.testing import CliRunner; from octarbiter.cli import main;"
        "CliRunner().invoke(main.cli, ['--help']);"
        "print([name for name in ('aiohttp', 'rich', 'msgspec', 'yaml', 'kubernetes',"
        " 'prometheus_client', 'cryptography') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True).stdout

    assert answer == "[]\n"


def test_the_version_is_printed(octo: Octo) -> None:
    said = octo("--version")

    assert said.output.startswith("octo 0.")
    assert said.exit_code == exits.Exit.OK


def test_a_mistyped_command_gets_a_suggestion_and_exit_code_2(octo: Octo) -> None:
    said = octo("sumbit")

    assert "there is no command 'sumbit'; did you mean submit?" in said.stderr
    assert said.exit_code == exits.Exit.INVALID


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_can_be_had_for_each_shell(octo: Octo, shell: str) -> None:
    said = octo("completion", shell)

    assert f"_OCTO_COMPLETE={shell}_complete" in said.stdout
    assert said.exit_code == exits.Exit.OK
