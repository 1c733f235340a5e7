"""`machine cloud`, against a real cloud."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpcore
import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.cloud.process import CloudProcess, cloud

SENSOR = {"name": "a", "api": "rdk:component:sensor", "model": "fake"}


class Terminal:
    """A user with a separate home folder."""

    def __init__(self, running: CloudProcess, home: Path) -> None:
        self.running = running
        self.home = home

    async def __call__(self, *words: str, source: str = "", status: int = 0, **environment: str) -> str:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MACHINE_")}
        done = await trio.run_process(
            [sys.executable, "-m", "command.cli", "cloud", *words],
            stdin=source.encode(),
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            check=False,
            env={**kept, "XDG_CONFIG_HOME": str(self.home), **environment},
        )
        text = done.stdout.decode()
        assert done.returncode == status, text
        return text


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[Terminal]:
    async with cloud(tmp_path / "cloud") as running:
        user = Terminal(running, tmp_path / "home")
        said = await user(
            "login", f"http://{running.address}", "--key-id", running.key[0], MACHINE_CLOUD_KEY=running.key[1]
        )
        assert "logged in to Home" in said
        yield user


async def test_logging_in_and_out(terminal: Terminal) -> None:
    file = terminal.home / "machine" / "cloud.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    wrong = await terminal(
        "login", f"http://{terminal.running.address}", "--key-id", terminal.running.key[0], "--key", "no", status=1
    )
    assert "wrong" in wrong
    assert json.loads(file.read_text())["key"] == terminal.running.key[1]  # the valid key is kept
    assert "logged out" in await terminal("logout")
    assert "not logged in" in await terminal("machines", status=2)
    half = await terminal("machines", status=2, MACHINE_CLOUD="http://localhost:1")
    assert "MACHINE_CLOUD_KEY_ID, MACHINE_CLOUD_KEY is not set" in half


async def test_a_machine_is_created_configured_and_reverted(terminal: Terminal, tmp_path: Path) -> None:
    assert "no machines: create one" in await terminal("machines")
    file = tmp_path / "rover.json"
    assert "machine-server -config" in await terminal("new", "rover", "--output", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert set(json.loads(file.read_text())["cloud"]) == {"id", "secret", "app_address"}
    assert "exists" in await terminal("new", "other", "--output", str(file), status=2)
    assert "awaiting setup" in await terminal("machines")
    listed = json.loads(await terminal("machines", "--json"))
    assert [(item["machine"], item["state"]) for item in listed] == [("rover", "awaiting setup")]

    document = json.dumps({"components": [SENSOR]})
    assert "confirmation needs a terminal" in await terminal("config", "set", "rover", "-", source=document, status=2)
    assert json.loads(await terminal("config", "get", "rover")) == {}
    said = await terminal("config", "set", "rover", "-", "--yes", source=document)
    assert "+ components.a" in said
    assert "saved" in said
    assert json.loads(await terminal("config", "get", "rover")) == {"components": [SENSOR]}
    assert "nothing changed" in await terminal("config", "set", "rover", "-", "--yes", source=document)

    other = tmp_path / "other.json"
    other.write_text(json.dumps({"components": [{**SENSOR, "name": "b"}]}))
    difference = await terminal("config", "diff", "rover", str(other))
    assert "+ components.b" in difference
    assert "- components.a" in difference
    await terminal("config", "set", "rover", str(other), "--yes")
    lines = (await terminal("config", "history", "rover")).splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert [line.split("  ")[0] for line in heads] == ["3", "2", "1"]
    assert [line.split("  by ")[1] for line in heads] == ["owner", "owner", "machine-cloud"]
    assert "     + components.b" in lines[1 : lines.index(heads[1])]
    (newest,) = json.loads(await terminal("config", "history", "rover", "-n", "1", "--json"))
    assert (newest["revision"], newest["author_id"]) == (3, terminal.running.key[0])
    assert "+ components.b" in newest["changes"]

    assert "+ components.a" in await terminal("config", "diff", "rover", "--from", "1", "--to", "2")
    assert "- components.a" in await terminal("config", "diff", "rover", "--from", "2")

    await terminal("config", "revert", "rover", "--yes")
    assert json.loads(await terminal("config", "get", "rover")) == {"components": [SENSOR]}
    await terminal("config", "revert", "rover", "1", "--yes")
    assert json.loads(await terminal("config", "get", "rover")) == {}
    said = await terminal("config", "revert", "rover", "9", "--yes", status=1)
    assert "there is no revision 9: the newest one is 5" in said


async def test_errors_are_reported_with_their_position(terminal: Terminal) -> None:
    await terminal("new", "rover")
    assert "not JSON" in await terminal("config", "set", "rover", "-", "--yes", source="{", status=1)
    for deep in ("[" * 40 + "]" * 40, "[" * 5000):
        said = await terminal("config", "set", "rover", "-", "--yes", source=deep, status=1)
        assert "more than 32 levels of objects and lists" in said
    said = await terminal("config", "set", "rover", "-", "--yes", source='{"components": [{"name": "x y"}]}')
    assert "components.0" in said
    assert "there is no machine 'rovr'" in await terminal("config", "get", "rovr", status=1)
    assert "rover" in await terminal("config", "get", "rovr", status=1)


async def test_edit_opens_an_editor_and_saves_the_result(terminal: Terminal, tmp_path: Path) -> None:
    await terminal("new", "rover")
    nothing = await terminal("config", "edit", "rover", EDITOR="true")
    assert "nothing changed" in nothing
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nprintf '%s' '{json.dumps({'components': [SENSOR]})}' > \"$1\"\n")
    editor.chmod(0o755)
    said = await terminal("config", "edit", "rover", EDITOR=str(editor), status=2)
    assert "+ components.a" in said
    assert "confirmation needs a terminal" in said


async def test_logs_of_a_machine(terminal: Terminal) -> None:
    created = json.loads(await terminal("new", "rover"))["cloud"]
    credentials = ApiKey(created["id"], created["secret"], type="robot-secret")
    entry: dict[str, Any] = {"level": "info", "logger_name": "rdk", "time": None}
    async with Channel(terminal.running.address, credentials=credentials) as channel:
        entries = [{**entry, "message": f"m{number}"} for number in range(30)]
        entries.append(
            {**entry, "message": "it broke", "level": "error", "fields": [{"Key": "why", "Value": {"heat": 25}}]}
        )
        await ApiClient(channel).call("viam.app.v1.RobotService", "", "log", id=created["id"], logs=entries)
    lines = (await terminal("logs", "rover", "-n", "3")).splitlines()
    assert [line.split("  ")[3] for line in lines] == ["m28", "m29", "it broke"]
    assert lines[-1].endswith('{"why":{"heat":25}}')
    (item,) = (await terminal("logs", "rover", "-n", "1", "--json")).splitlines()
    assert '"heat": 25}' in item
    assert json.loads(item)["message"] == "it broke"
    assert (await terminal("logs", "rover", "--errors")).count("\n") == 1
    assert (await terminal("logs", "rover", "--filter", "m2")).count("\n") == 11


async def test_keys(terminal: Terminal) -> None:
    created = await terminal("keys", "create", "guard")
    key_id, key = (line.split()[-1] for line in created.splitlines()[:2])
    listed = await terminal("keys")
    assert "guard" in listed
    assert "organization_operator" in listed
    assert key not in listed
    as_guard = {"MACHINE_CLOUD": terminal.running.address, "MACHINE_CLOUD_KEY_ID": key_id, "MACHINE_CLOUD_KEY": key}
    assert "no machines: create one" in await terminal("machines", **as_guard)
    assert "role of an owner" in await terminal("keys", status=1, **as_guard)
    await terminal("keys", "rotate", key_id)
    assert "wrong" in await terminal("machines", status=1, **as_guard)
    assert "deleted" in await terminal("keys", "delete", key_id)
    assert "guard" not in await terminal("keys")
    assert "--at" in await terminal("keys", "create", "x", "--kind", "robot", status=2)


async def test_fragments(terminal: Terminal) -> None:
    drive = {"components": [{**SENSOR, "name": {"$variable": {"name": "n", "default": "a"}}}]}
    created = (await terminal("fragments", "create", "drive", "-", source=json.dumps(drive))).strip()
    await terminal("new", "rover")
    use = {"fragments": [{"id": created, "version": "stable"}]}
    said = await terminal("config", "set", "rover", "-", "--yes", source=json.dumps(use), status=1)
    assert "fragments.0: there is no fragment" in said
    assert "'stable'" in said
    await terminal("fragments", "tag", "drive", "stable", "1")
    await terminal("config", "set", "rover", "-", "--yes", source=json.dumps(use))
    said = await terminal("fragments", "set", "drive", "-", source='{"components": []}')
    assert "revision 2, used by 1 machine parts" in said
    assert '"$variable"' in await terminal("fragments", "get", "drive", "--version", "stable")
    lines = (await terminal("fragments", "history", "drive")).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["2", "1"]
    assert lines[2].endswith("stable")
    assert [line.split()[2] for line in lines[1:]] == ["owner", "owner"]
    assert json.loads(await terminal("fragments", "ls", "--json"))["robot_part_count"] == 1
    assert "are pinned to the tag" in await terminal("fragments", "untag", "drive", "stable", status=1)
    assert "is used by" in await terminal("fragments", "delete", "drive", status=1)
    await terminal("config", "set", "rover", "-", "--yes", source="{}")
    await terminal("fragments", "untag", "drive", "stable")
    await terminal("fragments", "delete", created)
    assert "no fragment 'drive'" in await terminal("fragments", "get", "drive", status=1)


async def test_the_pages_are_opened_logged_in(terminal: Terminal, tmp_path: Path) -> None:
    """The command makes a link with a ticket, and gives it to the browser of $BROWSER."""
    opened = tmp_path / "opened"
    await terminal("new", "rover")
    (listed,) = json.loads(await terminal("machines", "--json"))
    part = listed["id"]
    browser = {"BROWSER": f"/bin/sh -c 'printf %s \"$0\" >{opened}' %s"}
    for words, path in (((), "/"), (("rover",), f"/machines/{part}")):
        assert "opened in the browser" in await terminal("open", *words, **browser)
        assert await _follow(terminal.running.address, opened.read_text()) == path
    text = await terminal("open", "--print", **browser)
    assert "logs in once, within 120 seconds" in text
    link = text.split()[0]
    assert await _follow(terminal.running.address, link) == "/"
    assert await _follow(terminal.running.address, link) == ""
    again = await terminal("open", BROWSER="", DISPLAY="", WAYLAND_DISPLAY="")
    assert again.startswith(link.partition("#")[0] + "#")
    assert "there is no machine 'nowhere'" in await terminal("open", "nowhere", status=1)


async def _follow(address: str, link: str) -> str:
    """Do what the page of a link does; return where it leads with a session that is valid there, "" if refused."""
    start, _, ticket = link.partition("#")
    assert start.startswith(f"http://{address}/login/link")
    target = parse_qs(urlsplit(link).query).get("next", ["/"])[0]
    form = urlencode({"ticket": ticket, "next": target}).encode()
    origin = [(b"origin", f"http://{address}".encode())]
    async with httpcore.AsyncConnectionPool(network_backend=httpcore.TrioBackend()) as pool:
        reply = await pool.request("POST", start, headers=origin, content=form)
        if reply.status != 303:
            return ""
        answer = {name.lower(): value for name, value in reply.headers}
        cookie = answer[b"set-cookie"].partition(b";")[0]
        shown = await pool.request("GET", f"http://{address}{target}", headers=[(b"cookie", cookie)])
        assert shown.status == 200
        return answer[b"location"].decode()
