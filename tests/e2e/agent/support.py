"""machine-agent as a real process in --dev-mode, joined to a real cloud on loopback."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from agent.console.client import request
from agent.layout import Layout
from agent.supervise.probe import writer
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess
from tests.e2e.harness import START_LIMIT_S, STOP_LIMIT_S, relative

APP = "viam.app.v1.AppService"
LIMIT = START_LIMIT_S
THIS_AGENT = (sys.executable, "-m", "agent.start")


@dataclass
class Part:
    """A part of a machine in the cloud, and the file with its credentials."""

    client: ApiClient
    id: str
    secret: str
    file: Path

    async def save(self, document: Mapping[str, Any]) -> None:
        """Save the configuration; machine-server chooses a free port, so that tests can run side by side."""
        text = json.dumps({"network": {"bind_address": "localhost:0"}, **document})
        await self.client.call(APP, "", "update_robot_part", id=self.id, name="", robot_config_json=text)

    async def logs(self) -> list[str]:
        """Return the messages that the cloud has received, with their fields."""
        answer = await self.client.call(APP, "", "get_robot_part_logs", id=self.id, limit=500)
        return [f"{entry['message']} {json.dumps(entry['fields'])}" for entry in answer["logs"]]


async def new_part(running: CloudProcess, client: ApiClient, folder: Path, *, name: str = "rover") -> Part:
    """Create a machine in the cloud and write its credentials."""
    robot = await client.call(APP, "", "new_robot", name=name, location=running.facts["location"])
    (part, *_) = await client.call(APP, "", "get_robot_parts", robot_id=robot)
    file = folder / "machine.json"
    credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
    file.write_text(json.dumps({"cloud": credentials}))
    file.chmod(0o600)
    created = Part(client, part["id"], part["secret"], file)
    await created.save({})
    return created


class Agent:
    """A running agent."""

    def __init__(self, process: trio.Process, layout: Layout, log: Path) -> None:
        self.process, self.layout, self.log = process, layout, log

    async def ask(self, command: str, **arguments: Any) -> Any:
        """Return the last value of a command on the control socket."""
        value = None
        with trio.fail_after(LIMIT):
            async for reply in request(self.layout.console, command, **arguments):
                value = reply
        return value

    async def status_until(self, condition: Callable[[Mapping[str, Any]], object]) -> Mapping[str, Any]:
        """Return the first status that fulfils a condition."""
        status: Mapping[str, Any] = {}
        with trio.move_on_after(LIMIT):
            while True:
                status = await self.ask("status")
                if condition(status):
                    return status
                await trio.sleep(0.1)
        raise AssertionError(f"the status stays {status}; the agent's log:\n{self.log.read_text()}")

    async def serving(self, *, after: int = 0) -> int:
        """Return the process id of machine-server once it answers requests; with `after`, of another process."""
        file = self.layout.run / "machine-server.address"
        serving = 0

        def condition(status: Mapping[str, Any]) -> bool:
            nonlocal serving
            serving = writer(file) if status.get("server", {}).get("serving") else 0
            return serving not in (0, after)

        await self.status_until(condition)
        return serving

    async def stop(self) -> int:
        """Stop the agent with SIGTERM; return its exit code."""
        self.process.terminate()
        with trio.fail_after(STOP_LIMIT_S):
            return await self.process.wait()


@asynccontextmanager
async def agent(
    folder: Path,
    config: Path,
    *options: str,
    prefix: Sequence[str] = (),
    program: Sequence[str] = THIS_AGENT,
    **environment: str,
) -> AsyncIterator[Agent]:
    """Run machine-agent in --dev-mode while the context is open; yield it when its control socket answers.

    `prefix` is a command that replaces itself by the agent; `program` is the agent, by default that of this checkout.
    """
    layout, log = Layout(folder / "opt", folder / "opt" / "run"), folder / "agent.log"
    command = [*prefix, *program, "--dev-mode", "--root", "opt", "-c", relative(config, folder)]
    command += ["--defaults", "defaults.json", *options]  # relative, as a person may write them
    with log.open("ab") as output:
        process = await trio.lowlevel.open_process(
            command, stdout=output, stderr=output, env={**os.environ, **environment}, cwd=folder
        )
    running = Agent(process, layout, log)
    try:
        with trio.fail_after(LIMIT):
            while process.poll() is None:
                try:
                    await running.ask("status")
                    break
                except MachineError as error:
                    if error.kind is not ErrorKind.UNAVAILABLE:
                        raise
                    await trio.sleep(0.05)
        yield running
    finally:
        with trio.move_on_after(STOP_LIMIT_S, shield=True):
            if process.poll() is None:
                process.terminate()
                await process.wait()
        if process.poll() is None:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
