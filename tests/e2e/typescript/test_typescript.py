"""The official TypeScript SDK in Node over gRPC-Web: connect, names, readings, motor, errors."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Server
from tests.e2e.sdk.machine import document
from tests.e2e.sdk.test_connect import AUTH, KEY, KEY_ID

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def _node() -> None:
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed and could not be installed by tools/setup-node")
    if not (HERE / "node_modules" / "@viamrobotics" / "sdk").exists():
        pytest.skip("the TypeScript SDK is not installed: run tools/setup-node tests/e2e/typescript")


def node(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(["node", "machine.mjs", *arguments], cwd=HERE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def check(result: dict[str, Any]) -> None:
    assert "rdk:component:motor/motor" in result["names"]
    assert result["readings"] == {"a": 1, "b": 2, "c": 3}
    assert result["position"] == pytest.approx(1, abs=0.05)
    assert result["powered"] in ([True, 0.25], {"isOn": True, "powerPct": 0.25})
    assert result["moving"] is False
    assert result["error"]["code"] == 5, "NOT_FOUND"


def test_plaintext(machine: str) -> None:
    check(node(f"http://localhost:{machine.rpartition(':')[2]}"))


def test_with_an_api_key(tmp_path: Path) -> None:
    with Server(document(auth=AUTH), tmp_path) as server:
        server.wait_running()
        check(node(f"http://localhost:{server.port}", KEY_ID, KEY))
        failed = subprocess.run(
            ["node", "machine.mjs", f"http://localhost:{server.port}", KEY_ID, "wrong"],
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert failed.returncode != 0
