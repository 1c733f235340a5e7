"""The command lists of groups, and the errors of commands whose machine or cloud does not answer."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from command.cli import main
from command.connection import Connection, failure, unreachable
from command.groups import Commands
from schema.errors import ErrorKind, MachineError

LONG = "A sentence that is so long that no terminal of eighty columns could show all of it in the one line it has."


def groups(group: click.Group) -> list[click.Group]:
    context = click.Context(group)
    every = [group.get_command(context, name) for name in group.list_commands(context)]
    inner = [command for command in every if isinstance(command, click.Group)]
    return [group, *(element for item in inner for element in groups(item))]


def test_no_group_truncates_the_summaries_of_its_commands() -> None:
    result = groups(main)
    assert len(result) > 12
    for item in result:
        assert isinstance(item, Commands), item.name
        text = item.get_help(click.Context(item, terminal_width=80))
        assert "..." not in text.partition("Commands:")[2], text


def test_a_long_summary_is_wrapped() -> None:
    @click.group(cls=Commands)
    def group() -> None:
        """A group."""

    @group.command(help=LONG)
    def first() -> None: ...

    text = CliRunner().invoke(group, ["--help"], terminal_width=60).output
    assert LONG in " ".join(text.split())


@pytest.mark.parametrize("word", ["ls", "list"])
@pytest.mark.parametrize("noun", ["keys", "members", "locations", "fragments", "data", "modules"])
def test_ls_and_list_are_the_same_command(noun: str, word: str) -> None:
    done = CliRunner().invoke(main, ["cloud", noun, word, "--help"])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(main, ["cloud", noun, "lst"]).exit_code == 2


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("cannot connect to c:1: [SSL: WRONG_VERSION_NUMBER]", "write http:// instead of https://"),
        ("certificate verify failed", "--ca FILE` trusts what `machine-cloud ca` prints"),
        ("[Errno -2] Name or service not known", "the host name in https://c:1 cannot be resolved"),
        ("all attempts to connect failed", "is machine-cloud running there?"),
    ],
)
def test_an_unreachable_cloud_is_explained_with_the_login_command(reason: str, said: str) -> None:
    text = unreachable(Connection("https://c:1", cloud=True), reason)
    assert said in text
    assert "`machine cloud login ADDRESS --key-id ID" in text
    for foreign in ("machine-server", "--address", "--insecure", "--tls"):
        assert foreign not in text


def test_a_machine_at_the_address_of_the_cloud_is_reported() -> None:
    error = MachineError("no method /viam.app.v1.AppService/ListOrganizations", kind=ErrorKind.UNSUPPORTED)
    assert (
        "http://m:1 is not a machine-cloud" in failure(error, Connection("http://m:1", api_key="k", cloud=True)).message
    )
    assert failure(error, Connection("http://m:1", api_key="k")).message == str(error)
    other = MachineError("MQL is not built", kind=ErrorKind.UNSUPPORTED)
    assert failure(other, Connection("http://m:1", api_key="k", cloud=True)).message == "MQL is not built"
