"""Helpers for tests of logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import trio

from tests.e2e.server.process import Server

PROGRAM = [sys.executable, "-c", "from command.cli import main; main()", "logs"]


def environment(address: str, **more: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MACHINE_")}
    return {**clean, "MACHINE_ADDRESS": address, **more}


async def logs(item: Server, *words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    with trio.fail_after(40):
        return await trio.run_process(
            [*PROGRAM, *words],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env=environment(item.address, **more),
        )


async def printed(item: Server, *words: str) -> list[dict[str, Any]]:
    done = await logs(item, "--json", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def say(item: Server, text: str, *, logger: str = "rdk.test", level: str = "info", **fields: Any) -> None:
    """Make the server log a message."""
    async with item.client() as client:
        entry = {"logger_name": logger, "level": level, "message": text, "fields": [fields] if fields else []}
        await client.call("viam.robot.v1.RobotService", "", "log", logs=[entry])
