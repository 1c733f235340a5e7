"""Leases and hooks that hold off updates of a real agent."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.actions.driver import ASK_AGAIN
from agent.layout import SERVER
from schema.errors import MachineError
from tests.e2e.agent.support import Agent, agent, new_part
from tests.e2e.cloud.process import cloud
from tests.helpers.release_files import fake_server, write_release
from tests.helpers.waiting import until


@asynccontextmanager
async def joined(folder: Path, **environment: str) -> AsyncIterator[Agent]:
    async with cloud(folder / "cloud") as running, running.client() as client:
        part = await new_part(running, client, folder)
        async with agent(folder, part.file, **environment) as running_agent:
            await running_agent.serving()
            yield running_agent


def reasons(status: Mapping[str, Any]) -> list[str]:
    """Return what the update of machine-server waits for."""
    return [waiting["reason"] for waiting in status["server"].get("waiting_for", ())]


async def command(running: Agent, *arguments: str) -> str:
    """Return the output of `machine agent`."""
    done = await trio.run_process(
        [sys.executable, "-m", "command.cli", "agent", "--root", str(running.layout.root), *arguments],
        capture_stdout=True,
    )
    return done.stdout.decode()


async def test_an_update_waits_for_leases_and_begins_when_the_last_is_released(tmp_path: Path) -> None:
    new = write_release(tmp_path / "new", "9.1.0", fake_server())
    async with joined(tmp_path) as running:
        first = await running.serving()
        part = running.layout.leases / ".flash"
        part.write_text(f"{time.time() + 3600:.0f}\nwrites the firmware\n")
        part.rename(running.layout.leases / "flash")
        assert "held off until" in await command(running, "lease", "take", "backup", "--for", "2h")
        await running.ask("update", program=SERVER, choice=f"file://{new}")
        status = await running.status_until(reasons)
        assert reasons(status)[0].startswith("held by backup, flash until ")
        text = await command(running, "status")
        assert "waits for: held by backup, flash until " in text
        listed = await command(running, "lease", "list")
        assert [line.split()[0] for line in listed.splitlines()] == ["backup", "flash"]
        assert listed.strip().endswith("writes the firmware")

        (running.layout.leases / "flash").unlink()
        await running.status_until(lambda status: reasons(status)[0].startswith("held by backup until "))
        assert await running.serving() == first
        before = time.monotonic()
        assert await command(running, "lease", "release", "backup") == "backup: released\n"
        await running.status_until(lambda status: status["server"]["step"] == "trial")
        assert time.monotonic() - before < ASK_AGAIN / 2, "it was not noticed, only asked again"
        assert await running.serving(after=first)
        late = await running.ask("lease-take", name="late", seconds=60)
        assert late["late"] == [SERVER]


async def test_leases_survive_the_agent_and_wrong_ones_are_reported(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as cloud_process, cloud_process.client() as client:
        part = await new_part(cloud_process, client, tmp_path)
        async with agent(tmp_path, part.file) as running:
            await running.ask("lease-take", name="flash", seconds=3600)
            with pytest.raises(MachineError, match="take it for 1 s to 24 h"):
                await running.ask("lease-take", name="flash", seconds=25 * 3600)
            (running.layout.leases / "wrong").write_text("tomorrow")
            await running.status_until(
                lambda status: any(
                    problem["path"] == str(running.layout.leases / "wrong")
                    and problem["remedy"].startswith("write the end of the lease in seconds since 1970")
                    for problem in status.get("problems", ())
                )
            )
            running.process.kill()
            await running.process.wait()
        async with agent(tmp_path, part.file) as running:
            held = (await running.ask("lease-list"))["leases"]
            assert [lease["name"] for lease in held] == ["flash"]


def hook(running: Agent, name: str, script: str) -> Path:
    """Write a hook, as the owner of the device does."""
    path = running.layout.hooks / name
    path.parent.mkdir(mode=0o755, exist_ok=True)
    part = path.with_name(".part")
    part.write_text(f"#!/bin/sh\n{script}\n")
    part.chmod(0o755)
    return part.rename(path)


async def test_a_hook_defers_an_update_with_its_reason_and_then_lets_it_pass(tmp_path: Path) -> None:
    new = write_release(tmp_path / "new", "9.1.0", fake_server())
    log = tmp_path / "hooks.log"
    async with joined(tmp_path, MACHINE_AGENT_CLOCK_SPEED="300") as running:
        first = await running.serving()
        write = f'echo "$MACHINE_HOOK $MACHINE_PROGRAM $MACHINE_VERSION_TO $MACHINE_RESULT" >>{log}'
        for name in ("before-update", "after-switch", "after-update"):
            hook(running, name, write)
        (load := tmp_path / "load").touch()
        hook(running, "before-switch", f"{write}\ntest ! -e {load} || {{ echo the arm holds a load; exit 3; }}")
        await running.ask("update", program=SERVER, choice=f"file://{new}", now=True)
        status = await running.status_until(reasons)
        text = "the hook before-switch ended with exit code 3: the arm holds a load"
        assert reasons(status) == [text], "--now does not override hooks"
        assert f"waits for: {text}, since " in await command(running, "status")
        assert await running.serving() == first
        load.unlink()
        status = await running.status_until(lambda status: status["server"].get("history"))
        assert status["server"]["history"][-1]["result"] == "updated"
        await until(lambda: log.read_text().splitlines()[-1] == f"after-update {SERVER} 9.1.0 updated", log.read_text)
        names = [line.split()[0] for line in log.read_text().splitlines()]
        assert [names[0], *names[-3:]] == ["before-update", "before-switch", "after-switch", "after-update"]


async def test_a_hook_that_others_can_change_is_not_run_and_reported(tmp_path: Path) -> None:
    new = write_release(tmp_path / "new", "9.1.0", fake_server())
    async with joined(tmp_path) as running:
        path = hook(running, "before-switch", f"touch {tmp_path}/ran")
        path.chmod(0o777)
        await running.ask("update", program=SERVER, choice=f"file://{new}")
        status = await running.status_until(lambda status: reasons(status) and status.get("problems"))
        assert reasons(status)[0].startswith(
            f"the hook before-switch is not run: {path}: can be changed by other users"
        )
        assert (status["problems"][0]["path"], status["problems"][0]["remedy"]) == (
            str(path),
            f"run `chmod go-w {path}`",
        )
        assert not (tmp_path / "ran").exists()
        path.chmod(0o755)
        await running.status_until(lambda status: status["server"].get("step") == "trial")
        assert (tmp_path / "ran").exists()
