"""machine-agent updates machine-server: real processes, real files, times that pass 300 times faster."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.layout import SERVER
from schema.errors import MachineError
from tests.e2e.agent.support import Agent, Part, agent, new_part
from tests.e2e.cloud.process import cloud
from tests.helpers.release_files import SERVER as REAL
from tests.helpers.release_files import fake_server, write_release

SPEED = {"MACHINE_AGENT_CLOCK_SPEED": "300"}  # ten minutes of a trial are two seconds


@asynccontextmanager
async def joined(folder: Path, *prefix: str) -> AsyncIterator[tuple[Agent, Part]]:
    async with cloud(folder / "cloud") as running, running.client() as client:
        part = await new_part(running, client, folder)
        async with agent(folder, part.file, prefix=prefix, **SPEED) as running_agent:
            await running_agent.serving()
            yield running_agent, part


async def choose(running: Agent, choice: str, **more: Any) -> None:
    await running.ask("update", program=SERVER, choice=choice, **more)


def server(status: Mapping[str, Any]) -> Mapping[str, Any]:
    result: Mapping[str, Any] = status["server"]
    return result


async def until_settled(running: Agent, version: str) -> Mapping[str, Any]:
    """Return the part of the status about machine-server once this version runs and no update is in progress."""
    status = await running.status_until(
        lambda status: (
            server(status).get("version") == version and server(status).get("serving") and "step" not in server(status)
        )
    )
    return server(status)


async def test_a_file_is_installed_and_a_person_goes_back(tmp_path: Path) -> None:
    new = write_release(tmp_path / "new", "9.1.0", REAL)
    async with joined(tmp_path) as (running, _):
        before = server(await running.ask("status"))["version"]
        first = await running.serving()
        await choose(running, f"file://{new}")
        settled = await until_settled(running, "9.1.0")
        assert settled["history"][-1]["result"] == "updated"
        assert settled["previous"] == before
        assert await running.serving() != first
        await running.ask("rollback", program=SERVER)
        settled = await until_settled(running, before)
        assert [entry["version"] for entry in settled["quarantine"]] == ["9.1.0"]
        assert (settled["history"][-1]["result"], settled["history"][-1]["reason"]) == (
            "rolled_back", "a person asked for the roll-back",
        )  # fmt: skip
        assert list(running.layout.downloads.iterdir()) == []


BAD: dict[str, tuple[str, dict[str, str], str, str]] = {
    # name: script, fields of the header, result, part of the reason
    # Pauses between starts do not pass faster, so that the trial is over before the launcher has counted three.
    # Whether the process runs at that moment, and only does not answer yet, is chance.
    "exits at once": ("exit 0\n", {}, "rolled_back", "trial took longer than 30 minutes: it does not"),
    "never serves": ("exec sleep 1000\n", {}, "rolled_back", "it does not answer requests"),
    "cannot read its configuration": (fake_server(configured=False), {}, "rolled_back", "it has not fetched its conf"),
    "crashes after five minutes": (
        "(sleep 1; kill -9 $$) &\n" + fake_server(), {}, "rolled_back", "trial took longer than 30 minutes",
    ),
    "needs too much memory": (
        f"ulimit -v 400000\nexec {sys.executable} -c 'bytearray(1 << 30)'\n", {}, "rolled_back", "it does not",
    ),
    "another program": (fake_server(), {"program": "machine-agent"}, "", "the file is a release of machine-agent"),
    "another platform": (fake_server(), {"on": "linux/armv6l"}, "", "the file is for linux/armv6l"),
}  # fmt: skip


async def test_bad_releases_end_and_the_former_one_runs(tmp_path: Path) -> None:
    """All at the same time, each on a machine of its own: they mostly wait."""
    async with cloud(tmp_path / "cloud") as running, running.client() as client, trio.open_nursery() as nursery:
        for number, case in enumerate(BAD):
            folder = tmp_path / str(number)
            folder.mkdir()
            part = await new_part(running, client, folder, name=f"rover-{number}")
            nursery.start_soon(ends_and_the_former_one_runs, case, folder, part)


async def ends_and_the_former_one_runs(case: str, folder: Path, part: Part) -> None:
    script, fields, result, reason = BAD[case]
    bad = write_release(folder / "bad", "9.2.0", script, **fields)
    async with agent(folder, part.file, **SPEED) as running:
        await running.serving()
        before = server(await running.ask("status"))["version"]
        await choose(running, f"file://{bad}")
        if not result:
            status = await running.status_until(lambda status: status.get("problems"))
            assert reason in status["problems"][0]["message"], case
            assert "history" not in server(status), case
            return
        await running.status_until(lambda status: server(status).get("history"))
        settled = await until_settled(running, before)
        assert settled["history"][-1]["result"] == result, case
        assert reason in settled["history"][-1]["reason"], case
        assert settled["quarantine"][0]["version"] == "9.2.0", case


async def test_a_truncated_file_is_rejected(tmp_path: Path) -> None:
    bad = write_release(tmp_path / "bad", "9.2.0", fake_server())
    bad.write_bytes(bad.read_bytes()[:-20])
    async with joined(tmp_path) as (running, _):
        before = server(await running.ask("status"))["version"]
        first = await running.serving()
        await choose(running, f"file://{bad}")
        await running.status_until(lambda status: server(status).get("history"))
        settled = await until_settled(running, before)
        assert settled["history"][-1]["result"] == "rejected"
        assert "cannot be unpacked" in settled["history"][-1]["reason"]
        assert await running.serving() == first


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
async def test_a_release_that_fills_the_disk_is_rolled_back_although_it_stays_full(tmp_path: Path) -> None:
    fill = 'dd if=/dev/zero of="$MACHINE_ROOT/state/garbage" bs=4k 2>/dev/null\n'
    bad = write_release(tmp_path / "bad", "9.2.0", fill + fake_server())
    state = tmp_path / "opt" / "state"
    state.mkdir(parents=True, mode=0o700)
    mount = 'mount -t tmpfs -o size=4m,mode=700 none "$0" && exec "$@"'
    small = ("unshare", "--mount", "sh", "-c", mount, str(state))
    async with joined(tmp_path, *small) as (running, _):
        before = server(await running.ask("status"))["version"]
        await choose(running, f"file://{bad}")
        await running.status_until(lambda status: server(status).get("quarantine"))
        settled = await until_settled(running, before)
        assert settled["quarantine"][0]["reason"] == "the disk became full during its trial"
        assert settled["history"][-1]["result"] == "rolled_back"


async def test_a_hold_and_wrong_requests(tmp_path: Path) -> None:
    new = write_release(tmp_path / "new", "9.3.0", fake_server())
    async with joined(tmp_path) as (running, _):
        for choice, text in (("stable", "neither a version nor a URL"), ("1.2", "neither a version nor a URL")):
            with pytest.raises(MachineError, match=text):
                await choose(running, choice)
        with pytest.raises(MachineError, match="there is no older release"):
            await running.ask("rollback", program=SERVER)
        with pytest.raises(MachineError, match="machine-agent is not updated by this agent"):
            await running.ask("rollback", program="machine-agent")
        with pytest.raises(MachineError, match="at most 30 days"):
            await running.ask("hold", program=SERVER, until=1e12)
        await choose(running, f"file://{tmp_path}/missing")
        status = await running.status_until(lambda status: status.get("problems"))
        assert "missing cannot be read: No such file" in status["problems"][0]["message"]
        await choose(running, f"file://{new}")
        await until_settled(running, "9.3.0")
        await choose(running, "")
        status = await running.status_until(lambda status: not status.get("problems"))


async def test_an_interrupted_update_goes_on_after_a_kill(tmp_path: Path) -> None:
    new = write_release(tmp_path / "new", "9.4.0", REAL)
    async with joined(tmp_path) as (running, part):
        await choose(running, f"file://{new}")
        await running.status_until(lambda status: server(status).get("step") == "trial")
        running.process.kill()
        await running.process.wait()
        async with agent(tmp_path, part.file, **SPEED) as second:
            settled = await until_settled(second, "9.4.0")
            assert settled["history"][-1]["result"] == "updated"


@pytest.mark.parametrize("options", [("--wait",), ()])
async def test_the_first_server_is_the_new_one_if_the_agent_waits_for_it(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    new = write_release(tmp_path / "new", "9.4.0", fake_server())
    async with cloud(tmp_path / "cloud") as running_cloud, running_cloud.client() as client:
        part = await new_part(running_cloud, client, tmp_path)
        await part.save({"agent": {"version_control": {"machine-server": f"file://{new}"}}})
        async with agent(tmp_path, part.file, *options, **SPEED) as running:
            await running.status_until(lambda status: server(status).get("version") == "9.4.0")
            await running.status_until(lambda status: server(status).get("serving"))
            starts = running.log.read_text().count("machine-server runs")
    assert starts == (1 if options else 2)
