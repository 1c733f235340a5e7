"""The reports of a real agent in a real cloud: after a start, after a change, and after an outage."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from rpc.api.client import ApiClient
from rpc.api.cloud_v1 import AGENTS
from support.program_version import version
from tests.e2e.agent.support import Part, agent, new_part
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.helpers.waiting import until
from tests.unit.schema.agent.tables import KEYS

Report = dict[str, Any]


async def report_of(client: ApiClient, part: Part) -> Report:
    """Return the newest report in the cloud; empty before the first one."""
    state = await client.call(AGENTS, "", "get_agent_state", part_id=part.id)
    return dict(json.loads(state["report_json"] or "{}"))


async def report_until(client: ApiClient, part: Part, condition: Callable[[Report], object]) -> Report:
    """Return the first report that fulfils a condition."""
    report: Report = {}

    async def fulfilled() -> bool:
        nonlocal report
        report = await report_of(client, part)
        return bool(report) and bool(condition(report))

    await until(fulfilled, lambda: str(report))
    return report


async def machine(running: CloudProcess, *words: str) -> str:
    """Return what a command of `machine cloud` prints."""
    key_id, key = running.key
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[3]), "MACHINE_CLOUD": f"http://{running.address}",
        "MACHINE_CLOUD_KEY_ID": key_id, "MACHINE_CLOUD_KEY": key,
    }  # fmt: skip
    done = await trio.run_process(
        [sys.executable, "-m", "command.cli", "cloud", *words], capture_stdout=True, env={**os.environ, **environment}
    )
    return done.stdout.decode()


async def test_a_report_arrives_after_the_start_and_after_changes(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        async with agent(tmp_path, part.file):
            report = await report_until(client, part, lambda report: report.get("server", {}).get("serving"))
            assert (report["agent"]["version"], report["agent"]["running"]) == (version(), True)
            assert part.secret not in json.dumps(report)
            await part.save({"agent": {"advanced_settings": {"disable_viam_server": True}}})
            report = await report_until(client, part, lambda report: report.get("disabled"))
            assert not report["server"].get("running")
            printed = await machine(running, "agent", "status", "rover")
            assert "rover: report of" in printed
            assert f"machine-agent {version()}: serves" in printed
            assert "switched off by the setting disable_viam_server" in printed
            assert json.loads(await machine(running, "agent", "status", "rover", "--json"))["report"]["disabled"]


PARTS = Path(__file__).parents[3] / "docs" / "design" / "agent.md"


async def test_a_part_that_fails_is_reported_and_the_others_run_on(tmp_path: Path) -> None:
    queue = tmp_path / "opt" / "queue" / "agent"
    queue.parent.mkdir(parents=True)
    queue.write_text("not a folder")
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        async with agent(tmp_path, part.file) as running_agent:
            await running_agent.serving()
            report = await report_until(client, part, lambda report: report.get("server", {}).get("serving"))
            states = {entry["name"]: entry["state"] for entry in report["parts"]}
            assert {name for name, state in states.items() if state != "ready"} == {"log", "log upload"}
            named = set(re.findall(r"`([a-z ]+)`", PARTS.read_text("utf-8").partition("## The parts")[2]))
            assert states.keys() <= named, "parts that are not in the table"
            (problem,) = report["problems"]
            assert problem["path"] == "machine-agent, log"
            assert str(queue) in problem["message"]
            printed = await machine(running, "agent", "status", "rover")
            assert "part of the agent: log is unhealthy since" in printed
            queue.unlink()
            await running_agent.status_until(
                lambda status: all(entry["state"] == "ready" for entry in status.get("parts", ()))
            )
            assert await running_agent.stop() == 0


async def test_a_report_that_was_made_during_an_outage_arrives_after_it(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        address = running.address
        async with agent(tmp_path, part.file) as running_agent:
            await report_until(client, part, lambda report: report.get("server", {}).get("serving"))
            key = running.key
            assert await running.stop() == 0
            process = await running_agent.serving()
            os.kill(process, 9)
            await running_agent.status_until(lambda status: status["server"].get("exits"))
            async with cloud(tmp_path / "cloud", "--listen", address) as again, again.client(key) as later:
                report = await report_until(later, part, lambda report: report["server"].get("exits"))
                assert report["server"]["exits"][-1]["reason"] == "killed by SIGKILL"


async def test_requests_of_the_cloud_reach_the_agent_at_once_or_when_it_connects(tmp_path: Path) -> None:
    async def pending() -> list[str]:
        state = await client.call(AGENTS, "", "get_agent_state", part_id=part.id)
        return [request["kind"] for request in state["requests"]]

    async def none_pending() -> bool:
        return not await pending()

    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        async with agent(tmp_path, part.file) as first:
            await report_until(client, part, lambda report: report.get("server", {}).get("serving"))
            begun = trio.current_time()
            assert "was asked to update machine-server now" in await machine(running, "agent", "update", "rover")
            await until(lambda: '"request":"update"' in first.log.read_text(), first.log.read_text)
            await until(none_pending)
            assert trio.current_time() - begun < 30
            assert await first.stop() == 0
        await machine(running, "agent", "check", "rover")
        assert await pending() == ["check"]
        assert "not received yet: the request to check now" in await machine(running, "agent", "status", "rover")
        async with agent(tmp_path, part.file) as second:
            await until(lambda: '"request":"check"' in second.log.read_text(), second.log.read_text)
            await until(none_pending)
            begun = trio.current_time()
            assert await running.stop() == 0  # the call with which the agent waits does not delay it
            assert trio.current_time() - begun < 10


async def test_an_invalid_value_of_every_setting_is_reported_and_harms_no_other(tmp_path: Path) -> None:
    """Each key has its first invalid value at once, except one, which must work."""
    document: dict[str, dict[str, Any]] = {}
    for key in KEYS:
        document.setdefault(key.section, {})[key.key] = key.invalid[0][0]
    document["advanced_settings"]["disable_viam_server"] = True
    expected = {key.path for key in KEYS if key.key != "disable_viam_server"}
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        part = await new_part(running, client, tmp_path)
        await part.save({"agent": {**document, "no_such_section": {}}})
        async with agent(tmp_path, part.file) as running_agent:
            report = await report_until(client, part, lambda report: report.get("disabled"))
            state = await client.call(AGENTS, "", "get_agent_state", part_id=part.id)
            problems = [*report["problems"], *state["problems"]]
            settings = [problem for problem in problems if problem["path"].startswith("agent.")]
            assert {problem["path"] for problem in settings} >= expected
            assert all(problem["remedy"] for problem in settings if problem["path"] in expected)
            printed = await machine(running, "agent", "status", "rover")
            assert all(f"problem: {path}: " in printed for path in expected)
            await part.save({})  # the agent goes on and follows the next configuration
            await running_agent.serving()

            def recovered(report: dict[str, Any]) -> bool:
                problems = [entry for entry in report.get("problems", ()) if entry["path"].startswith("agent.")]
                return bool(report.get("server", {}).get("serving")) and not problems

            await report_until(client, part, recovered)  # the end of a problem may be reported after the start
