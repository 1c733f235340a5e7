"""A rig builder's project in a folder of its own: written, run by pytest in another process, and read afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from textwrap import dedent

RELAY = {
    "components": [
        {
            "name": "pi",
            "api": "rdk:component:board",
            "model": "rdk:builtin:linux",
            "attributes": {"board": "raspberry-pi-4"},
        },
        {
            "name": "heater",
            "api": "rdk:component:switch",
            "model": "rdk:builtin:relay",
            "attributes": {"board": "pi", "pin": "GPIO17"},
        },
    ]
}
LINE = "pinctrl-bcm2711 line 17"
HEAD = """
import asyncio, os, signal, time
import pytest, trio
from runtime.engine.components.controls.switch import Switch
pytestmark = pytest.mark.machine("machine.json")
"""


class Project:
    """`run` starts pytest on what was written, and waits for its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
        self.write("machine.json", json.dumps(RELAY))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(dedent(text))

    def test(self, text: str) -> None:
        """The one test module."""
        self.write("test_it.py", HEAD + dedent(text))

    def command(self, *options: str) -> list[str]:
        plain = ["-p", "no:cacheprovider", "-p", "no:anyio", "-p", "no:randomly", "--color=no", "--junitxml=report.xml"]
        return [sys.executable, "-m", "pytest", *plain, *options]

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options), cwd=self.folder, capture_output=True, text=True, timeout=60, env=environment()
        )

    def journal(self) -> list[str]:
        """What happened to outputs, in order, between the lines that begin and end each test."""
        return (self.folder / "artifacts/rig/journal.txt").read_text().splitlines()

    def artefacts(self, test: str) -> Path:
        return self.folder / "artifacts/rig" / f"test_it.py-{test}"

    def properties(self, test: str) -> dict[str, str]:
        root = ElementTree.parse(self.folder / "report.xml")
        return {
            item.get("name", ""): item.get("value", "")
            for case in root.iter("testcase")
            if case.get("name") == test
            for item in case.iter("property")
        }


def environment() -> dict[str, str]:
    """Without what this run of pytest has set for itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
