"""The tour in README.md for its test: its commands are read from the text, so that the two cannot diverge."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

ROOT = Path(__file__).parents[3]
LIMIT = 60.0


def tour() -> str:
    """Return the section of README.md."""
    text = (ROOT / "README.md").read_text()
    section = re.search(r"^## Five-minute tour\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert section is not None, "README.md has no tour"
    return section[1]


def step(number: int) -> str:
    """Return a numbered step of the tour."""
    match = re.search(rf"^{number}\. (.*?)(?=^\d+\. |\Z)", tour(), re.MULTILINE | re.DOTALL)
    assert match is not None, f"the tour has no step {number}"
    return match[1]


def blocks(text: str, language: str = "sh") -> list[str]:
    """Return the code blocks of a text."""
    return [textwrap.dedent(block).strip() for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)]


def spoken(text: str, beginning: str) -> str:
    """Return the command that the text mentions within a sentence."""
    commands = [code for code in re.findall(r"`([^`\n]+)`", text) if code.startswith(beginning)]
    assert commands, f"the tour does not name {beginning!r}"
    return commands[0]


@dataclass(frozen=True)
class Ports:
    """Free ports that replace those of the tour."""

    cloud: str
    machine: str
    webhook: str

    def put(self, text: str) -> str:
        """Return the text with these ports."""
        for usual, own in (("8090", self.cloud), ("8080", self.machine), ("8099", self.webhook)):
            text = text.replace(f"localhost:{usual}", f"localhost:{own}")
        return text


class Checkout:
    """A folder like that after `git clone` and `make setup`, with nothing started yet: all but `.run` is linked."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.folder, self.ports = folder / "checkout", ports
        self.folder.mkdir()
        (folder / "home").mkdir()
        for entry in ROOT.iterdir():
            if entry.name not in (".run", ".venv", ".git"):
                (self.folder / entry.name).symlink_to(entry)
        (self.folder / ".venv").symlink_to(sys.prefix)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MACHINE_", "WEBHOOK_"))}
        self.environment = {
            **kept,
            "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "home"),
            "RUN_HOME": str(self.folder / ".run"),
            "PORT": ports.machine,
            "CLOUD_PORT": ports.cloud,
            "WEBHOOK_PORT": ports.webhook,
        }

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the variables that `. .run/env` sets."""
        words = re.findall(r"export (.*)", (self.folder / ".run" / "env").read_text())
        return dict(word.split("=", 1) for line in words for word in line.split())

    async def __call__(self, commands: str, **environment: str) -> str:
        """Run commands as in a separate terminal; return their output. Fail at the first command that fails."""
        with trio.fail_after(LIMIT):
            done = await trio.run_process(
                ["bash", "-e", "-c", self.ports.put(commands)],
                cwd=self.folder,
                env={**self.environment, **environment},
                capture_stdout=True,
                stderr=subprocess.STDOUT,
                check=False,
            )
        text = done.stdout.decode()
        assert done.returncode == 0, f"{commands}\n{text}"
        return text

    @asynccontextmanager
    async def running(self, command: str) -> AsyncIterator[Running]:
        """Run a command in a separate terminal until Ctrl-C."""
        process = await trio.lowlevel.open_process(
            ["bash", "-c", self.ports.put(command)],
            cwd=self.folder,
            env={**self.environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        shell = Running(process)
        try:
            yield shell
        finally:
            with trio.CancelScope(shield=True):
                await shell.interrupt()


class Running:
    """A running command: its output, and Ctrl-C."""

    def __init__(self, process: trio.Process) -> None:
        self.process, self.said = process, ""

    async def until(self, words: str) -> str:
        """Wait until `words` are printed; return all output so far."""
        assert self.process.stdout is not None
        with trio.fail_after(LIMIT):
            while words not in self.said:
                piece = await self.process.stdout.receive_some()
                assert piece, f"it ended before it said {words!r}:\n{self.said}"
                self.said += piece.decode()
        return self.said

    async def interrupt(self) -> None:
        """Press Ctrl-C, which a terminal sends to all foreground processes; return when all have ended."""
        if self.process.stdout is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGINT)
            with trio.move_on_after(LIMIT) as limit:
                async for piece in self.process.stdout:
                    self.said += piece.decode()
                await self.process.wait()
            if limit.cancelled_caught:
                os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended
        await self.process.wait()
        await self.process.stdout.aclose()
        self.process.stdout = None


def editor(folder: Path, old: str, new: str) -> str:
    """Return a command for $EDITOR that replaces `old` with `new`."""
    script = folder / f"editor-{len(list(folder.glob('editor-*')))}"
    script.write_text(
        f"#!{shutil.which('python3')}\nimport pathlib, sys\np = pathlib.Path(sys.argv[-1])\n"
        f"t = p.read_text()\nassert {old!r} in t, t\np.write_text(t.replace({old!r}, {new!r}, 1))\n"
    )
    script.chmod(0o755)
    return str(script)
