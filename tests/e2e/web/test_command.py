"""`machine` as a person uses it, against a real machine-server on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.server.process import Server, server
from tests.loopback import free_port

DOCUMENT: Mapping[str, Any] = {
    "components": [
        {"name": "left", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": 60}},
        {"name": "thermometer", "api": "rdk:component:sensor", "model": "fake"},
        {"name": "broken", "api": "rdk:component:motor", "model": "nosuch"},
        {"name": "twin", "api": "rdk:component:sensor", "model": "fake"},
        {"name": "twin", "api": "rdk:component:servo", "model": "fake"},
    ]
}
KEYS = {"auth": {"handlers": [{"type": "api-key", "config": {"operator": "correct-horse-battery"}}]}}
LOADED = "import sys; from command.cli import main; main(standalone_mode=False); print(*sorted(sys.modules))"
PROGRAM = [sys.executable, "-c", "from command.cli import main; main()"]


async def machine(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("MACHINE_")} | environment
    with trio.fail_after(40):
        done = await trio.run_process(
            [*PROGRAM, *words], capture_stdout=True, capture_stderr=True, check=False, env=env
        )
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


@asynccontextmanager
async def running(folder: Path, extra: Mapping[str, Any] | None = None) -> AsyncIterator[Server]:
    async with server(folder, {**DOCUMENT, **(extra or {})}) as first:
        yield first


@pytest.mark.slow
async def test_show_and_call(tmp_path: Path) -> None:
    async with running(tmp_path) as first:
        where = {"MACHINE_ADDRESS": first.address}
        status = await machine("status", **where)
        assert status.returncode == 0, status.stderr
        assert "is running" in status.stdout
        assert "no model rdk:builtin:nosuch" in status.stdout
        assert "\x1b" not in status.stdout
        listed = json.loads((await machine("resources", "--json", **where)).stdout)
        states = {entry["name"]: entry["state"] for entry in listed}
        assert states["rdk:component:motor/left"] == "ready"
        assert states["rdk:component:motor/broken"] == "unhealthy"

        moved = await machine("call", "left", "set_power", "power_pct=0.5", **where)
        assert (moved.returncode, moved.stdout) == (0, ""), moved.stderr
        powered = json.loads((await machine("call", "rdk:component:motor/left", "is_powered", **where)).stdout)
        assert powered["is_on"] is True
        assert (await machine("call", "left", "stop", **where)).returncode == 0

        methods = (await machine("call", "left", **where)).stdout
        assert "set_power power_pct=NUMBER" in methods

        for words, code, text in (
            (("call", "left", "set_powr", "power_pct=1"), 2, "did you mean set_power?"),
            (("call", "left", "set_power"), 2, "set_power needs power_pct"),
            (("call", "left", "set_power", "power_pct=fast"), 1, "'fast' is not a number"),
            (("call", "lefd", "stop"), 1, "did you mean 'left'?"),
            (("call", "broken", "stop"), 1, "is unhealthy"),
            (("watch", "absent"), 1, "no resource 'absent'"),
        ):
            done = await machine(*words, **where)
            assert (done.returncode, text in done.stderr) == (code, True), done.stderr


@pytest.mark.slow
async def test_watch_prints_changes_and_readings_until_it_is_interrupted(tmp_path: Path) -> None:
    async with running(tmp_path) as first:
        process = await trio.lowlevel.open_process(
            [*PROGRAM, "watch", "--json", "--interval", "0.1", "--address", first.address, "left", "thermometer"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert process.stdout is not None
        text, names, readings = b"", set[str](), False
        with trio.fail_after(40):
            while not readings or len(names) < 2:
                text += await process.stdout.receive_some()
                *lines, text = text.split(b"\n")
                events = [json.loads(line) for line in lines]
                names |= {event["name"] for event in events}
                readings = readings or any("readings" in event for event in events)
            assert names == {"rdk:component:motor/left", "rdk:component:sensor/thermometer"}
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130


@pytest.mark.slow
async def test_a_key_is_needed_used_and_never_shown(tmp_path: Path) -> None:
    async with running(tmp_path, KEYS) as first:
        where = {"MACHINE_ADDRESS": first.address}
        refused = await machine("status", **where)
        assert refused.returncode == 1
        assert "MACHINE_API_KEY" in refused.stderr
        wrong = await machine("status", MACHINE_API_KEY_ID="operator", MACHINE_API_KEY="wrong-secret", **where)
        assert wrong.returncode == 1
        assert "wrong-secret" not in wrong.stdout + wrong.stderr
        right = await machine("status", MACHINE_API_KEY_ID="operator", MACHINE_API_KEY="correct-horse-battery", **where)
        assert right.returncode == 0, right.stderr
        assert "correct-horse" not in right.stdout + right.stderr
        assert (await machine("status", "--api-key-id", "operator", **where)).returncode == 2


@pytest.mark.slow
async def test_unreachable_machines_and_usage_errors() -> None:
    gone = await machine("status", "--address", f"127.0.0.1:{free_port()}")
    assert gone.returncode == 3
    assert "is machine-server running?" in gone.stderr
    assert (await machine("status", "--address", "nonsense")).returncode == 2
    assert (await machine("frobnicate")).returncode == 2
    assert (await machine("--version")).stdout.startswith("machine ")


@pytest.mark.slow
async def test_check_prints_every_error(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(DOCUMENT))
    done = await machine("check", str(path), "--json")
    assert done.returncode == 1
    assert [problem["path"] for problem in json.loads(done.stdout)["problems"]] == ["components.2.model"]
    path.write_text('{"components": []}')
    assert (await machine("check", str(path))).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [("status",), ("resources",), ("call", "thermometer", "get_readings")])
async def test_commands_that_wait_for_one_answer_load_no_event_loop(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with running(tmp_path) as first:
        env = {**os.environ, "MACHINE_ADDRESS": first.address}
        done = await trio.run_process([sys.executable, "-c", LOADED, *words], capture_stdout=True, env=env)
    modules = done.stdout.decode().splitlines()[-1].split()
    assert {"trio", "asyncio", "structlog", "command.cloud.data"}.isdisjoint(modules)
    assert "rpc.client.web" in modules
