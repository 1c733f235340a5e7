"""The configuration and the commands of docs/howto/drive-by-gps.md work as they stand there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.e2e.harness import Server

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "drive-by-gps.md"
ANSWERS = {
    "get_position": '"latitude": 40.7',
    "plan_to_location": "length_m",
    "go_to_location": "SUCCEEDED",
    "navigate_route": '"state"',
    "suspend": "lunch",
    "resume": "ACTIVE",
    "cancel": "CANCELED",
}


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    text = PAGE.read_text()
    (document,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    commands = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    with Server(json.loads(document), tmp_path) as server:
        environment = {**os.environ, "MACHINE_ADDRESS": server.wait_running().address}
        for command in commands:
            words = shlex.split(command)
            done = subprocess.run(
                [sys.executable, "-m", "command.cli", *words[1:]],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            assert ANSWERS.get(words[3], "") in done.stdout, f"{command}\n{done.stdout}"
