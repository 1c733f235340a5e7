"""The project of a rig's author in a separate folder: written, run by pytest in another process, and then read."""

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
from engine.components.controls.switch import Switch
pytestmark = pytest.mark.machine("machine.json")
"""


class Project:
    """A project; `run` runs pytest on its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
        self.write("machine.json", json.dumps(RELAY))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(dedent(text))

    def test(self, text: str) -> None:
        """Write the only test module."""
        self.write("test_it.py", HEAD + dedent(text))

    def command(self, *options: str) -> list[str]:
        plain = ["-p", "no:cacheprovider", "-p", "no:anyio", "-p", "no:randomly", "--color=no", "--junitxml=report.xml"]
        return [sys.executable, "-m", "pytest", *plain, *options]

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options), cwd=self.folder, capture_output=True, text=True, timeout=60, env=environment()
        )

    def journal(self) -> list[str]:
        """Return the changes of outputs, in order, between the lines that begin and end each test."""
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
    """Return the environment without the variables of this pytest process."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
