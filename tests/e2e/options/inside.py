"""Runs in separate namespaces: a server called over loopback and another address, or with a very small disk.

python -m tests.e2e.options.inside debug|credentials|disk FOLDER prints one JSON object.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from telemetry.metrics.ftdc import read_ftdc
from tests.e2e.harness import Server
from tests.e2e.options.support import until

OTHER = "192.0.2.1"  # RFC 5737: for documentation, not routed
KEY = "0123456789abcdef0123456789abcdef"


def debug(folder: Path) -> dict[str, int]:
    """Return the status of /debug/ by caller."""
    with Server({"network": {"bind_address": ":0"}}, folder, "-webprofile") as server:
        port = server.port
        return {
            "localhost": status(f"http://127.0.0.1:{port}/debug/"),
            OTHER: status(f"http://{OTHER}:{port}/debug/"),
            "a name that leads here": status(f"http://127.0.0.1:{port}/debug/", host=f"evil.example:{port}"),
        }


def status(url: str, *, host: str = "") -> int:
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def credentials(folder: Path) -> dict[str, str]:
    """Return whether a key is accepted, by option and by caller."""
    auth = {"handlers": [{"type": "api-key", "config": {"operator": KEY, "keys": ["operator"]}}]}
    document = {"network": {"bind_address": ":0"}, "auth": auth}
    results = {}
    for word, options in (("without", ()), ("with", ("-allow-insecure-creds",))):
        with Server(document, folder, *options) as server:
            for host, name in (("127.0.0.1", "localhost"), (OTHER, OTHER)):
                results[f"{word}, {name}"] = asked(f"{host}:{server.port}")
    return results


def asked(address: str) -> str:
    program = Path(sys.executable).with_name("machine")
    command = [program, "status", "--address", address, "--api-key-id", "operator", "--api-key", KEY]
    return "let in" if subprocess.run(command, capture_output=True, timeout=30).returncode == 0 else "refused"


def disk(folder: Path) -> dict[str, Any]:
    """Return what happens when the disk is full after the first samples."""
    home = folder / "home"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", home], check=True)
    motor = {"name": "m", "api": "rdk:component:motor", "model": "fake"}
    with Server({"components": [motor]}, folder, "-disable-mdns") as server:
        server.wait_running()
        methods = itertools.cycle(("get_position", "is_powered", "get_properties", "stop", "set_power", "go_to"))

        def full() -> bool:
            server.command("call", "m", next(methods))  # adds counters, so that the next sample has a different schema
            return "diagnostic data is not recorded" in server.log()

        until(full, "the disk was not full")
        moving = server.command("call", "m", "is_moving").returncode
        code = server.stop()
    return {
        "call": moving,
        "exit": code,
        "said": server.log().count("diagnostic data is not recorded"),
        "reason": "No space left on device" in server.log(),
        "whole": [read_ftdc(path.read_bytes()).problem for path in home.rglob("*.ftdc")],
    }


if __name__ == "__main__":
    subprocess.run(["ip", "address", "add", f"{OTHER}/24", "dev", "lo"], check=True)
    scene = {"debug": debug, "credentials": credentials, "disk": disk}[sys.argv[1]]
    print(json.dumps(scene(Path(sys.argv[2]))))
