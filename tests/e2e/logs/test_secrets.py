"""A module that prints its key and fails with it: neither log, status nor pages of a real machine-server show it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
import trio

from tests.e2e.logs.support import logs
from tests.e2e.modules.support import ROBOT, SENSOR, component, machine

KEY, OTHER = "hunter2-is-the-key", "hunter3-is-another"
PROGRAM = '#!/bin/sh\necho "my key is $API_KEY"\necho "cannot log in with $API_KEY" >&2\nexit 3\n'


def page(address: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}{path}") as reply:
        return str(reply.read().decode())


@pytest.mark.slow
async def test_a_module_that_prints_its_key(tmp_path: Path) -> None:
    program = tmp_path / "leaky"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    document = {
        "debug": True,
        "modules": [{"name": "leaky", "executable_path": str(program), "env": {"API_KEY": KEY}}],
        "components": [component("t", SENSOR, "acme:demo:leaky", password=OTHER)],
    }
    async with machine(tmp_path, document, "-disable-mdns", running=False) as (running, client):
        with trio.fail_after(30):
            while "cannot log in" not in running.log() or "my key" not in running.log():  # noqa: ASYNC110 - a file
                await trio.sleep(0.05)
        paths = ("/status.json", "/logs.json", f"/resources/{SENSOR}/t.json")
        shown = [await trio.to_thread.run_sync(page, running.address, path) for path in paths]
        shown.append(json.dumps(await client.call(ROBOT, "", "get_machine_status"), default=str))
        shown.append((await logs(running, "-n", "1000")).stdout.decode())
        await running.stop()
        shown.append(running.log())
    assert "my key is ***" in running.log()
    assert "cannot log in with ***" in running.log()
    assert not any(secret in text for text in shown for secret in (KEY, OTHER))
