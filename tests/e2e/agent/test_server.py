"""machine-agent starts and supervises machine-server, with settings and restarts of a real cloud."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from agent.launch.links import read
from agent.layout import SERVER
from tests.e2e.agent.support import APP, Agent, Part, agent, new_part
from tests.e2e.cloud.process import cloud
from tests.helpers.waiting import until


@asynccontextmanager
async def joined(folder: Path, *options: str, **environment: str) -> AsyncIterator[tuple[Agent, Part]]:
    async with cloud(folder / "cloud") as running, running.client() as client:
        part = await new_part(running, client, folder)
        async with agent(folder, part.file, *options, **environment) as running_agent:
            yield running_agent, part


def environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def exists(pid: int) -> bool:
    """Return whether a process runs; one that has ended may wait for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


async def test_the_server_is_restarted_after_a_kill_and_ends_with_the_agent(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, _):
        first = await running.serving()
        status = await running.ask("status")
        assert status["server"]["version"] == status["agent"]["version"]
        assert "problems" not in status
        os.kill(first, signal.SIGKILL)
        second = await running.serving(after=first)
        (end,) = (await running.ask("status"))["server"]["exits"]
        assert end["reason"] == "killed by SIGKILL"
        assert await running.stop() == 0
        assert not exists(second)


async def test_a_restarted_agent_replaces_the_server_of_a_killed_one(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, part):
        first = await running.serving()
        running.process.kill()
        await running.process.wait()
        assert exists(first)
        async with agent(tmp_path, part.file) as next_agent:
            second = await next_agent.serving(after=first)
            assert second != first
            assert not exists(first)


async def test_a_server_that_was_only_just_started_is_replaced_too(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, part):
        await running.status_until(lambda status: status.get("server", {}).get("running"))
        running.process.kill()
        await running.process.wait()
        async with agent(tmp_path, part.file) as next_agent:
            await next_agent.serving()
            assert "exits" not in (await next_agent.ask("status"))["server"]


async def test_a_setting_stops_and_starts_the_server(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, part):
        first = await running.serving()
        await part.save({"agent": {"advanced_settings": {"disable_viam_server": True}}})
        await running.ask("check")
        await running.status_until(lambda status: status.get("disabled") and not status["server"].get("running"))
        assert not exists(first)
        await part.save({})
        await running.ask("check")
        await running.serving(after=first)


async def test_the_server_gets_its_environment_by_a_restart(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, part):
        first = await running.serving()
        await part.save({"agent": {"advanced_settings": {"viam_server_env": {"COLOR": "secret-red"}}}})
        await running.ask("check")
        second = await running.serving(after=first)
        assert b"COLOR=secret-red\0" in environ(second)
        assert "restart" not in (await running.ask("status"))["server"]
        assert "secret-red" not in running.log.read_text()


async def test_people_restart_the_server_here_and_in_the_cloud(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, part):
        first = await running.serving()
        await running.ask("restart")
        second = await running.serving(after=first)
        await part.client.call(APP, "", "mark_part_for_restart", part_id=part.id)
        await running.serving(after=second)


async def test_the_server_waits_for_the_cloud_if_it_is_asked_to(tmp_path: Path) -> None:
    config = tmp_path / "machine.json"
    with trio.socket.socket() as silent:  # accepts connections and never answers
        await silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        config.write_text(f'{{"cloud": {{"id": "p", "secret": "s", "app_address": "http://127.0.0.1:{port}"}}}}')
        config.chmod(0o600)
        async with agent(tmp_path, config, "--wait") as running:
            await until(lambda: "when the cloud was asked" in running.log.read_text(), running.log.read_text)
            assert "running" not in (await running.ask("status"))["server"]
            assert await running.stop() == 0
        async with agent(tmp_path, config, "--wait", MACHINE_AGENT_FAST_START="1") as running:
            await running.status_until(lambda status: status["server"].get("running"))


async def test_a_release_that_is_installed_is_not_replaced_by_the_package(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, part):
        await running.serving()
        before = read(running.layout, SERVER)
        assert await running.stop() == 0
        async with agent(tmp_path, part.file) as second:
            await second.serving()
            assert read(second.layout, SERVER) == before
