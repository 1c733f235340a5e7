"""`machine logs` against a real machine-server: filters, styles, keys, restarts; following does not log itself."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.logs.support import PROGRAM, environment, logs, printed, say
from tests.e2e.server.process import server

DOCUMENT: Mapping[str, Any] = {
    "debug": True,
    "components": [
        {"name": "left", "api": "rdk:component:motor", "model": "fake"},
        {"name": "broken", "api": "rdk:component:motor", "model": "nosuch"},
        {"name": "warm", "api": "rdk:component:sensor", "model": "fake"},
    ],
}


class Following:
    """A running `machine logs -f`."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.out = b""
        self.err = b""

    async def read(self, stream: str, text: str) -> str:
        """Return everything up to and including the first unread line with `text` in it."""
        pipe = self.process.stdout if stream == "out" else self.process.stderr
        assert pipe is not None
        with trio.fail_after(30):
            while True:
                said = getattr(self, stream)
                result = re.search(re.escape(text.encode()) + rb"[^\n]*\n", said)
                if result:
                    setattr(self, stream, said[result.end() :])
                    return bytes(said[: result.end()]).decode()
                data = await pipe.receive_some()
                assert data, f"it ended: {self.out!r} {self.err!r}"
                setattr(self, stream, said + data)


@asynccontextmanager
async def following(address: str, *words: str, **more: str) -> AsyncIterator[Following]:
    process = await trio.lowlevel.open_process(
        [*PROGRAM, "-f", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(address, PYTHONUNBUFFERED="1", **more),
    )
    try:
        yield Following(process)
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await process.wait()


@pytest.mark.slow
async def test_the_newest_lines_with_filters_and_in_every_style(tmp_path: Path) -> None:
    async with server(tmp_path, DOCUMENT, "-disable-mdns", running=True) as first:
        await say(first, "the pump is dry", level="warn", litres=0.5, who="me and you")
        every = await printed(first, "-n", "1000")
        assert [entry["seq"] for entry in every] == list(range(1, len(every) + 1))
        last = every[-1]
        assert (last["level"], last["logger"], last["message"]) == ("warn", "rdk.test", "the pump is dry")
        assert last["fields"] == {"litres": 0.5, "who": "me and you"}
        assert every[0]["caller"].startswith("server/")
        newest = await printed(first, "-n", "3")
        assert len(newest) == 3
        assert newest == every[-3:]

        errors = await printed(first, "--level", "error")
        assert {entry["logger"] for entry in errors} == {"rdk.resource_manager.rdk:component:motor/broken"}
        motors = await printed(first, "--logger", "rdk.components.motor")
        assert {entry["logger"].rpartition("/")[2] for entry in motors} == {"left", "broken"}
        assert [entry["message"] for entry in await printed(first, "--text", "PUMP")] == ["the pump is dry"]
        assert await printed(first, "--since", "2099-01-01T00:00:00Z") == []
        assert len(await printed(first, "--since", "1h", "-n", "1000")) > 10

        quiet = await logs(first, "-q", "--text", "pump")
        assert quiet.stdout.decode() == "the pump is dry\n"
        table = await logs(first, "--text", "pump")
        time, pump = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", r'(who="me and you" ?|litres=0\.5 ?){2}'
        assert re.fullmatch(rf"{time}  WARN   rdk\.test  the pump is dry  {pump}\n", table.stdout.decode())
        for words, text in (
            (("--since", "soon"), "a duration such as 10m"),
            (("--logger", "("), "a logger's name"),
        ):
            wrong = await logs(first, *words)
            assert (wrong.returncode, text in wrong.stderr.decode()) == (1, True), wrong.stderr
    gone = await logs(first)
    assert gone.returncode == 3
    assert b"is machine-server running?" in gone.stderr


@pytest.mark.slow
async def test_following_at_debug_level_does_not_log_itself(tmp_path: Path) -> None:
    async with server(tmp_path, DOCUMENT, "-disable-mdns", running=True) as first:
        async with following(first.address, "-q", "-n", "1") as reader:
            await reader.read("out", "")
            before = (await printed(first, "-n", "1"))[0]["seq"]
            for number in range(5):
                await say(first, f"said {number}")
                await reader.read("out", f"said {number}")
            after = (await printed(first, "-n", "1"))[0]["seq"]
        assert after - before == 5


@pytest.mark.slow
async def test_following_continues_after_a_restart_with_a_note(tmp_path: Path) -> None:
    address = ""
    async with server(tmp_path, DOCUMENT, "-disable-mdns", running=True) as first:
        address = first.address
        async with following(address, "-n", "1000", "--text", "said") as reader:
            for number in range(3):
                await say(first, f"said {number}")
            seen = await reader.read("out", "said 2")
            assert seen.count("said ") == 3
            assert await first.stop(signal.SIGTERM) == 0
            lost = await reader.read("err", "waiting for the machine")
            assert lost.startswith(f"(the connection to {address} was lost")
            document = {**DOCUMENT, "network": {"bind_address": address}}
            async with server(tmp_path, document, "-disable-mdns", running=True) as two:
                await say(two, "said again")
                await reader.read("err", "the machine was restarted")
                again = await reader.read("out", "said again")
                assert "said 2" not in again
                two.process.send_signal(signal.SIGKILL)
                await reader.read("err", "waiting for the machine")
            assert reader.process.poll() is None
            reader.process.send_signal(signal.SIGINT)
            with trio.fail_after(30):
                assert await reader.process.wait() == 130


@pytest.mark.slow
async def test_a_machine_with_keys_shows_its_log_only_with_a_key(tmp_path: Path) -> None:
    keys = {"auth": {"handlers": [{"type": "api-key", "config": {"operator": "correct-horse-battery"}}]}}
    async with server(tmp_path, {**DOCUMENT, **keys}, "-disable-mdns", running=True) as first:
        refused = await logs(first)
        assert refused.returncode == 1
        assert b"MACHINE_API_KEY" in refused.stderr
        wrong = await logs(first, MACHINE_API_KEY_ID="operator", MACHINE_API_KEY="wrong-secret")
        assert wrong.returncode == 1
        assert b"wrong-secret" not in wrong.stdout + wrong.stderr
        right = await logs(first, MACHINE_API_KEY_ID="operator", MACHINE_API_KEY="correct-horse-battery")
        assert right.returncode == 0, right.stderr
        assert b"running" in right.stdout
        assert b"correct-horse" not in right.stdout + right.stderr


@pytest.mark.slow
async def test_over_tls(tmp_path: Path, certificate: dict[str, str]) -> None:
    files = {key: certificate[key] for key in ("tls_cert_file", "tls_key_file")}
    document = {**DOCUMENT, "network": {"bind_address": "localhost:0", **files}}
    async with server(tmp_path, document, "-disable-mdns", running=True) as first:
        done = await logs(first, "--ca", certificate["ca_file"], "--text", "running")
        assert done.returncode == 0, done.stderr
        assert b"running" in done.stdout
        plain = await logs(first)
        assert plain.returncode == 3
        assert b"this port speaks TLS" in plain.stderr
        untrusted = await logs(first, "--tls")
        assert untrusted.returncode == 3
        assert b"--ca FILE" in untrusted.stderr
