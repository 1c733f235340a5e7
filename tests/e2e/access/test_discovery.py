"""The discovery service `hardware`, called with the official SDK, returns the same result as `machine hal`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from viam.robot.client import RobotClient
from viam.services.discovery import DiscoveryClient
from viam.utils import struct_to_dict

from tests.e2e.harness import Server
from tests.e2e.sdk.test_components import play

MACHINE = str(Path(sys.executable).with_name("machine"))


def hal(*words: str) -> object:
    done = subprocess.run([MACHINE, "hal", *words, "--no-scan"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace(": null", ": 0").replace(":null", ":0"))  # the SDK reads null as 0


def test_the_service_and_the_command_agree(tmp_path: Path) -> None:
    entry = {"api": "rdk:service:discovery", "name": "found", "model": "hardware", "attributes": {"scan": False}}

    async def script(robot: RobotClient) -> None:
        service = DiscoveryClient.from_robot(robot, "found")
        inventory = await service.do_command({"command": "inventory"})
        shown = hal("--json")
        assert isinstance(shown, dict)
        assert "board" in inventory
        for key in inventory.keys() & shown.keys() - {"problems"}:
            assert inventory[key] == shown[key], key
        assert len(inventory.keys() & shown.keys()) >= 8
        entries = [
            {
                "name": resource.name,
                "api": resource.api,
                "model": resource.model,
                "attributes": struct_to_dict(resource.attributes),
            }
            for resource in await service.discover_resources()
        ]
        configured = hal("--config")
        assert isinstance(configured, dict)
        expected = [
            {key: component.get(key, {}) for key in ("name", "api", "model", "attributes")}
            for component in configured["components"]
        ]
        firsts = {item["name"]: item for item in reversed(entries)}
        assert all(firsts[element["name"]] == element for element in expected)

    with Server({"services": [entry]}, tmp_path) as server:
        play(server.wait_running().address, script)
