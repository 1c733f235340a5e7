"""machine-agent with its cloud: settings arrive and are kept, problems and outages are visible, credentials change."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import trio

from support.program_version import version
from tests.e2e.agent.support import LIMIT, agent, new_part
from tests.e2e.cloud.process import cloud
from tests.helpers.waiting import until


async def test_settings_of_the_cloud_are_used_and_kept_during_an_outage(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        await part.save({"agent": {"advanced_settings": {"disable_viam_server": True}}})
        async with agent(tmp_path, part.file) as first:
            status = await first.status_until(lambda status: status.get("disabled"))
            assert status["agent"]["version"] == version()
            assert status.get("offline", "") == ""
            assert await first.stop() == 0
        assert await running.stop() == 0
    async with agent(tmp_path, part.file) as second:
        status = await second.status_until(lambda status: status.get("disabled"))
        assert status["offline"] == "unreachable"
        # The status says "unreachable" before the first call has ended; the line follows it.
        await until(lambda: "the last settings stay in force" in second.log.read_text(), second.log.read_text)


async def test_a_problem_of_the_settings_is_in_the_status_and_in_the_logs_of_the_cloud(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        await part.save({"agent": {"advanced_settings": {"viam_server_start_timeout_minutes": "soon", "debug": True}}})
        async with agent(tmp_path, part.file) as running_agent:
            status = await running_agent.status_until(lambda status: status.get("problems"))
            (problem,) = status["problems"]
            assert problem["path"] == "agent.advanced_settings.viam_server_start_timeout_minutes"
            assert problem["remedy"]

            async def logged() -> bool:
                return any("viam_server_start_timeout_minutes" in line for line in await part.logs())

            await until(logged)


async def test_an_agent_without_credentials_waits_for_them(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        credentials = part.file.read_text()
        part.file.write_text("{}")
        log = tmp_path / "log"
        command = [sys.executable, "-m", "agent.start", "--dev-mode", "--root", str(tmp_path / "opt")]
        with log.open("wb") as output:
            process = await trio.lowlevel.open_process(
                [*command, "-c", str(part.file)], stdout=output, stderr=output, env=os.environ
            )
        try:
            await until(lambda: "waits for credentials" in log.read_text(), log.read_text)
            part.file.write_text(credentials)
            await until(lambda: "connected to the cloud" in log.read_text(), log.read_text)
        finally:
            process.terminate()
            with trio.CancelScope(shield=True):
                await process.wait()
        assert process.returncode == 0


async def test_new_credentials_end_the_agent_so_that_it_starts_again(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        async with agent(tmp_path, part.file) as running_agent:
            part.file.write_text("{")
            await until(lambda: "the former ones stay in use" in running_agent.log.read_text())
            assert running_agent.process.poll() is None
            document = {"cloud": {"id": part.id, "secret": part.secret, "app_address": f"http://{running.address}/"}}
            part.file.write_text(json.dumps(document))
            with trio.fail_after(LIMIT):
                assert await running_agent.process.wait() == 0


async def test_a_second_agent_is_refused_and_a_killed_one_does_not_block_the_next(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        async with agent(tmp_path, part.file) as first:
            command = [sys.executable, "-m", "agent.start", "--dev-mode", "--root", str(tmp_path / "opt")]
            second = subprocess.run(  # noqa: ASYNC221 - short
                [*command, "-c", str(part.file)], capture_output=True, text=True, check=False, timeout=LIMIT
            )
            assert second.returncode == 1
            assert f"another machine-agent runs already (process {first.process.pid}" in second.stderr
            first.process.send_signal(signal.SIGKILL)
            await first.process.wait()
        async with agent(tmp_path, part.file) as third:
            assert (await third.ask("status"))["agent"]["running"]


def test_root_is_required_without_dev_mode(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv (util-linux) is not installed")
        command = ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable]
    else:
        command = [sys.executable]
    done = subprocess.run(
        [*command, "-m", "agent.start", "-c", str(tmp_path / "machine.json")],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert (done.returncode, "root is required" in done.stderr) == (1, True), done.stderr


def test_version_and_help() -> None:
    run = [sys.executable, "-m", "agent.start"]
    said = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    assert said == f"machine-agent {version()}\n"
    text = subprocess.run([*run, "--help"], capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    for option in ("--config", "--defaults", "--debug", "--wait", "--install", "--dev-mode"):
        assert option in text


async def test_the_commands_of_machine_agent(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        run = [sys.executable, "-m", "command.cli", "agent", "--root", str(tmp_path / "opt")]

        async def machine(*words: str) -> subprocess.CompletedProcess[str]:
            with trio.fail_after(LIMIT):
                done = await trio.run_process(
                    [*run, *words], capture_stdout=True, capture_stderr=True, check=False, cwd=tmp_path,
                    env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
                )  # fmt: skip
            return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())

        async with agent(tmp_path, part.file) as running_agent:
            await running_agent.status_until(lambda status: not status.get("offline"))
            status = await machine("status")
            assert (status.returncode, status.stdout.startswith(f"machine-agent {version()}: serves")) == (0, True)
            assert json.loads((await machine("status", "--json")).stdout)["agent"]["running"]
            assert (await machine("update")).returncode == 0
            end = datetime.now().replace(microsecond=0, second=0) + timedelta(days=2)
            assert (await machine("hold", "--until", f"{end:%Y-%m-%d %H:%M}")).returncode == 0
            server = json.loads((await machine("status", "--json")).stdout)["server"]
            assert server["hold_until"] == end.timestamp()
            assert (await machine("hold", "--release")).returncode == 0
            assert not json.loads((await machine("status", "--json")).stdout)["server"].get("hold_until")
            checked = await machine("check", "--config", str(part.file), "--json")
            levels = {finding["check"]: finding["level"] for finding in json.loads(checked.stdout)}
            assert (levels["credentials"], levels["cloud"], levels["dns"]) == ("pass", "pass", "pass")
            archive = await machine("bundle", "bundle.tar.gz", "--config", str(part.file))
            assert archive.returncode == 0, archive.stderr
            assert part.secret.encode() not in gzip.decompress((tmp_path / "bundle.tar.gz").read_bytes())
        ended = await machine("status")
        assert ended.returncode == 3
        assert "start it with" in ended.stderr
