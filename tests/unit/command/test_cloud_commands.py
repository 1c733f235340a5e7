"""Commands of `machine cloud`: their client, and the organization in which they act."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from cloud.server.memory import open_cloud
from command.cloud.group import find_dataset, with_client
from command.cloud.organization import organization_of
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError

NOWHERE = {"MACHINE_CLOUD": "http://127.0.0.1:1", "MACHINE_CLOUD_KEY_ID": "i", "MACHINE_CLOUD_KEY": "k"}


@click.command()
@click.argument("word")
@click.option("--json", "as_json", is_flag=True)
@with_client
async def fail(client: ApiClient, word: str, as_json: bool) -> None:
    """Fail with a word."""
    assert isinstance(client, ApiClient)
    raise MachineError(word, kind=ErrorKind.NOT_FOUND)


def test_a_command_gets_a_client_and_its_arguments() -> None:
    done = CliRunner().invoke(fail, ["gone"], env=NOWHERE)
    assert (done.exit_code, done.output) == (1, "Error: gone\n")
    assert fail.help == "Fail with a word."


def test_a_failure_with_json_is_json_too() -> None:
    done = CliRunner().invoke(fail, ["gone", "--json"], env=NOWHERE)
    assert json.loads(done.stdout.splitlines()[0]) == {"error": "gone", "kind": "not_found"}
    assert done.exit_code == 1


def test_a_command_needs_a_login() -> None:
    done = CliRunner().invoke(fail, ["gone"], env={**NOWHERE, "MACHINE_CLOUD_KEY": ""})
    assert (done.exit_code, "MACHINE_CLOUD_KEY is not set" in done.output) == (2, True)


async def test_the_only_organization_need_not_be_named() -> None:
    async with open_cloud() as cloud:
        client = cloud.client()
        (organization,) = await client.call("viam.app.v1.AppService", "", "list_organizations")
        for word in ("", organization["id"], organization["name"]):
            assert await organization_of(client, word) == organization
        with pytest.raises(click.UsageError, match=rf"with --at: Test \({organization['id']}\)"):
            await organization_of(client, "another", "--at")


class Datasets:
    """A client that lists datasets, by their organization."""

    def __init__(self, **names: list[str]) -> None:
        self.names = names

    async def call(self, service: str, resource: str, method: str, organization_id: str = "") -> list[dict[str, str]]:
        if method == "list_organizations":
            return [{"id": owner} for owner in self.names]
        return [{"id": f"{organization_id}-{name}", "name": name} for name in self.names[organization_id]]


async def test_a_dataset_is_found_by_name_or_id() -> None:
    client: Any = Datasets(a=["parts"], b=["others", "parts"])
    assert await find_dataset(client, "others") == "b-others"
    assert await find_dataset(client, "b-parts") == "b-parts"
    assert await find_dataset(client, "parts", ["a"]) == "a-parts"
    with pytest.raises(click.UsageError, match="called 'parts': give one of the ids a-parts, b-parts"):
        await find_dataset(client, "parts")
    with pytest.raises(click.ClickException, match=r"no dataset 'part': use one of 'others', 'parts'$"):
        await find_dataset(client, "part", ["b"])
    empty: Any = Datasets(a=[])
    with pytest.raises(click.ClickException, match="no dataset 'parts': create one with `machine cloud datasets"):
        await find_dataset(empty, "parts")
