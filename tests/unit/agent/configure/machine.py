"""A machine whose systemd, apt and journald are tables in memory, for tests of the system configuration."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from agent.actions.permission import AgentMaintenance, Refusal
from agent.configure.system_parts import JournalLimits, UnattendedUpgrades
from agent.layout import Layout
from agent.leases.leases import Leases
from agent.system.apt import Apt
from agent.system.os_release import OsRelease, parse_os_release
from agent.system.programs import LIMIT, Done
from agent.system.store import SystemStore
from schema.agent.records import SystemConfiguration
from support.worker import Worker
from telemetry.logs.outbox_sink import OutboxSink
from tests.unit.agent.system import samples


class InlineWorker(Worker):
    """Calls functions at once, so that a test in virtual time has no thread."""

    def __init__(self) -> None:
        super().__init__("inline")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        yield

    async def run(self, function: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return function()


class System:
    """Implements Programs: answers commands from its state, and records those that change something."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.layout = Layout(root / "opt/machine", root / "run/machine")
        self.layout.state.mkdir(parents=True, exist_ok=True)
        self.layout.run.mkdir(parents=True, exist_ok=True)
        self.changes: list[str] = []
        self.packages = {"apt", "unattended-upgrades"}
        self.timers = {"apt-daily.timer": True, "apt-daily-upgrade.timer": True}
        self.policy = samples.POLICY_DEBIAN
        self.updated_policy = ""  # what the policy becomes by an update
        self.release = parse_os_release(samples.DEBIAN_12)
        self.failing: dict[str, Done] = {}  # answers by the beginning of the command
        self.store = SystemStore(self.layout, InlineWorker().run, root)

    async def run(self, command: Sequence[str], *, limit: float = LIMIT) -> Done:
        await trio.lowlevel.checkpoint()
        return self._answer(" ".join(command))

    async def run_apart(self, command: Sequence[str], *, limit: float) -> Done:
        await trio.lowlevel.checkpoint()
        return self._answer(" ".join(word for word in command if word not in ("-q", "-y", "-o") and "::" not in word))

    def _answer(self, line: str) -> Done:
        words = line.split()
        if line.startswith(("systemctl is-enabled", "dpkg-query", "apt-cache")):
            return self._ask(words)
        self.changes.append(line)
        for beginning, done in self.failing.items():
            if line.startswith(beginning):
                return done
        if words[:2] in (["systemctl", "enable"], ["systemctl", "disable"]):
            self.timers[words[-1]] = words[1] == "enable"
        elif words[:2] == ["apt-get", "install"]:
            self.packages.add(words[-1])
        elif words[:2] == ["apt-get", "update"]:
            self.policy = self.updated_policy or self.policy
        return Done(0, "")

    def _ask(self, words: Sequence[str]) -> Done:
        if words[0] == "systemctl":
            enabled = self.timers.get(words[-1])
            return Done(0 if enabled else 1, "enabled\n" if enabled else "disabled\n")
        if words[0] == "dpkg-query":
            return Done(0, "installed") if words[-1] in self.packages else Done(1, "", "no packages found")
        return Done(0, self.policy)

    async def os_release(self) -> OsRelease:
        await trio.lowlevel.checkpoint()
        return self.release

    async def restarted(self) -> None:
        """Forget what is in memory, as after a restart of the agent."""
        self.store = SystemStore(self.layout, InlineWorker().run, self.root)
        await self.store.load()

    @property
    def journal(self) -> JournalLimits:
        return JournalLimits(self.store, self)

    @property
    def upgrades(self) -> UnattendedUpgrades:
        return UnattendedUpgrades(self.store, self, self.apt, self.os_release)

    @property
    def apt(self) -> Apt:
        return Apt(self, InlineWorker().run, self.layout.run, self.root)

    def text(self, path: str) -> str | None:
        file = self.root / path
        return file.read_text() if file.exists() else None

    def taken(self) -> list[str]:
        """Return the commands since the last call that changed something."""
        taken, self.changes = self.changes, []
        return taken

    def tree(self) -> set[str]:
        """Return all paths below the root, except the record of the agent."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.name != "system.json"}


def maintenance(refusal: Refusal, folder: Path, wall: Callable[[], float] = time.time) -> AgentMaintenance:
    return AgentMaintenance(refusal, Leases(folder / "leases", InlineWorker().run), InlineWorker().run, wall)


async def uploads_nothing(sink: OutboxSink) -> None:
    """Never reach the cloud."""
    await trio.sleep_forever()


async def never() -> None:
    """Let machine-server allow each restart."""
    await trio.lowlevel.checkpoint()


def configuration(**fields: Any) -> SystemConfiguration:
    return SystemConfiguration(**fields)
