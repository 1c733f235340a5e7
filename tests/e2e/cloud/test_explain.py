"""`machine cloud network explain` with real programs, in a network namespace because WebRTC does not use loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from command.machine.through.paths import CLOUD, DIRECT, WEBRTC, Explanation, explanation_lines
from command.machine.through.paths import Path as CallPath
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_machine import APP, Joined, sensors, until
from tests.e2e.harness import in_namespace, namespace_refusal
from tests.netns.lan import ip

LIMIT = 100  # seconds


def test_each_path_is_tried_and_explained(tmp_path: Path) -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespaces: {refusal}")
    if importlib.util.find_spec("wrtc") is None:
        pytest.skip("wrtc is not installed")
    command = in_namespace([sys.executable, "-m", "tests.e2e.cloud.test_explain", str(tmp_path)])
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    offline, text, fields = json.loads(done.stdout)
    assert offline["code"] == 3
    assert "No path reaches it from this computer." in offline["text"]
    assert offline["text"].count("rover-main is offline") == 2
    assert offline["text"].count("does not work") == 3
    assert text["code"] == 0
    assert "works: connected after" in text["text"]
    assert "without a relay: host to host 10.77.0.1 by udp" in text["text"]
    assert "take the path 'WebRTC'" in text["text"]
    assert "takes the path 'through the cloud'" in text["text"]
    explanation = json.loads(fields["text"])
    assert explanation["used"] == WEBRTC
    assert [(path["name"], path["round_trip"] is not None) for path in explanation["paths"]] == [
        (WEBRTC, True),
        (CLOUD, True),
        (DIRECT, False),
    ]


def test_the_lines_name_the_path_that_clients_take() -> None:
    reached: dict[str, Any] = {"connected_after": 0.25, "round_trip": 0.0021, "slowest": 0.004}
    paths = [
        CallPath(WEBRTC, "neither end reaches the other by WebRTC", servers=["stun:stun.example"]),
        CallPath(CLOUD, address="https://cloud.example", **reached),
        CallPath(DIRECT, address="192.0.2.7:8080", **reached),
    ]
    explanation = Explanation("rover", "id", "online", "rover-id.machines.example", paths)
    assert list(explanation_lines(explanation)) == [
        "rover is online",
        "  WebRTC             does not work: neither end reaches the other by WebRTC",
        "                     servers: stun:stun.example",
        "  through the cloud  works: connected after 250 ms, round trip 2.1 ms, at most 4.0 ms in 21 calls",
        "                     at https://cloud.example",
        "  direct             works: connected after 250 ms, round trip 2.1 ms, at most 4.0 ms in 21 calls",
        "                     at 192.0.2.7:8080",
        "Official SDKs that dial rover-id.machines.example take the path 'through the cloud', because no earlier one "
        "in this list works.",
        "`machine --cloud rover COMMAND` takes the path 'direct'.",
    ]


async def main(folder: Path) -> None:
    """Print the results of the command for a machine that is offline, and then for one that is online."""
    results = []

    async with cloud(folder / "cloud", "--machine-domain", "machines.test") as running, running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        joined = Joined(running, client, part, folder / "machine")
        await joined.save(**sensors("a"))
        login = {"MACHINE_CLOUD": f"http://{running.address}", "MACHINE_CLOUD_KEY_ID": running.key[0]}
        environ = {**os.environ, **login, "MACHINE_CLOUD_KEY": running.key[1]}

        async def explain(*options: str) -> dict[str, Any]:
            command = [sys.executable, "-m", "command.cli", "cloud", "network", "explain", "rover", *options]
            done = await trio.run_process(command, capture_stdout=True, check=False, env=environ)
            return {"code": done.returncode, "text": done.stdout.decode()}

        results.append(await explain())
        async with joined.machine():

            async def connected() -> bool:
                return bool(json.loads((await explain("--json"))["text"])["used"] == WEBRTC)

            await until(connected, "the machine has joined and reported that it answers")
            results += [await explain(), await explain("--json")]
    print(json.dumps(results))


if __name__ == "__main__":
    ip("link", "add", "lan0", "type", "veth", "peer", "name", "lan1")
    ip("address", "add", "10.77.0.1/24", "dev", "lan0")
    for name in ("lan0", "lan1"):
        ip("link", "set", name, "addrgenmode", "none")
        ip("link", "set", name, "up")
    trio.run(main, Path(sys.argv[1]))
