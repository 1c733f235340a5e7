"""machine-agent with a pinned root installs what people published with `machine cloud releases`, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.agent.support import Agent, Part, agent, new_part
from tests.e2e.agent.tamper import TakenOver, taken_over
from tests.e2e.agent.test_update import SPEED, server, until_settled
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal
from tests.helpers.release_files import SERVER as REAL
from tests.helpers.release_files import fake_server, write_release


@dataclass
class World:
    """A cloud, a person with keys, and a running agent."""

    terminal: Terminal
    folder: Path
    part: Part
    agent: Agent
    relay: TakenOver

    async def releases(self, command: str, *words: str) -> str:
        said = await self.terminal("releases", command, *words, "--keys", str(self.folder / "keys"))
        await self.agent.ask("update")  # instead of at the next interval
        return said

    async def publish(self, version: str, script: str, *options: str) -> None:
        file = write_release(self.folder / version, version, script)
        await self.releases("upload", str(file), *options)

    async def select(self, version: str) -> None:
        """Choose the version of machine-server in the configuration of the part."""
        await self.part.save({"agent": {"version_control": {"machine-server": version}}})
        await self.agent.ask("update")


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(cloud(folder / "cloud"))
        client = await stack.enter_async_context(running.client())
        terminal = Terminal(running, folder / "home")
        login = ("login", f"http://{running.address}", "--key-id", running.key[0])
        await terminal(*login, MACHINE_CLOUD_KEY=running.key[1])
        await terminal("releases", "init", "--keys", str(folder / "keys"))
        relay = await stack.enter_async_context(taken_over(running.address))
        part = await new_part(running, client, folder)
        credentials = json.loads(part.file.read_text())
        credentials["cloud"]["app_address"] = f"http://localhost:{relay.port}"
        part.file.write_text(json.dumps(credentials))
        (folder / "defaults.json").write_text(json.dumps({"trust_first_root": True}))
        async with agent(folder, part.file, **SPEED) as running_agent:
            yield World(terminal, folder, part, running_agent, relay)


def problem(status: Mapping[str, Any]) -> str:
    return " ".join(entry["message"] for entry in status.get("problems", ()))


async def test_a_machine_installs_what_is_signed_and_nothing_else(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.publish("9.5.0", REAL, "--channel", "stable")
        assert (await until_settled(made.agent, "9.5.0"))["history"][-1]["result"] == "updated"
        assert (made.agent.layout.trust / "pinned.json").read_bytes() == (tmp_path / "keys" / "root.json").read_bytes()
        await made.publish("9.6.0", fake_server(), "--channel", "stable")
        await until_settled(made.agent, "9.6.0")
        await made.releases("withdraw", "machine-server", "9.6.0", "--yes")
        await until_settled(made.agent, "9.5.0")
        unsigned = write_release(tmp_path / "unsigned", "9.7.0", REAL)
        await made.select(f"file://{unsigned}")
        status = await made.agent.status_until(problem)
        assert "the organization has not signed this file" in problem(status)
        assert server(status)["version"] == "9.5.0"


async def test_a_cloud_that_was_taken_over_installs_nothing(tmp_path: Path) -> None:
    """It replays metadata with a withdrawn release, and changes metadata that was signed."""
    async with world(tmp_path) as made:
        trust = made.agent.layout.trust
        await made.publish("9.5.0", REAL, "--channel", "stable")
        await until_settled(made.agent, "9.5.0")
        await made.publish("9.4.0", fake_server())  # with a known weakness; not in a channel
        await made.select("9.4.0")
        await until_settled(made.agent, "9.4.0")
        stored = {name: (trust / f"{name}.json").read_bytes() for name in ("timestamp", "snapshot", "targets")}
        versions = {name: json.loads(content)["signed"]["version"] for name, content in stored.items()}
        await made.select("stable")
        await until_settled(made.agent, "9.5.0")
        await made.releases("withdraw", "machine-server", "9.4.0", "--yes")
        await made.publish("9.6.0", fake_server())
        await made.select("9.6.0")
        await until_settled(made.agent, "9.6.0")

        made.relay.files = {
            "timestamp.json": stored["timestamp"],
            **{f"{versions[name]}.{name}.json": stored[name] for name in ("snapshot", "targets")},
        }
        await made.publish("9.7.0", fake_server())
        await made.select("9.7.0")
        status = await made.agent.status_until(problem)
        assert "timestamp.json is not the version that must follow" in problem(status)
        assert server(status)["version"] == "9.6.0"

        made.relay.files = {}
        newest = json.loads((trust / "timestamp.json").read_bytes())
        newest["signed"]["version"] += 100
        made.relay.files = {"timestamp.json": json.dumps(newest).encode()}
        await made.select("9.7.0")
        status = await made.agent.status_until(lambda status: "not signed" in problem(status))
        assert server(status)["version"] == "9.6.0"
        assert list(made.agent.layout.downloads.iterdir()) == []

        made.relay.files = {}  # the owner has the cloud back
        await made.select("9.7.0")
        await until_settled(made.agent, "9.7.0")
