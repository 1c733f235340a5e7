"""Inviting by mail and by link, a second organization, sharing and secrets of locations: real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpcore
import pytest
import trio
from click.testing import CliRunner

from cloud.values.limits import CALL
from command.cli import main
from rpc.api.cloud_v1 import INVITATIONS
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.triggers.test_smtp import server as mail_server

APP: Final = "viam.app.v1.AppService"
ADA: Final = "ada@example.com"
LIMIT: Final = 60.0


async def accepted(link: str) -> tuple[str, str]:
    """View an invitation and accept it, as a browser does; return the id and key on the page."""
    async with httpcore.AsyncConnectionPool() as pool:
        looked = await pool.request("GET", link)
    assert looked.status == 200
    assert b"Accept" in looked.content
    origin = "/".join(link.split("/")[:3])
    async with httpcore.AsyncConnectionPool() as pool:
        posted = await pool.request("POST", link, headers={"origin": origin, "accept": "text/html"})
    assert posted.status == 200, posted.content
    result = re.findall(r'<pre[^>]* aria-label="Key(?: id)?">([^<]+)</pre>', posted.content.decode())
    return result[0], result[1]


async def test_an_invitation_by_mail_leads_to_a_key(tmp_path: Path) -> None:
    async with mail_server("starttls", tmp_path) as post:
        options = (
            *("--smtp", f"localhost:{post.port}", "--smtp-from", "Cloud <cloud@example.com>"),
            *("--smtp-ca", str(tmp_path / "cert.pem")),
        )
        async with cloud(tmp_path / "cloud", *options) as running, running.client() as client:
            organization = running.facts["organization"]
            values = {"organization_id": organization, "email": ADA}
            await client.call(APP, "", "create_organization_invite", **values)
            envelope, first = await post.message(LIMIT)
            await client.call(APP, "", "resend_organization_invite", **values)
            _, second = await post.message(LIMIT)
            assert (envelope["to"], envelope["tls"]) == ([ADA], True)
            assert first["Subject"] == "Invitation to Home"
            links = [re.findall(r"http\S+/invites/\S+", item.get_content()) for item in (first, second)]
            assert links[0] != links[1]
            async with httpcore.AsyncConnectionPool() as pool:
                assert (await pool.request("GET", links[0][0])).status == 404
            key = await accepted(links[1][0])
            async with running.client(key) as her:
                answer = await her.call(APP, "", "list_organization_members", organization_id=organization)
            assert [member["emails"] for member in answer["members"]] == [[ADA]]
    log = (tmp_path / "cloud" / "cloud.log").read_text()
    assert "/invites/" not in log


@pytest.fixture
def running(tmp_path: Path) -> Iterator[CloudProcess]:
    """Run a cloud for tests outside Trio, so that commands can run in the test's own process, which is fast."""
    read, write = os.pipe()
    command = [sys.executable, "-m", "cloud.server.cli", "--data", str(tmp_path / "data"), "--listen", "localhost:0"]
    environ = {**os.environ, "MACHINE_READY_FD": str(write)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, pass_fds=[write], text=True) as process:
        os.close(write)
        try:
            with os.fdopen(read) as ready:
                address = ready.read().split()[0]  # ends when all addresses are written, or the process ends
            assert process.stdout is not None
            said = ""
            while "\n  address" not in said and (line := process.stdout.readline()):  # log entries may come before
                said += line
            yield CloudProcess(process, address, said)  # type: ignore[arg-type]
        finally:
            process.terminate()


async def refusal_of_a_large_call(running: CloudProcess) -> ErrorKind:
    """Return the kind of error for a call of our own service with a message above the limit."""
    async with running.client(running.key) as client:
        email = "a" * (CALL.value + 1)
        with pytest.raises(MachineError) as caught:
            await client.call(INVITATIONS, "", "create_invite_link", organization_id="o", email=email)
    return caught.value.kind


def test_an_invitation_from_the_terminal(
    running: CloudProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("", running.address), ("_KEY_ID", running.key[0]), ("_KEY", running.key[1])):
        monkeypatch.setenv(f"MACHINE_CLOUD{name}", value)

    def machine(*words: str, status: int = 0) -> str:
        done = CliRunner().invoke(main, ["cloud", *words])
        assert done.exit_code == status, done.output
        return done.output

    link = machine("members", "invite", ADA, "--role", "owner").splitlines()[0]
    again = json.loads(machine("members", "resend", ADA, "--json"))
    assert trio.run(refusal_of_a_large_call, running) is ErrorKind.EXHAUSTED
    assert again["email"] == ADA
    assert again["link"] != link
    key = trio.run(accepted, again["link"])
    assert "/invites/" in machine("members", "invite", "bob@example.com", "-q")
    (member, invited) = [json.loads(line) for line in machine("members", "list", "--json").splitlines()]
    assert (member["state"], member["emails"], invited["state"]) == ("member", [ADA], "invite")
    assert machine("members", "list", "-q") == f"{ADA}\nbob@example.com\n"
    assert "organization_operator" in machine("members", "list")
    assert machine("members", "withdraw", "bob@example.com") == "withdrawn\n"
    assert machine("members", "remove", ADA) == "removed\n"
    assert "--kind robot needs --at with an id" in machine("members", "invite", ADA, "--kind", "robot", status=2)

    folder = str(tmp_path / "data")
    command = [sys.executable, "-m", "cloud.server.cli", "--data", folder, "organization", "Guest"]
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    words = dict(line.strip().rsplit("  ", 1) for line in said.splitlines() if line.startswith("  "))
    guest = {name.strip(): value for name, value in words.items()}
    location = running.facts["location"]
    assert "is shared with" in machine("locations", "share", "Home", guest["organization"])
    assert guest["organization"] in machine("locations", "list")

    async def seen() -> list[str]:
        with pytest.raises(MachineError):
            async with running.client(key) as void:
                await void.call(APP, "", "list_organizations")
        async with running.client((guest["key id"], guest["key"])) as client:
            answer = await client.call(APP, "", "list_locations", organization_id=guest["organization"])
        return sorted(item["name"] for item in answer)

    assert trio.run(seen) == ["Guest", "Home"]
    machine("locations", "unshare", "Home", guest["organization"])
    assert trio.run(seen) == ["Guest"]
    assert machine("locations", "list", "-q") == f"{location}\n"

    secret = machine("locations", "secrets", "create", "Home").strip()
    content = json.loads(machine("locations", "secrets", "list", "Home", "--json"))
    assert content["secret"] == secret
    assert content["id"] in machine("locations", "secrets", "list", "Home")
    assert secret not in machine("locations", "secrets", "list", "Home")
    assert machine("locations", "secrets", "delete", "Home", content["id"]) == "deleted\n"
    assert machine("locations", "secrets", "list", "Home", "-q") == ""
    assert "no location has the name or id 'Away'" in machine("locations", "share", "Away", "x", status=1)
