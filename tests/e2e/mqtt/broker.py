"""A mosquitto broker on loopback, and its own clients as another program sees the machine."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.harness import START_LIMIT_S
from tests.loopback import free_port

LIMIT_S = START_LIMIT_S
MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/sbin:/bin")
needs_mosquitto = pytest.mark.skipif(
    MOSQUITTO is None or shutil.which("mosquitto_sub") is None, reason="needs mosquitto and mosquitto-clients"
)


@dataclass
class Broker:
    """A running broker. `log` has its messages; `arguments` are those with which its clients connect."""

    port: int
    process: trio.Process
    arguments: Sequence[str]
    lines: list[str] = field(default_factory=list)

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """End it; SIGKILL closes its connections without a word."""
        self.process.send_signal(number)
        with trio.fail_after(LIMIT_S):
            await self.process.wait()

    async def send(self, topic: str, text: str, *, retain: bool = False) -> None:
        """Publish a message with mosquitto_pub."""
        flags = ["-r"] if retain else []
        words = [
            *("mosquitto_pub", *self.arguments, "-t", topic, *flags),
            *(["-m", text] if text else ["-n"]),
        ]
        await trio.run_process(words)


@dataclass
class Listener:
    """Messages of a broker as mosquitto_sub prints them, the newest of each topic."""

    newest: dict[str, str] = field(default_factory=dict)
    all: list[tuple[str, str]] = field(default_factory=list)
    changed: trio.Event = field(default_factory=trio.Event)

    async def until(self, topic: str, condition: Callable[[str], object] = bool) -> str:
        """Wait until the newest message of a topic satisfies a condition; return it."""
        with trio.move_on_after(LIMIT_S):
            while not (topic in self.newest and condition(self.newest[topic])):
                await self.changed.wait()
            return self.newest[topic]
        raise AssertionError(f"{topic} is {self.newest.get(topic)!r}; topics: {sorted(self.newest)}")

    async def document(self, topic: str) -> Any:
        """Return the document of a topic when it has arrived."""
        return json.loads(await self.until(topic))


@asynccontextmanager
async def mosquitto(
    folder: Path, *, port: int = 0, settings: Sequence[str] = (), arguments: Sequence[str] = ()
) -> AsyncIterator[Broker]:
    """Run a broker; yield it when it listens. `settings` replace those that let everyone in without TLS."""
    port = port or free_port()
    configuration = folder / "mosquitto.conf"
    lines = ["user root", f"listener {port} 127.0.0.1", *(settings or ["allow_anonymous true"])]
    configuration.write_text("\n".join(lines) + "\n")
    assert MOSQUITTO is not None
    process = await trio.lowlevel.open_process(
        [MOSQUITTO, "-v", "-c", str(configuration)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    broker = Broker(port, process, ["-h", "localhost", "-p", str(port), *arguments])
    running = trio.Event()

    async def read() -> None:
        rest = b""
        assert process.stderr is not None
        async for piece in process.stderr:
            *complete, rest = (rest + piece).split(b"\n")
            broker.lines += [line.decode() for line in complete]
            if any(line.endswith(b"running") for line in complete):
                running.set()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            with trio.fail_after(LIMIT_S):
                await running.wait()
            yield broker
            if process.poll() is None:
                process.terminate()
                await process.wait()
            nursery.cancel_scope.cancel()
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


@asynccontextmanager
async def listening(broker: Broker, pattern: str = "#") -> AsyncIterator[Listener]:
    """Run mosquitto_sub; yield its messages."""
    words = ["mosquitto_sub", *broker.arguments, "-t", pattern, "-F", "%t %p"]
    process = await trio.lowlevel.open_process(words, stdout=subprocess.PIPE)
    listener = Listener()

    async def read() -> None:
        rest = b""
        assert process.stdout is not None
        async for piece in process.stdout:
            *complete, rest = (rest + piece).split(b"\n")
            for line in complete:
                topic, _, text = line.decode().partition(" ")
                listener.newest[topic] = text
                listener.all.append((topic, text))
            changed, listener.changed = listener.changed, trio.Event()
            changed.set()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            yield listener
            nursery.cancel_scope.cancel()
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
